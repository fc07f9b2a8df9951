#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/ensure.h"

namespace headrace {

/// A look at a row-major matrix that somebody else owns: `rows` x `cols`, consecutive rows `stride` elements apart.
template <class T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, size_t rows, size_t cols, size_t stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {
    ENSURE(stride >= cols);
  }
  MatrixView(T* data, size_t rows, size_t cols) : MatrixView(data, rows, cols, cols) {}
  /// One row.
  explicit MatrixView(std::span<T> row) : MatrixView(row.data(), 1, row.size(), row.size()) {}
  /// A view to read of a view to write. A template, because a constructor from MatrixView<T> itself, even one that its
  /// constraint rules out, would take the place of the implicit copy constructor.
  // NOLINTBEGIN(google-explicit-constructor): reading is always allowed.
  template <class Writable>
  requires(std::is_same_v<T, const Writable>) MatrixView(const MatrixView<Writable>& other)
      : data_(other.data()), rows_(other.rows()), cols_(other.cols()), stride_(other.stride()) {}
  // NOLINTEND(google-explicit-constructor)

  T* data() const { return data_; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  size_t stride() const { return stride_; }

  T* row_data(size_t row) const {
    DEBUG_ENSURE(row < rows_);
    return data_ + row * stride_;
  }
  std::span<T> row(size_t row) const { return {row_data(row), cols_}; }

  /// Rows [begin, begin + count).
  MatrixView row_range(size_t begin, size_t count) const {
    ENSURE(begin <= rows_ && count <= rows_ - begin);
    return {data_ + begin * stride_, count, cols_, stride_};
  }
  /// Columns [begin, begin + count) of every row.
  MatrixView col_range(size_t begin, size_t count) const {
    ENSURE(begin <= cols_ && count <= cols_ - begin);
    return {data_ + begin, rows_, count, stride_};
  }

 private:
  T* data_ = nullptr;
  size_t rows_ = 0;
  size_t cols_ = 0;
  size_t stride_ = 0;
};

}  // namespace headrace
