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

// Products with many tokens: a block of a few rows is decoded to memory once and meets all tokens from the first cache.
// Sums of 16 lanes wait in memory while the next block of columns is decoded, so they grow exactly as they would in
// registers.

/// Tokens that meet all rows in one pass; their activations should stay in the second cache (1 MiB at 8192 columns).
inline constexpr size_t kPassTokens = 32;
/// Below this many tokens decoding on the way is faster.
inline constexpr size_t kPanelTokensMin = 6;
/// Tiles of rows that share a decoded block: the activations come from the second cache once for all of them.
inline constexpr size_t kPanelTiles = 4;
/// Columns of a decoded block: 16 KiB for eight rows.
inline constexpr size_t kBlockColumns = 512;
/// One line more, so that the rows of a block do not fall on the same sets of the first cache.
inline constexpr size_t kBlockStride = kBlockColumns + kLanes;

template <Vector V>
inline constexpr size_t kPanelRowCount = kPanelTiles* V::kPanelRows;

/// A panel of rows: its decoded block of columns, and the sums of all its products.
template <Vector V>
struct Panel {
  alignas(64) float weights[kPanelRowCount<V>][kBlockStride];
  alignas(64) float sums[kPanelRowCount<V>][kPassTokens][kLanes];
};

/// Columns [col, col + count) of a row as float32, with zeros up to a whole vector.
template <Vector V, class F>
void decode_block(const typename F::template Decoder<V>& decoder, WeightRow row, size_t col, size_t count, float* out) {
  size_t done = 0;
  for (; done + kStepColumns<F> <= count; done += kStepColumns<F>) {
    V values[F::kVectors];
    decoder.decode(row, col + done, values);
    HEADRACE_UNROLL
    for (size_t j = 0; j < F::kVectors; ++j) like_columns<V, F>(values[j]).store(out + done + j * kLanes);
  }
  if constexpr (kHasTail<F>) {
    if (done < count) decode_tail<V, F>(decoder, row, col + done, count - done).store(out + done);
  }
}

/// Adds the products of kRows decoded rows from `row` on with kTokens tokens over `count` columns to their sums. `x` is
/// the first of these columns of the first token.
template <Vector V, size_t kRows, size_t kTokens>
void multiply_block(Panel<V>& panel, size_t row, size_t token, const float* x, size_t x_stride, size_t count) {
  V sums[kRows][kTokens];
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) sums[r][t] = V::load(panel.sums[row + r][token + t]);
  }
  const float* weights = panel.weights[row];
  size_t col = 0;
  for (; col + kLanes <= count; col += kLanes) {
    V w[kRows];
    HEADRACE_UNROLL
    for (size_t r = 0; r < kRows; ++r) w[r] = in_registers(V::load(weights + r * kBlockStride + col));
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const V activations = in_registers(V::load(x + t * x_stride + col));

      HEADRACE_UNROLL
      for (size_t r = 0; r < kRows; ++r) sums[r][t] = fma(w[r], activations, sums[r][t]);
    }
  }
  if (col < count) {
    for (size_t t = 0; t < kTokens; ++t) {
      const V activations = load_first<V>(x + t * x_stride + col, count - col);
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][t] = fma(V::load(weights + r * kBlockStride + col), activations, sums[r][t]);
      }
    }
  }
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) sums[r][t].store(panel.sums[row + r][token + t]);
  }
}

/// All tokens against one block of columns of all rows of the panel.
template <Vector V>
void multiply_panel_block(Panel<V>& panel, MatrixView<const float> x, size_t col, size_t count) {
  size_t token = 0;
  for (; token + V::kPanelTokens <= x.rows(); token += V::kPanelTokens) {
    for (size_t row = 0; row < kPanelRowCount<V>; row += V::kPanelRows) {
      multiply_block<V, V::kPanelRows, V::kPanelTokens>(panel, row, token, x.data() + token * x.stride() + col,
                                                        x.stride(), count);
    }
  }
  for (; token < x.rows(); ++token) {
    for (size_t row = 0; row < kPanelRowCount<V>; row += V::kPanelRows) {
      multiply_block<V, V::kPanelRows, 1>(panel, row, token, x.data() + token * x.stride() + col, x.stride(), count);
    }
  }
}

/// At most kPassTokens tokens. A last panel that lacks rows repeats the last row in their places.
template <Vector V, class F>
void multiply_many(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  const typename F::template Decoder<V> decoder;
  Panel<V> panel;
  for (size_t first = 0; first < weights.rows; first += kPanelRowCount<V>) {
    const size_t row_count = std::min(kPanelRowCount<V>, weights.rows - first);
    for (auto& row_sums : panel.sums) {
      for (size_t t = 0; t < x.rows(); ++t) V::broadcast(0.0F).store(row_sums[t]);
    }
    for (size_t col = 0; col < weights.cols; col += kBlockColumns) {
      const size_t count = std::min(kBlockColumns, weights.cols - col);
      for (size_t r = 0; r < kPanelRowCount<V>; ++r) {
        decode_block<V, F>(decoder, weights.row(first + std::min(r, row_count - 1)), col, count, panel.weights[r]);
      }
      multiply_panel_block<V>(panel, x, col, count);
    }
    for (size_t t = 0; t < x.rows(); ++t) {
      for (size_t r = 0; r < row_count; ++r) y.data()[t * y.stride() + first + r] = sum(V::load(panel.sums[r][t]));
    }
  }
}

}  // namespace headrace
