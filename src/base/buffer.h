#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "base/budget.h"
#include "base/result.h"
#include "base/views.h"

namespace headrace {

/// Page-aligned zeroed memory that holds its Reservation: what direct I/O and wide loads want. Move-only; freed when
/// destroyed. The address never changes while it lives.
class AlignedMemory {
 public:
  static constexpr size_t kAlignment = 4096;

  /// What `allocate` takes of the budget: whole pages.
  static constexpr size_t budgeted_bytes(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  /// Reserves and maps `bytes` rounded up to whole pages. kBudget when either is refused.
  static Result<AlignedMemory> allocate(Budget& budget, size_t bytes, const char* purpose);

  AlignedMemory() = default;
  AlignedMemory(AlignedMemory&& other) noexcept;
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;
  ~AlignedMemory();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, size_bytes_}; }

 private:
  Reservation reservation_;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

/// A budgeted matrix of T (zeroed at allocation). Rows start at multiples of 64 bytes. Move-only.
template <class T>
class Matrix {
  static constexpr size_t kRowAlignment = 64;
  static_assert(std::is_trivially_copyable_v<T> && kRowAlignment % sizeof(T) == 0, "Zeroed bytes are the elements.");

 public:
  /// Bytes from one row of `cols` elements to the next.
  static constexpr size_t row_bytes(size_t cols) {
    return (cols * sizeof(T) + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  }
  /// What `allocate` takes of the budget.
  static constexpr size_t memory_bytes(size_t rows, size_t cols) {
    return AlignedMemory::budgeted_bytes(rows * row_bytes(cols));
  }

  /// kBudget when the memory is refused, or no memory could hold the shape.
  static Result<Matrix> allocate(Budget& budget, size_t rows, size_t cols, const char* purpose) {
    size_t bytes = 0;
    if (cols > SIZE_MAX / sizeof(T) - kRowAlignment || __builtin_mul_overflow(rows, row_bytes(cols), &bytes)) {
      return error(Code::kBudget, "%s: a matrix of %zu x %zu does not fit any memory", purpose, rows, cols);
    }
    const size_t stride = row_bytes(cols) / sizeof(T);
    Matrix matrix;
    matrix.memory_ = TRY(AlignedMemory::allocate(budget, bytes, purpose));
    matrix.view_ = MatrixView<T>(reinterpret_cast<T*>(matrix.memory_.data()), rows, cols, stride);
    return matrix;
  }

  Matrix() = default;
  Matrix(Matrix&& other) noexcept : memory_(std::move(other.memory_)), view_(std::exchange(other.view_, {})) {}
  Matrix& operator=(Matrix&& other) noexcept {
    if (this == &other) return *this;
    memory_ = std::move(other.memory_);
    view_ = std::exchange(other.view_, {});
    return *this;
  }
  ~Matrix() = default;

  MatrixView<T> view() const { return view_; }
  std::span<T> row(size_t row) const { return view_.row(row); }
  size_t rows() const { return view_.rows(); }
  size_t cols() const { return view_.cols(); }
  size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  AlignedMemory memory_;
  MatrixView<T> view_;
};

}  // namespace headrace
