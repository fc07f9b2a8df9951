#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/ensure.h"
#include "base/views.h"

namespace headrace::test {

/// Rows of bytes, each of which ends where an unreadable page begins: a load or store one byte past the end of a row
/// ends the program.
class GuardedRows {
 public:
  GuardedRows(size_t rows, size_t row_bytes) : rows_(rows), row_bytes_(row_bytes) {
    page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    pitch_ = (row_bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_ + page_bytes_;
    mapped_bytes_ = pitch_ * rows + 1;
    void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    for (size_t r = 0; r < rows; ++r) {
      ENSURE(mprotect(memory_ + (r + 1) * pitch_ - page_bytes_, page_bytes_, PROT_NONE) == 0);
    }
  }
  ~GuardedRows() { munmap(memory_, mapped_bytes_); }
  GuardedRows(const GuardedRows&) = delete;
  GuardedRows& operator=(const GuardedRows&) = delete;

  std::byte* row(size_t index) const { return memory_ + (index + 1) * pitch_ - page_bytes_ - row_bytes_; }
  /// Bytes from one row to the next.
  size_t pitch_bytes() const { return pitch_; }

  /// The rows as float32; `row_bytes` was a multiple of 4.
  MatrixView<float> floats() const {
    return {reinterpret_cast<float*>(row(0)), rows_, row_bytes_ / sizeof(float), pitch_ / sizeof(float)};
  }
  std::span<float> float_row() const { return floats().row(0); }

 private:
  size_t rows_;
  size_t row_bytes_;
  size_t page_bytes_ = 0;
  size_t pitch_ = 0;
  size_t mapped_bytes_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace headrace::test
