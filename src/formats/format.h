#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ensure.h"

namespace headrace {

/// How the numbers of a weight matrix are stored. The list of formats; each has a header of its own.
enum class Format : uint8_t { kF32, kBf16, kF16, kMxfp4 };
inline constexpr size_t kFormatCount = 4;

/// Where one row of a stored matrix begins.
struct WeightRow {
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;
};

/// A look at a stored weight matrix [rows, cols], rows = output features. Addresses may be odd: a tensor starts
/// wherever its file put it.
struct WeightView {
  Format format = Format::kF32;
  size_t rows = 0;
  size_t cols = 0;
  const std::byte* data = nullptr;    ///< First row.
  size_t row_bytes = 0;               ///< From one row of `data` to the next.
  const std::byte* scales = nullptr;  ///< First row of block scales; null where the format has none.
  size_t scale_row_bytes = 0;

  WeightRow row(size_t index) const {
    return {data + index * row_bytes, scales ? scales + index * scale_row_bytes : nullptr};
  }

  /// Rows [begin, begin + count).
  WeightView row_range(size_t begin, size_t count) const {
    ENSURE(begin <= rows && count <= rows - begin);
    WeightView part = *this;
    part.rows = count;
    part.data += begin * row_bytes;
    if (part.scales) part.scales += begin * scale_row_bytes;
    return part;
  }
};

/// Bytes of one row of `cols` numbers, scales not counted. For MXFP4 `cols` must be a multiple of 32.
size_t format_row_bytes(Format format, size_t cols);
/// Bytes of the scales of one row; 0 where the format has none.
size_t format_scale_row_bytes(Format format, size_t cols);
/// "F32", "BF16", ...
const char* format_name(Format format);

/// A view of float32 rows in memory as weights, so that caches go through the same products as weights.
WeightView float_weights(const float* data, size_t rows, size_t cols, size_t stride);

}  // namespace headrace
