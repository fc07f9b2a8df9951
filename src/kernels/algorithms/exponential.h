#pragma once

#include "kernels/isa/vector.h"

namespace headrace {

// Powers of e, from x = n ln 2 + r with a whole n and |r| <= ln(2) / 2. The constant kRounder pushes the fraction out
// of a float32: t = x / ln 2 + kRounder holds n in its low bits, and t - kRounder is n.
inline constexpr float kRounder = 0x1.8p23F;
inline constexpr float kLog2E = 0x1.715476p0F;
// ln 2 in two parts; the product of the first with a small whole number is exact.
inline constexpr float kLn2High = 0x1.63p-1F;
inline constexpr float kLn2Low = -0x1.bd0106p-13F;

/// What is left of x after n times ln 2 are taken away.
template <Vector V>
[[gnu::always_inline]] inline V reduce_by_ln2(V x, V n) {
  const V r = fma(n, V::broadcast(-kLn2High), x);
  return fma(n, V::broadcast(-kLn2Low), r);
}

/// exp(r) - 1 for |r| <= ln(2) / 2: the Taylor series to r^7, whose next term is below 6e-9 of r.
template <Vector V>
[[gnu::always_inline]] inline V exp_minus_one_near_zero(V r) {
  V p = V::broadcast(1.0F / 5040.0F);
  p = fma(p, r, V::broadcast(1.0F / 720.0F));
  p = fma(p, r, V::broadcast(1.0F / 120.0F));
  p = fma(p, r, V::broadcast(1.0F / 24.0F));
  p = fma(p, r, V::broadcast(1.0F / 6.0F));
  p = fma(p, r, V::broadcast(0.5F));
  return fma(r * r, p, r);
}

/// exp(x): 0 below -104, infinity above 88.73, subnormal results rounded once. NaN stays NaN.
template <Vector V>
[[gnu::always_inline]] inline V exp(V x) {
  const V rounder = V::broadcast(kRounder);
  const V highest = V::broadcast(89.0F);
  const V lowest = V::broadcast(-105.0F);
  x = select(greater(x, highest), highest, x);
  x = select(greater(lowest, x), lowest, x);
  const V n = fma(x, V::broadcast(kLog2E), rounder) - rounder;
  const V value = exp_minus_one_near_zero(reduce_by_ln2(x, n)) + V::broadcast(1.0F);
  // 2^n alone can leave the range of normal numbers; in two halves only the last product rounds.
  const V first = fma(n, V::broadcast(0.5F), rounder);
  const V second = (n - (first - rounder)) + rounder;
  return value * power_of_two(first) * power_of_two(second);
}

/// exp(x) - 1 for 0 <= x <= 40, accurate at 0 as well. NaN stays NaN.
template <Vector V>
[[gnu::always_inline]] inline V exp_minus_one(V x) {
  const V rounder = V::broadcast(kRounder);
  const V rounded = fma(x, V::broadcast(kLog2E), rounder);
  const V power = power_of_two(rounded);
  return fma(power, exp_minus_one_near_zero(reduce_by_ln2(x, rounded - rounder)), power - V::broadcast(1.0F));
}

template <Vector V>
float exp_of_one(float x) {
  float lanes[kLanes];
  exp(V::broadcast(x)).store(lanes);
  return lanes[0];
}

}  // namespace headrace
