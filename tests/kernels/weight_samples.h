#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/format.h"
#include "kernels/numbers.h"

namespace headrace::test {

inline constexpr Format kAllFormats[] = {Format::kF32, Format::kBf16, Format::kF16, Format::kMxfp4};

/// Columns of a weight matrix must be a multiple of this.
inline size_t column_multiple(Format format) {
  return format == Format::kMxfp4 ? 32 : 1;
}

/// Fills one stored row with codes whose numbers are like `inputs`. `scales` is null where the format has none.
void fill_weight_row(Numbers& numbers, Inputs inputs, Format format, size_t cols, std::byte* data, std::byte* scales);

/// How the bytes of a sample lie.
struct Placement {
  size_t offset_bytes = 0;   ///< Of the first row, from an address that is a multiple of 64.
  size_t padding_bytes = 0;  ///< Between rows, filled with garbage.
};

/// A weight matrix of random codes.
class WeightSample {
 public:
  WeightSample(Numbers& numbers, Inputs inputs, Format format, size_t rows, size_t cols, Placement placement);
  const WeightView& view() const { return view_; }

 private:
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  WeightView view_;
};

/// The number that a code stands for, by the definition of its format: an own decoder in double.
double decode_reference(const WeightView& weights, size_t row, size_t col);

}  // namespace headrace::test
