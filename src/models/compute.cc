#include "models/compute.h"

#include <algorithm>

namespace headrace {
namespace {
// Rows that one thread takes at least: whole register tiles, and enough work to be worth waking it.
constexpr size_t kRowGrain = 16;
// Weights that are multiplied before the queue is looked after again.
constexpr size_t kBytesBetweenPumps = size_t{4} << 20;

/// A weight that is infinite or no number makes every product with it so, whatever it is multiplied with; later
/// functions could hide that (a sigmoid, an exponential). So products are checked where they are made, instead of
/// weights that only pass through (P4).
Status check_product(const Compute& compute, const TrunkMatrix& matrix, MatrixView<const float> product) {
  for (size_t t = 0; t < product.rows(); ++t) {
    if (compute.kernels.all_finite(product.row(t))) continue;
    return error(Code::kFormat, "tensor %s: a product with it is not a finite number; the file is damaged",
                 compute.trunk.matrix_name(matrix).c_str());
  }
  return {};
}

/// A long product in pieces, between which the drive gets new work: at 12 GB/s it is through with what is in flight
/// before a whole block is.
void multiply_and_read_on(const Compute& compute, const WeightView& weights, MatrixView<const float> x,
                          MatrixView<float> y) {
  const size_t rows_at_once = std::max(kRowGrain, kBytesBetweenPumps / weights.row_bytes / kRowGrain * kRowGrain);
  for (size_t row = 0; row < weights.rows; row += rows_at_once) {
    const size_t count = std::min(rows_at_once, weights.rows - row);
    multiply(compute, weights.row_range(row, count), x, y.col_range(row, count));
    compute.trunk.pump();
  }
}

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
    const MatrixView<float> part = y.col_range(row, block.weights().rows);
    multiply_and_read_on(compute, block.weights(), x, part);
    TRY(check_product(compute, matrix, part));
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
