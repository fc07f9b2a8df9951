#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::test {

/// A reproducible stream of numbers, the same on every processor: integers only until the last step.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}

  uint32_t bits() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(uint64_t{bits()} * limit >> 32); }
  /// Uniform in [-1, 1).
  float unit() { return static_cast<float>(static_cast<int32_t>(bits()) >> 8) * 0x1p-23F; }

 private:
  uint64_t state_;
};

/// What a test feeds to a kernel.
enum class Inputs { kOrdinary, kDenormal, kHuge, kZeros, kAnything };
inline constexpr Inputs kAllInputs[] = {Inputs::kOrdinary, Inputs::kDenormal, Inputs::kHuge, Inputs::kZeros,
                                        Inputs::kAnything};

inline float number(Numbers& numbers, Inputs inputs) {
  switch (inputs) {
    case Inputs::kOrdinary:
      return 4.0F * numbers.unit();
    case Inputs::kDenormal:  // Subnormal, or so small that products underflow.
      return numbers.below(2) ? std::bit_cast<float>(numbers.bits() & 0x807fffffU) : numbers.unit() * 0x1p-70F;
    case Inputs::kHuge:
      return numbers.unit() * (numbers.below(2) ? 0x1.8p127F : 0x1p60F);
    case Inputs::kZeros:
      return numbers.below(3) ? (numbers.below(2) ? -0.0F : 0.0F) : numbers.unit() * 0x1p-100F;
    case Inputs::kAnything:  // Every pattern, infinities and NaN now and then.
      if (numbers.below(64) == 0) return std::bit_cast<float>(numbers.below(2) ? 0x7f800000U : 0xffc00000U);
      return numbers.below(2) ? std::bit_cast<float>(numbers.bits()) : 30.0F * numbers.unit();
  }
  return 0.0F;
}

inline std::vector<float> many_numbers(Numbers& numbers, Inputs inputs, size_t count) {
  std::vector<float> result(count);
  for (float& value : result) value = number(numbers, inputs);
  return result;
}

/// The same number for our promise: equal bits, or NaN of any kind.
inline bool same_number(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

/// Distance between the float32 numbers next to `value`: the unit in which errors of functions are given.
inline double unit_in_last_place(double value) {
  const int exponent = std::ilogb(std::fabs(value) + 0x1p-149);
  return std::ldexp(1.0, std::max(exponent, -126) - 23);
}

}  // namespace headrace::test
