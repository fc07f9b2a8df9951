#pragma once

#include "kernels/algorithms/exponential.h"
#include "kernels/isa/vector.h"

namespace headrace {

template <Vector V>
[[gnu::always_inline]] inline V magnitude(V x) {
  return bit_and(x, V::bits(0x7fffffff));
}

/// exp(-|x|), which cannot overflow.
template <Vector V>
[[gnu::always_inline]] inline V exp_of_minus_magnitude(V x) {
  return exp(bit_or(x, V::bits(0x80000000)));
}

/// 1 / (1 + exp(-x)), accurate for very negative x too.
template <Vector V>
[[gnu::always_inline]] inline V sigmoid(V x) {
  const V one = V::broadcast(1.0F);
  const V t = exp_of_minus_magnitude(x);
  return select(greater(V::broadcast(0.0F), x), t, one) / (one + t);
}

/// tanh|x| = e / (e + 2) with e = exp(2|x|) - 1; beyond |x| = 20 that is 1.
template <Vector V>
[[gnu::always_inline]] inline V tanh(V x) {
  const V highest = V::broadcast(40.0F);
  V twice = magnitude(x) + magnitude(x);
  twice = select(greater(twice, highest), highest, twice);
  const V e = exp_minus_one(twice);
  return bit_or(e / (e + V::broadcast(2.0F)), bit_and(x, V::bits(0x80000000)));
}

/// log(1 + t) for 0 <= t <= 1, as u (1 + s^2/3 + s^4/5 + ...) with s = t / (2 + t) <= 1/3 and u = 2s: accurate relative
/// to t however small. The first term left out, s^18/19, is below 2e-10.
template <Vector V>
[[gnu::always_inline]] inline V log_of_one_plus(V t) {
  const V u = t / fma(V::broadcast(0.5F), t, V::broadcast(1.0F));
  const V s = V::broadcast(0.5F) * u;
  const V s2 = s * s;
  V p = V::broadcast(1.0F / 17.0F);
  p = fma(p, s2, V::broadcast(1.0F / 15.0F));
  p = fma(p, s2, V::broadcast(1.0F / 13.0F));
  p = fma(p, s2, V::broadcast(1.0F / 11.0F));
  p = fma(p, s2, V::broadcast(1.0F / 9.0F));
  p = fma(p, s2, V::broadcast(1.0F / 7.0F));
  p = fma(p, s2, V::broadcast(1.0F / 5.0F));
  p = fma(p, s2, V::broadcast(1.0F / 3.0F));
  return fma(u, s2 * p, u);
}

/// log(1 + exp(x)), and x itself above 20 (spec 5.4).
template <Vector V>
[[gnu::always_inline]] inline V softplus(V x) {
  const V zero = V::broadcast(0.0F);
  const V rectified = select(greater(x, zero), x, zero);
  const V curved = rectified + log_of_one_plus(exp_of_minus_magnitude(x));
  return select(greater(x, V::broadcast(20.0F)), x, curved);
}

}  // namespace headrace
