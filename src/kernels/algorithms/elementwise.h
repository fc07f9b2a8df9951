#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "kernels/algorithms/partial.h"
#include "kernels/isa/vector.h"

namespace headrace {

/// out[i] = operation(in[i]...) for all i. `out` may be one of the inputs.
template <Vector V, class Operation, class... Inputs>
void apply(const Operation& operation, std::span<float> out, const Inputs&... in) {
  const size_t whole = out.size() - out.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) operation(V::load(in.data() + i)...).store(out.data() + i);
  const size_t rest = out.size() - whole;
  if (rest > 0) store_first(operation(load_first<V>(in.data() + whole, rest)...), out.data() + whole, rest);
}

template <Vector V>
struct Sum {
  V operator()(V x, V y) const { return y + x; }
};

template <Vector V>
struct ScaledSum {
  V factor;
  V operator()(V x, V y) const { return fma(factor, x, y); }
};

template <Vector V>
void add(std::span<const float> x, std::span<float> y) {
  apply<V>(Sum<V>{}, y, x, y);
}

template <Vector V>
void add_scaled(float factor, std::span<const float> x, std::span<float> y) {
  apply<V>(ScaledSum<V>{V::broadcast(factor)}, y, x, y);
}

/// True when no number is infinite or NaN.
template <Vector V>
bool all_finite(std::span<const float> x) {
  const V zero = V::broadcast(0.0F);
  const V one = V::broadcast(1.0F);
  const V infinity = V::bits(0x7f800000);
  const V magnitude_bits = V::bits(0x7fffffff);
  V found = zero;
  for (size_t i = 0; i < x.size(); i += kLanes) {
    const size_t rest = x.size() - i;
    const V values = rest < kLanes ? load_first<V>(x.data() + i, rest) : V::load(x.data() + i);
    found = select(greater(infinity, bit_and(values, magnitude_bits)), found, one);
  }
  return sum(found) == 0.0F;
}

}  // namespace headrace
