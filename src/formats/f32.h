#pragma once

#include <cstddef>
#include <cstring>

#include "formats/format.h"

namespace headrace {

/// IEEE single precision, little endian.
struct F32 {
  static constexpr Format kFormat = Format::kF32;
  static constexpr const char* kName = "F32";
  static constexpr size_t kColumnMultiple = 1;
  static constexpr size_t kElementBytes = 4;
  static constexpr size_t row_bytes(size_t cols) { return cols * kElementBytes; }
  static constexpr size_t scale_row_bytes(size_t) { return 0; }

  /// Vectors of 16 numbers that are decoded together.
  static constexpr size_t kVectors = 1;
  static constexpr bool kInLookUpOrder = false;

  template <class V>
  struct Decoder {
    /// Columns [col, col + 16) of `row`.
    void decode(WeightRow row, size_t col, V (&out)[1]) const {
      out[0] = V::load_bytes(row.data + col * kElementBytes);
    }
  };
};

}  // namespace headrace
