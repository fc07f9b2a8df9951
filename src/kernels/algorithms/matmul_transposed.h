#pragma once

#include <cstddef>

#include "base/views.h"
#include "formats/format.h"
#include "kernels/algorithms/decode.h"
#include "kernels/algorithms/partial.h"
#include "kernels/algorithms/unroll.h"
#include "kernels/isa/vector.h"

namespace headrace {

/// kSteps decoding steps of neighbouring columns from `col` on, for kTokens tokens from `token` on.
template <Vector V, class F, size_t kSteps, size_t kTokens>
void multiply_columns(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, size_t col,
                      size_t token) {
  constexpr size_t kVectors = kSteps * F::kVectors;
  const typename F::template Decoder<V> decoder;
  V sums[kTokens][kVectors];
  HEADRACE_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    HEADRACE_UNROLL
    for (size_t j = 0; j < kVectors; ++j) sums[t][j] = V::broadcast(0.0F);
  }
  for (size_t r = 0; r < weights.rows; ++r) {
    const WeightRow row = weights.row(r);
    V factors[kTokens];
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) factors[t] = V::broadcast(x.data()[(token + t) * x.stride() + r]);
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
      like_columns<V, F>(sums[t][j]).store(y.data() + (token + t) * y.stride() + col + j * kLanes);
    }
  }
}

/// The last columns of the matrix, fewer than a vector, for one token.
template <Vector V, class F>
void multiply_last_columns(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, size_t col,
                           size_t token) {
  const typename F::template Decoder<V> decoder;
  const size_t rest = weights.cols - col;
  const float* factors = x.data() + token * x.stride();
  V total = V::broadcast(0.0F);
  for (size_t r = 0; r < weights.rows; ++r) {
    total = fma(V::broadcast(factors[r]), decode_tail<V, F>(decoder, weights.row(r), col, rest), total);
  }
  store_first(total, y.data() + token * y.stride() + col, rest);
}

/// All columns for kTokens tokens from `token` on.
template <Vector V, class F, size_t kTokens>
void multiply_transposed(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, size_t token) {
  constexpr size_t kSteps = V::kColumnVectors > F::kVectors ? V::kColumnVectors / F::kVectors : 1;
  constexpr size_t kWide = kSteps * kStepColumns<F>;
  size_t col = 0;
  for (; col + kWide <= weights.cols; col += kWide) multiply_columns<V, F, kSteps, kTokens>(weights, x, y, col, token);
  for (; col + kStepColumns<F> <= weights.cols; col += kStepColumns<F>) {
    multiply_columns<V, F, 1, kTokens>(weights, x, y, col, token);
  }
  if constexpr (kHasTail<F>) {
    if (col == weights.cols) return;
    for (size_t t = 0; t < kTokens; ++t) multiply_last_columns<V, F>(weights, x, y, col, token + t);
  }
}

template <Vector V, class F>
void matmul_transposed(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  size_t token = 0;
  if constexpr (V::kColumnTokens > 1) {
    for (; token + V::kColumnTokens <= x.rows(); token += V::kColumnTokens) {
      multiply_transposed<V, F, V::kColumnTokens>(weights, x, y, token);
    }
  }
  for (; token < x.rows(); ++token) multiply_transposed<V, F, 1>(weights, x, y, token);
}

}  // namespace headrace
