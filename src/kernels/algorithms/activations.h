#pragma once

#include <span>

#include "kernels/algorithms/elementwise.h"
#include "kernels/algorithms/functions.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V>
struct Sigmoid {
  V operator()(V x) const { return sigmoid(x); }
};

template <Vector V>
struct SigmoidProduct {
  V operator()(V x, V gate) const { return x * sigmoid(gate); }
};

template <Vector V>
struct SwiGlu {
  V operator()(V gate, V up) const { return gate * sigmoid(gate) * up; }
};

/// SiTU with a linear branch as it is.
template <Vector V>
struct Situ {
  V beta;
  V operator()(V gate, V up) const { return beta * tanh(gate / beta) * sigmoid(gate) * up; }
};

/// SiTU with a squashed linear branch.
template <Vector V>
struct SituSquashed {
  V beta;
  V linear_beta;
  V operator()(V gate, V up) const { return Situ<V>{beta}(gate, linear_beta * tanh(up / linear_beta)); }
};

template <Vector V>
void sigmoid_of_all(std::span<const float> x, std::span<float> out) {
  apply<V>(Sigmoid<V>{}, out, x);
}

template <Vector V>
void sigmoid_multiply(std::span<const float> x, std::span<const float> gate, std::span<float> out) {
  apply<V>(SigmoidProduct<V>{}, out, x, gate);
}

template <Vector V>
void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> out) {
  apply<V>(SwiGlu<V>{}, out, gate, up);
}

template <Vector V>
void situ(std::span<const float> gate, std::span<const float> up, float beta, float linear_beta, std::span<float> out) {
  if (linear_beta == 0.0F) {
    apply<V>(Situ<V>{V::broadcast(beta)}, out, gate, up);
  } else {
    apply<V>(SituSquashed<V>{V::broadcast(beta), V::broadcast(linear_beta)}, out, gate, up);
  }
}

}  // namespace headrace
