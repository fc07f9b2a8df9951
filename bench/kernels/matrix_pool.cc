#include "kernels/matrix_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/ensure.h"

namespace headrace::bench {

MatrixPool::MatrixPool(Format format, size_t rows, size_t cols, size_t total_bytes) {
  const size_t row_bytes = format_row_bytes(format, cols);
  const size_t scale_row_bytes = format_scale_row_bytes(format, cols);
  matrix_bytes_ = rows * (row_bytes + scale_row_bytes);
  const size_t pitch = (matrix_bytes_ + 4095) / 4096 * 4096;
  const size_t count = std::max<size_t>(total_bytes / pitch, 1);
  mapped_bytes_ = count * pitch;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ENSURE(memory != MAP_FAILED);
  memory_ = static_cast<std::byte*>(memory);
  // Bytes that are ordinary numbers in every format: exponents in the middle, mantissas that vary.
  for (size_t i = 0; i < mapped_bytes_; ++i) memory_[i] = static_cast<std::byte>(i % 2 ? 0x3c + i % 3 : i * 7 & 255);
  for (size_t i = 0; i < count; ++i) {
    std::byte* data = memory_ + i * pitch;
    WeightView view = {.format = format, .rows = rows, .cols = cols, .data = data, .row_bytes = row_bytes};
    if (scale_row_bytes > 0) {
      view.scales = data + rows * row_bytes;
      view.scale_row_bytes = scale_row_bytes;
      std::fill_n(data + rows * row_bytes, rows * scale_row_bytes, std::byte{125});
    }
    views_.push_back(view);
  }
}

MatrixPool::~MatrixPool() {
  munmap(memory_, mapped_bytes_);
}

}  // namespace headrace::bench
