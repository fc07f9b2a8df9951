#pragma once

#include <cstddef>

#include "formats/format.h"

namespace headrace {

/// IEEE half precision, subnormals, infinities and NaN included.
struct F16 {
  static constexpr Format kFormat = Format::kF16;
  static constexpr const char* kName = "F16";
  static constexpr size_t kColumnMultiple = 1;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t row_bytes(size_t cols) { return cols * kElementBytes; }
  static constexpr size_t scale_row_bytes(size_t) { return 0; }

  /// Vectors of 16 numbers that are decoded together.
  static constexpr size_t kVectors = 1;
  static constexpr bool kInLookUpOrder = false;

  template <class V>
  struct Decoder {
    /// Columns [col, col + 16) of `row`. Exponent and mantissa move to their places in a float32, whose exponent then
    /// is too small by 127 - 15 = 112: one exact product repairs it, for subnormals too. The largest exponent stands
    /// for infinity and NaN in both formats. Needs no F16C.
    void decode(WeightRow row, size_t col, V (&out)[1]) const {
      const V code = V::load_upper_halves(row.data + col * kElementBytes);
      const V sign = bit_and(code, V::bits(0x80000000));
      const V magnitude = bit_and(code, V::bits(0x7fff0000));
      const V moved = shift_right_3(magnitude);
      const V finite = moved * V::broadcast(0x1p112F);
      const V not_finite = bit_or(moved, V::bits(0x7f800000));
      // Written so that a magnitude that reads as NaN fails the test.
      const auto is_finite = greater(V::bits(0x7c000000), magnitude);
      out[0] = bit_or(sign, select(is_finite, finite, not_finite));
    }
  };
};

}  // namespace headrace
