#include "models/compute.h"

namespace headrace {
namespace {
// Rows that one thread takes at least: whole register tiles, and enough work to be worth waking it.
constexpr size_t kRowGrain = 16;
}  // namespace

void multiply(const Compute& compute, const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  ENSURE(x.cols() == weights.cols && y.cols() == weights.rows && x.rows() == y.rows());
  const auto matmul = compute.kernels.matmul[static_cast<size_t>(weights.format)];
  compute.pool.run(weights.rows, kRowGrain, [&](IndexRange rows) {
    matmul(weights.row_range(rows.begin, rows.size()), x, y.col_range(rows.begin, rows.size()));
  });
}

Status linear(const Compute& compute, const TrunkMatrix& matrix, MatrixView<const float> x, MatrixView<float> y) {
  ENSURE(y.cols() == matrix.rows);
  for (size_t row = 0; row < matrix.rows;) {
    const RowBlock block = TRY(compute.trunk.acquire(matrix, row));
    multiply(compute, block.weights(), x, y.col_range(row, block.weights().rows));
    row = block.end_row();
  }
  return {};
}

void normalize_rows(const Compute& compute, MatrixView<const float> x, std::span<const float> weight, float epsilon,
                    MatrixView<float> out) {
  ENSURE(x.cols() == weight.size() && x.cols() == out.cols() && x.rows() == out.rows());
  compute.pool.run(x.rows(), 1, [&](IndexRange tokens) {
    for (size_t t = tokens.begin; t < tokens.end; ++t) compute.kernels.rms_norm(x.row(t), weight, epsilon, out.row(t));
  });
}

void add_rows(const Compute& compute, MatrixView<const float> x, MatrixView<float> y) {
  ENSURE(x.cols() == y.cols() && x.rows() == y.rows());
  for (size_t t = 0; t < x.rows(); ++t) compute.kernels.add(x.row(t), y.row(t));
}

}  // namespace headrace
