#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/format.h"
#include "formats/nibble_table.h"

namespace headrace {

/// E2M1 numbers times 2^(scale - 127), for every E8M0 scale: scale 0 is the subnormal 2^-127, and under scale 255 all
/// are NaN. Numbers past the range of float32 are infinite, as the product would be.
extern const std::array<NibbleTable, 256> kScaledE2m1;

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
  /// Decoded numbers stand in V's look-up order.
  static constexpr bool kInLookUpOrder = true;

  template <class V>
  struct Decoder {
    /// Columns [col, col + 32) of `row`; `col` is a multiple of 32.
    void decode(WeightRow row, size_t col, V (&out)[2]) const {
      const auto scale = std::to_integer<uint8_t>(row.scales[col / kBlockColumns]);
      V::look_up(kScaledE2m1.data()[scale], row.data + col / 2, out);
    }
  };
};

}  // namespace headrace
