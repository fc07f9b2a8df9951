#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "formats/format.h"
#include "kernels/algorithms/partial.h"
#include "kernels/isa/vector.h"

namespace headrace {

/// Columns of a format that are decoded at once.
template <class F>
inline constexpr size_t kStepColumns = F::kVectors* kLanes;

/// True when rows of the format can end inside a step.
template <class F>
inline constexpr bool kHasTail = F::kColumnMultiple % kStepColumns<F> != 0;

/// Activations in the order of the weights of a format.
template <Vector V, class F>
V like_weights(V activations) {
  if constexpr (F::kInLookUpOrder) return to_look_up_order(activations);
  return activations;
}

/// Decoded weights, or sums over them, in the order of columns.
template <Vector V, class F>
V like_columns(V weights) {
  if constexpr (F::kInLookUpOrder) return to_natural_order(weights);
  return weights;
}

/// The last `count` columns of a row, from `col` on, and zeros behind them. Reads nothing past the row.
template <Vector V, class F>
V decode_tail(const typename F::template Decoder<V>& decoder, WeightRow row, size_t col, size_t count) {
  static_assert(F::kVectors == 1 && F::kColumnMultiple == 1);
  std::byte block[kLanes * F::kElementBytes] = {};
  std::memcpy(block, row.data + col * F::kElementBytes, count * F::kElementBytes);
  V out[1];
  decoder.decode({block, nullptr}, 0, out);
  return out[0];
}

template <Vector V, class F>
void decode_row(const WeightView& weights, size_t row_index, std::span<float> out) {
  const typename F::template Decoder<V> decoder;
  const WeightRow row = weights.row(row_index);
  size_t col = 0;
  for (; col + kStepColumns<F> <= weights.cols; col += kStepColumns<F>) {
    V values[F::kVectors];
    decoder.decode(row, col, values);
    for (size_t j = 0; j < F::kVectors; ++j) like_columns<V, F>(values[j]).store(out.data() + col + j * kLanes);
  }
  if constexpr (kHasTail<F>) {
    const size_t rest = weights.cols - col;
    if (rest > 0) store_first(decode_tail<V, F>(decoder, row, col, rest), out.data() + col, rest);
  }
}

}  // namespace headrace
