#pragma once

#include <cstddef>
#include <span>

#include "base/views.h"
#include "kernels/algorithms/partial.h"
#include "kernels/algorithms/unroll.h"
#include "kernels/isa/vector.h"
#include "kernels/kernels.h"

namespace headrace {

/// The delta rule on kVectors neighbouring vectors of columns from `col` on. The decayed state is computed twice, from
/// the same bits to the same bits, rather than stored and loaded once more.
template <Vector V, size_t kVectors, class Access>
void delta_rule_columns(const Kernels::DeltaInputs& inputs, MatrixView<float> state, std::span<float> out, size_t col,
                        const Access& access) {
  const size_t rows = state.rows();
  V rest[kVectors];
  HEADRACE_UNROLL
  for (size_t j = 0; j < kVectors; ++j) rest[j] = V::broadcast(0.0F);
  const float* old_row = state.data() + col;
  for (size_t d = 0; d < rows; ++d, old_row += state.stride()) {
    const V decay = V::broadcast(inputs.decay.data()[d]);
    const V key = V::broadcast(inputs.k.data()[d]);
    HEADRACE_UNROLL
    for (size_t j = 0; j < kVectors; ++j) {
      rest[j] = fma(key, decay * access.load(old_row + j * kLanes), rest[j]);
    }
  }
  V result[kVectors];
  HEADRACE_UNROLL
  for (size_t j = 0; j < kVectors; ++j) {
    rest[j] = access.load(inputs.v.data() + col + j * kLanes) - rest[j];
    result[j] = V::broadcast(0.0F);
  }
  float* row = state.data() + col;
  for (size_t d = 0; d < rows; ++d, row += state.stride()) {
    const V decay = V::broadcast(inputs.decay.data()[d]);
    const V step = V::broadcast(inputs.beta * inputs.k.data()[d]);
    const V query = V::broadcast(inputs.q.data()[d]);
    HEADRACE_UNROLL
    for (size_t j = 0; j < kVectors; ++j) {
      const V updated = fma(step, rest[j], decay * access.load(row + j * kLanes));
      access.store(updated, row + j * kLanes);
      result[j] = fma(query, updated, result[j]);
    }
  }
  HEADRACE_UNROLL
  for (size_t j = 0; j < kVectors; ++j) access.store(result[j], out.data() + col + j * kLanes);
}

template <Vector V>
void delta_rule(const Kernels::DeltaInputs& inputs, MatrixView<float> state, std::span<float> out) {
  constexpr size_t kWide = V::kColumnVectors * kLanes;
  const size_t cols = state.cols();
  size_t col = 0;
  for (; col + kWide <= cols; col += kWide) {
    delta_rule_columns<V, V::kColumnVectors>(inputs, state, out, col, WholeVector<V>{});
  }
  for (; col + kLanes <= cols; col += kLanes) delta_rule_columns<V, 1>(inputs, state, out, col, WholeVector<V>{});
  if (col < cols) delta_rule_columns<V, 1>(inputs, state, out, col, PartOfVector<V>{cols - col});
}

}  // namespace headrace
