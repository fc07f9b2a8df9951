#pragma once

#include <span>

#include "kernels/algorithms/elementwise.h"
#include "kernels/algorithms/functions.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V>
struct UnboundedDecay {
  V minus_a;
  V operator()(V logit, V bias) const { return exp(minus_a * softplus(logit + bias)); }
};

template <Vector V>
struct BoundedDecay {
  V a;
  V lower_bound;
  V operator()(V logit, V bias) const { return exp(lower_bound * sigmoid(a * (logit + bias))); }
};

template <Vector V>
void decay_unbounded(std::span<const float> logit, std::span<const float> bias, float a, std::span<float> decay) {
  apply<V>(UnboundedDecay<V>{V::broadcast(-a)}, decay, logit, bias);
}

template <Vector V>
void decay_bounded(std::span<const float> logit, std::span<const float> bias, float a, float lower_bound,
                   std::span<float> decay) {
  apply<V>(BoundedDecay<V>{V::broadcast(a), V::broadcast(lower_bound)}, decay, logit, bias);
}

}  // namespace headrace
