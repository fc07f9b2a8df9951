#pragma once

#include <cstddef>
#include <span>

#include "kernels/algorithms/elementwise.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V>
float sum_of_squares(std::span<const float> x) {
  V total = V::broadcast(0.0F);
  for (size_t i = 0; i < x.size(); i += kLanes) {
    const size_t rest = x.size() - i;
    const V values = rest < kLanes ? load_first<V>(x.data() + i, rest) : V::load(x.data() + i);
    total = fma(values, values, total);
  }
  return sum(total);
}

/// sqrt(value) in every lane.
template <Vector V>
V root(float value) {
  return square_root(V::broadcast(value));
}

/// sqrt(mean(x^2) + epsilon) in every lane.
template <Vector V>
V root_mean_square(std::span<const float> x, float epsilon) {
  return root<V>(sum_of_squares<V>(x) / static_cast<float>(x.size()) + epsilon);
}

template <Vector V>
struct DividedProduct {
  V divisor;
  V operator()(V x, V factor) const { return x / divisor * factor; }
};

template <Vector V>
struct DividedAndScaled {
  V divisor;
  V scale;
  V operator()(V x) const { return x / divisor * scale; }
};

template <Vector V>
void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon, std::span<float> out) {
  apply<V>(DividedProduct<V>{root_mean_square<V>(x, epsilon)}, out, x, weight);
}

template <Vector V>
void l2_normalize(std::span<const float> x, float epsilon, float scale, std::span<float> out) {
  const V divisor = root<V>(sum_of_squares<V>(x) + epsilon);
  apply<V>(DividedAndScaled<V>{divisor, V::broadcast(scale)}, out, x);
}

template <Vector V>
float residual_score(std::span<const float> v, std::span<const float> weight, float epsilon) {
  const V divisor = root_mean_square<V>(v, epsilon);
  V total = V::broadcast(0.0F);
  for (size_t i = 0; i < v.size(); i += kLanes) {
    const size_t rest = v.size() - i;
    const bool whole = rest >= kLanes;
    const V values = whole ? V::load(v.data() + i) : load_first<V>(v.data() + i, rest);
    const V weights = whole ? V::load(weight.data() + i) : load_first<V>(weight.data() + i, rest);
    total = fma(values / divisor, weights, total);
  }
  return sum(total);
}

}  // namespace headrace
