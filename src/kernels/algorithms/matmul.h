#pragma once

#include <cstddef>

#include "base/views.h"
#include "formats/format.h"
#include "kernels/algorithms/decode.h"
#include "kernels/algorithms/partial.h"
#include "kernels/algorithms/unroll.h"
#include "kernels/isa/vector.h"

namespace headrace {

/// Where a tile of the result lies.
struct TilePosition {
  size_t row;
  size_t token;
};

/// kRows x kTokens results at once: a weight is decoded once for all tokens, an activation loaded once for all rows,
/// and as many sums run side by side as hide the latency of the multiply-add.
template <Vector V, class F, size_t kRows, size_t kTokens>
void multiply_tile(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, TilePosition at) {
  const typename F::template Decoder<V> decoder;
  WeightRow rows[kRows];
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) rows[r] = weights.row(at.row + r);
  const float* tokens[kTokens];
  HEADRACE_UNROLL
  for (size_t t = 0; t < kTokens; ++t) tokens[t] = x.data() + (at.token + t) * x.stride();
  V sums[kRows][kTokens];
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) sums[r][t] = V::broadcast(0.0F);
  }
  size_t col = 0;
  for (; col + kStepColumns<F> <= weights.cols; col += kStepColumns<F>) {
    HEADRACE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      V w[F::kVectors];
      decoder.decode(rows[r], col, w);
      HEADRACE_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        HEADRACE_UNROLL
        for (size_t j = 0; j < F::kVectors; ++j) {
          sums[r][t] = fma(w[j], V::load(tokens[t] + col + j * kLanes), sums[r][t]);
        }
      }
    }
  }
  if constexpr (kHasTail<F>) {
    const size_t rest = weights.cols - col;
    if (rest > 0) {
      for (size_t r = 0; r < kRows; ++r) {
        const V w = decode_tail<V, F>(decoder, rows[r], col, rest);
        for (size_t t = 0; t < kTokens; ++t) sums[r][t] = fma(w, load_first<V>(tokens[t] + col, rest), sums[r][t]);
      }
    }
  }
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) y.data()[(at.token + t) * y.stride() + at.row + r] = sum(sums[r][t]);
  }
}

/// All rows for kTokens tokens from `token` on.
template <Vector V, class F, size_t kRows, size_t kTokens>
void multiply_rows(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, size_t token) {
  size_t row = 0;
  for (; row + kRows <= weights.rows; row += kRows) multiply_tile<V, F, kRows, kTokens>(weights, x, y, {row, token});
  for (; row < weights.rows; ++row) multiply_tile<V, F, 1, kTokens>(weights, x, y, {row, token});
}

template <Vector V, class F>
void matmul(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  size_t token = 0;
  if constexpr (V::kTileTokens > 1) {
    constexpr size_t kRows = V::kTileRows / 2;
    for (; token + V::kTileTokens <= x.rows(); token += V::kTileTokens) {
      multiply_rows<V, F, kRows, V::kTileTokens>(weights, x, y, token);
    }
  }
  for (; token < x.rows(); ++token) multiply_rows<V, F, V::kTileRows, 1>(weights, x, y, token);
}

}  // namespace headrace
