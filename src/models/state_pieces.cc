#include "models/state_pieces.h"

#include <algorithm>
#include <bit>

namespace headrace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4, "Pieces are stored as they lie here.");

Status visit_rows(MatrixView<float> rows, PieceVisitor visitor) {
  if (rows.rows() == 0) return {};
  if (rows.stride() == rows.cols()) {
    return visitor(std::as_writable_bytes(std::span(rows.data(), rows.rows() * rows.cols())));
  }
  for (size_t row = 0; row < rows.rows(); ++row) TRY(visitor(std::as_writable_bytes(rows.row(row))));
  return {};
}

void copy_rows(MatrixView<const float> from, MatrixView<float> to) {
  ENSURE(from.rows() == to.rows() && from.cols() == to.cols());
  for (size_t row = 0; row < from.rows(); ++row) std::ranges::copy(from.row(row), to.row(row).begin());
}

}  // namespace headrace
