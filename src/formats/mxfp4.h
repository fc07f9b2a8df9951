#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "formats/format.h"

namespace headrace {

/// 2^(code - 127) for every E8M0 code; code 0 is the subnormal 2^-127 and code 255 is NaN.
struct E8m0Table {
  float values[256];
};

consteval E8m0Table make_e8m0_table() {
  E8m0Table table{};
  table.values[0] = std::bit_cast<float>(uint32_t{0x00400000});
  for (uint32_t code = 1; code < 255; ++code) table.values[code] = std::bit_cast<float>(code << 23);
  table.values[255] = std::bit_cast<float>(uint32_t{0x7fc00000});
  return table;
}

// Not inline on purpose: each translation unit has its own.
constexpr E8m0Table kE8m0 = make_e8m0_table();

/// E2M1 numbers, two a byte (the low nibble first), with one E8M0 scale for each 32 of a row (spec 11).
struct Mxfp4 {
  static constexpr Format kFormat = Format::kMxfp4;
  static constexpr const char* kName = "MXFP4";
  static constexpr size_t kBlockColumns = 32;
  static constexpr size_t kColumnMultiple = kBlockColumns;
  static constexpr size_t row_bytes(size_t cols) { return cols / 2; }
  static constexpr size_t scale_row_bytes(size_t cols) { return cols / kBlockColumns; }

  /// Vectors of 16 numbers that are decoded together: one block.
  static constexpr size_t kVectors = 2;

  template <class V>
  struct Decoder {
    typename V::SignedTable e2m1 = V::signed_table({0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F});

    /// Columns [col, col + 32) of `row`; `col` is a multiple of 32. The scale goes into the table: a product with a
    /// power of two is exact, and where it leaves the range of float32 it is the same product as behind the look-up.
    void decode(WeightRow row, size_t col, V (&out)[2]) const {
      const auto scale_code = std::to_integer<uint8_t>(row.scales[col / kBlockColumns]);
      const auto scaled = V::scale_table(e2m1, kE8m0.values[scale_code]);
      const std::byte* packed = row.data + col / 2;
      out[0] = V::look_up(scaled, packed);
      out[1] = V::look_up(scaled, packed + 8);
    }
  };
};

}  // namespace headrace
