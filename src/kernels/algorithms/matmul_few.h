#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/views.h"
#include "formats/format.h"
#include "kernels/algorithms/decode.h"
#include "kernels/algorithms/partial.h"
#include "kernels/algorithms/unroll.h"
#include "kernels/isa/vector.h"

namespace headrace {

// Products with one or a few tokens: each weight is decoded on its way to the multiply-add.

/// Where a tile of the result lies.
struct TilePosition {
  size_t row;
  size_t token;
};

/// Formats whose decoding takes longer than reading: two numbers or more a byte.
template <class F>
inline constexpr bool kIsPacked = F::row_bytes(32) <= 16;

/// Rows that are read side by side. The more of them, the more reads are under way at once; but decoding packed formats
/// needs registers too.
template <Vector V, class F>
inline constexpr size_t kRowsAtOnce = kIsPacked<F> ? std::min<size_t>(V::kTileRows, 4) : V::kTileRows;

/// Asks for the part of the next kRows rows that lies where this step lies in the current ones, line by line in the
/// order of memory. Packed formats need it: they spend so long on a line that the processor's own prefetch falls
/// behind; the others lose by it (docs/notes/2026-11-29-kernels.md). An address past the matrix is harmless: a prefetch
/// cannot fault.
template <class F, size_t kRows>
void prefetch_next_rows(const WeightView& weights, size_t row, size_t col) {
  constexpr size_t kLineBytes = 64;
  if constexpr (kIsPacked<F> && kRows * F::row_bytes(kStepColumns<F>) == kLineBytes) {
    const auto next = reinterpret_cast<uintptr_t>(weights.data) + (row + kRows) * weights.row_bytes;
    __builtin_prefetch(reinterpret_cast<const void*>(next + F::row_bytes(col) * kRows));
  }
}

/// kRows x kTokens results at once: a weight is decoded once for all tokens, an activation loaded once for all rows,
/// and as many sums run side by side as hide the latency of the multiply-add.
template <Vector V, class F, size_t kRows, size_t kTokens>
void multiply_tile(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, TilePosition at) {
  const typename F::template Decoder<V> decoder;
  WeightRow rows[kRows];
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) rows[r] = weights.row(at.row + r);
  const float* tokens = x.data() + at.token * x.stride();
  V sums[kRows][kTokens];
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) sums[r][t] = V::broadcast(0.0F);
  }
  size_t col = 0;
  for (; col + kStepColumns<F> <= weights.cols; col += kStepColumns<F>) {
    prefetch_next_rows<F, kRows>(weights, at.row, col);
    V activations[kTokens][F::kVectors];
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      HEADRACE_UNROLL
      for (size_t j = 0; j < F::kVectors; ++j) {
        activations[t][j] = in_registers(like_weights<V, F>(V::load(tokens + t * x.stride() + col + j * kLanes)));
      }
    }
    HEADRACE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      V w[F::kVectors];
      decoder.decode(rows[r], col, w);
      HEADRACE_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        HEADRACE_UNROLL
        for (size_t j = 0; j < F::kVectors; ++j) sums[r][t] = fma(w[j], activations[t][j], sums[r][t]);
      }
    }
  }
  if constexpr (kHasTail<F>) {
    const size_t rest = weights.cols - col;
    if (rest > 0) {
      for (size_t r = 0; r < kRows; ++r) {
        const V w = decode_tail<V, F>(decoder, rows[r], col, rest);
        for (size_t t = 0; t < kTokens; ++t) {
          sums[r][t] = fma(w, load_first<V>(tokens + t * x.stride() + col, rest), sums[r][t]);
        }
      }
    }
  }
  HEADRACE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    HEADRACE_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      y.data()[(at.token + t) * y.stride() + at.row + r] = sum(like_columns<V, F>(sums[r][t]));
    }
  }
}

/// `row_count` rows for kTokens tokens.
template <Vector V, class F, size_t kTokens>
void multiply_rows(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, TilePosition at,
                   size_t row_count) {
  constexpr size_t kRows = std::min(kRowsAtOnce<V, F>, std::max<size_t>(std::bit_floor(V::kSums / kTokens), 1));
  const size_t end = at.row + row_count;
  for (; at.row + kRows <= end; at.row += kRows) multiply_tile<V, F, kRows, kTokens>(weights, x, y, at);
  for (; at.row < end; ++at.row) multiply_tile<V, F, 1, kTokens>(weights, x, y, at);
}

/// `row_count` rows for all tokens from `at.token` on, kTokens at a time, then fewer.
template <Vector V, class F, size_t kTokens>
void multiply_tokens(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y, TilePosition at,
                     size_t row_count) {
  for (; at.token + kTokens <= x.rows(); at.token += kTokens) {
    multiply_rows<V, F, kTokens>(weights, x, y, at, row_count);
  }
  if constexpr (kTokens > 1) multiply_tokens<V, F, kTokens - 1>(weights, x, y, at, row_count);
}

/// A few rows meet all tokens before the next rows are touched: weights come from memory once.
template <Vector V, class F>
void multiply_few(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  constexpr size_t kRows = kRowsAtOnce<V, F>;
  for (size_t row = 0; row < weights.rows; row += kRows) {
    const size_t row_count = std::min(kRows, weights.rows - row);
    multiply_tokens<V, F, V::kTileTokens>(weights, x, y, {row, 0}, row_count);
  }
}

}  // namespace headrace
