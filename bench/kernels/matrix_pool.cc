#include "matrix_pool.h"

#include <algorithm>

namespace headrace::bench {

MatrixPool::MatrixPool(Format format, size_t rows, size_t cols, size_t total_bytes) {
  const size_t row_bytes = format_row_bytes(format, cols);
  const size_t scale_row_bytes = format_scale_row_bytes(format, cols);
  matrix_bytes_ = rows * (row_bytes + scale_row_bytes);
  const size_t pitch = (matrix_bytes_ + 4095) / 4096 * 4096;
  const size_t count = std::max<size_t>(total_bytes / pitch, 1);
  memory_ = AlignedMemory::allocate(budget_, count * pitch, "matrices").take_value();
  // Bytes that are ordinary numbers in every format: exponents in the middle, mantissas that vary.
  const std::span<std::byte> bytes = memory_.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 2 ? 0x3c + i % 3 : i * 7 & 255);
  for (size_t i = 0; i < count; ++i) {
    std::byte* data = memory_.data() + i * pitch;
    WeightView view = {.format = format, .rows = rows, .cols = cols, .data = data, .row_bytes = row_bytes};
    if (scale_row_bytes > 0) {
      view.scales = data + rows * row_bytes;
      view.scale_row_bytes = scale_row_bytes;
      std::fill_n(data + rows * row_bytes, rows * scale_row_bytes, std::byte{125});
    }
    views_.push_back(view);
  }
}

}  // namespace headrace::bench
