#pragma once

#include <algorithm>
#include <cstddef>

#include "base/views.h"
#include "formats/format.h"
#include "kernels/algorithms/decode.h"
#include "kernels/algorithms/partial.h"
#include "kernels/algorithms/unroll.h"
#include "kernels/isa/vector.h"

namespace headrace {

/// Rows that meet all tokens before the next are touched: 128 KiB of 512 float32 columns, a share of the second cache.
inline constexpr size_t kTransposedRows = 64;

/// A product of some rows of the weights, added to `y` or, for the first rows, started from zero.
struct RowBlock {
  WeightView weights;
  MatrixView<const float> x;  ///< The factors of these rows only.
  MatrixView<float> y;
  bool is_first;
};

/// kSteps decoding steps of neighbouring columns from `col` on, for kTokens tokens from `token` on.
template <Vector V, class F, size_t kSteps, size_t kTokens>
void multiply_columns(const RowBlock& block, size_t col, size_t token) {
  constexpr size_t kVectors = kSteps * F::kVectors;
  const typename F::template Decoder<V> decoder;
  const float* x = block.x.data() + token * block.x.stride();
  float* y = block.y.data() + token * block.y.stride() + col;
  V sums[kTokens][kVectors];
  HEADRACE_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    HEADRACE_UNROLL
    for (size_t j = 0; j < kVectors; ++j) {
      sums[t][j] =
          block.is_first ? V::broadcast(0.0F) : like_weights<V, F>(V::load(y + t * block.y.stride() + j * kLanes));
    }
  }
  for (size_t r = 0; r < block.weights.rows; ++r) {
    const WeightRow row = block.weights.row(r);
    V factors[kTokens];
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) factors[t] = V::broadcast(x[t * block.x.stride() + r]);
    HEADRACE_UNROLL
    for (size_t s = 0; s < kSteps; ++s) {
      V w[F::kVectors];
      decoder.decode(row, col + s * kStepColumns<F>, w);
      HEADRACE_UNROLL
      for (size_t j = 0; j < F::kVectors; ++j) {
        HEADRACE_UNROLL
        for (size_t t = 0; t < kTokens; ++t) {
          V& total = sums[t][s * F::kVectors + j];
          total = fma(factors[t], w[j], total);
        }
      }
    }
  }
  HEADRACE_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    HEADRACE_UNROLL
    for (size_t j = 0; j < kVectors; ++j) {
      like_columns<V, F>(sums[t][j]).store(y + t * block.y.stride() + j * kLanes);
    }
  }
}

/// The last columns of the matrix, fewer than a vector, for one token.
template <Vector V, class F>
void multiply_last_columns(const RowBlock& block, size_t col, size_t token) {
  const typename F::template Decoder<V> decoder;
  const size_t rest = block.weights.cols - col;
  const float* x = block.x.data() + token * block.x.stride();
  float* y = block.y.data() + token * block.y.stride() + col;
  V total = block.is_first ? V::broadcast(0.0F) : load_first<V>(y, rest);
  for (size_t r = 0; r < block.weights.rows; ++r) {
    total = fma(V::broadcast(x[r]), decode_tail<V, F>(decoder, block.weights.row(r), col, rest), total);
  }
  store_first(total, y, rest);
}

/// All columns for kTokens tokens from `token` on.
template <Vector V, class F, size_t kTokens>
void multiply_all_columns(const RowBlock& block, size_t token) {
  // The registers hold the same number of sums however many tokens there are.
  constexpr size_t kVectors = V::kColumnVectors * (V::kColumnTokens / kTokens);
  constexpr size_t kSteps = std::max<size_t>(kVectors / F::kVectors, 1);
  const size_t cols = block.weights.cols;
  size_t col = 0;
  for (; col + kSteps * kStepColumns<F> <= cols; col += kSteps * kStepColumns<F>) {
    multiply_columns<V, F, kSteps, kTokens>(block, col, token);
  }
  for (; col + kStepColumns<F> <= cols; col += kStepColumns<F>) multiply_columns<V, F, 1, kTokens>(block, col, token);
  if constexpr (kHasTail<F>) {
    if (col == cols) return;
    for (size_t t = 0; t < kTokens; ++t) multiply_last_columns<V, F>(block, col, token + t);
  }
}

template <Vector V, class F>
void multiply_row_block(const RowBlock& block) {
  size_t token = 0;
  if constexpr (V::kColumnTokens > 1) {
    for (; token + V::kColumnTokens <= block.x.rows(); token += V::kColumnTokens) {
      multiply_all_columns<V, F, V::kColumnTokens>(block, token);
    }
  }
  for (; token < block.x.rows(); ++token) multiply_all_columns<V, F, 1>(block, token);
}

template <Vector V, class F>
void matmul_transposed(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  // At least once: a sum over no rows is zero.
  for (size_t row = 0; row == 0 || row < weights.rows; row += kTransposedRows) {
    const size_t count = std::min(kTransposedRows, weights.rows - row);
    multiply_row_block<V, F>({weights.row_range(row, count), x.col_range(row, count), y, row == 0});
  }
}

}  // namespace headrace
