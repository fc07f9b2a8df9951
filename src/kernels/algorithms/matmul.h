#pragma once

#include <algorithm>
#include <cstddef>

#include "base/views.h"
#include "formats/format.h"
#include "kernels/algorithms/matmul_few.h"
#include "kernels/algorithms/matmul_many.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V, class F>
void multiply_pass(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  if constexpr (V::kPanelRows * V::kPanelTokens > 0) {
    if (x.rows() >= kPanelTokensMin) return multiply_many<V, F>(weights, x, y);
  }
  multiply_few<V, F>(weights, x, y);
}

template <Vector V, class F>
void matmul(const WeightView& weights, MatrixView<const float> x, MatrixView<float> y) {
  for (size_t token = 0; token < x.rows(); token += kPassTokens) {
    const size_t count = std::min(x.rows() - token, kPassTokens);
    multiply_pass<V, F>(weights, {x.data() + token * x.stride(), count, x.cols(), x.stride()},
                        {y.data() + token * y.stride(), count, y.cols(), y.stride()});
  }
}

}  // namespace headrace
