#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "kernels/algorithms/elementwise.h"
#include "kernels/algorithms/exponential.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V>
V greatest(V a, V b) {
  return select(greater(b, a), b, a);
}

/// Largest of scale * x; NaN never counts.
template <Vector V>
float largest_scaled(std::span<const float> x, float scale) {
  const V factor = V::broadcast(scale);
  V best = V::broadcast(-std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < x.size(); i += kLanes) {
    const size_t rest = x.size() - i;
    // Lanes behind the end repeat a number that takes part anyway.
    const V values = rest < kLanes ? load_first<V>(x.data() + i, rest, x.data()[i]) : V::load(x.data() + i);
    best = greatest(best, factor * values);
  }
  float lanes[kLanes];
  best.store(lanes);
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

template <Vector V>
struct ShiftedExponential {
  V scale;
  V shift;
  V operator()(V x) const { return exp(scale * x - shift); }
};

template <Vector V>
struct Quotient {
  V divisor;
  V operator()(V x) const { return x / divisor; }
};

template <Vector V>
float sum_by_lanes(std::span<const float> x) {
  V total = V::broadcast(0.0F);
  for (size_t i = 0; i < x.size(); i += kLanes) {
    const size_t rest = x.size() - i;
    total = total + (rest < kLanes ? load_first<V>(x.data() + i, rest) : V::load(x.data() + i));
  }
  return sum(total);
}

template <Vector V>
void softmax(std::span<const float> x, float scale, std::span<float> out) {
  const V largest = V::broadcast(largest_scaled<V>(x, scale));
  apply<V>(ShiftedExponential<V>{V::broadcast(scale), largest}, out, x);
  const V total = V::broadcast(sum_by_lanes<V>(out));
  apply<V>(Quotient<V>{total}, out, out);
}

}  // namespace headrace
