#include <cmath>

#include "kernels/isa/before_region.h"

namespace headrace {
namespace {

/// 16 lanes as plain C++: the reference for every other instruction set.
struct ScalarVector {
  static constexpr size_t kSums = 1;
  static constexpr size_t kTileRows = 1;
  static constexpr size_t kTileTokens = 1;
  static constexpr size_t kPanelRows = 0;
  static constexpr size_t kPanelTokens = 0;
  static constexpr size_t kColumnVectors = 1;
  static constexpr size_t kColumnTokens = 1;

  float lanes[kLanes];

  struct Mask {
    bool lanes[kLanes];
  };

  static ScalarVector broadcast(float value) {
    ScalarVector result;
    for (float& lane : result.lanes) lane = value;
    return result;
  }
  static ScalarVector bits(uint32_t pattern) { return broadcast(std::bit_cast<float>(pattern)); }
  static ScalarVector load(const float* source) {
    ScalarVector result;
    std::memcpy(result.lanes, source, sizeof(result.lanes));
    return result;
  }
  static ScalarVector load_bytes(const std::byte* source) {
    ScalarVector result;
    std::memcpy(result.lanes, source, sizeof(result.lanes));
    return result;
  }
  static ScalarVector load_upper_halves(const std::byte* source) {
    ScalarVector result;
    for (size_t l = 0; l < kLanes; ++l) {
      uint16_t code;
      std::memcpy(&code, source + 2 * l, sizeof(code));
      result.lanes[l] = std::bit_cast<float>(uint32_t{code} << 16);
    }
    return result;
  }
  void store(float* target) const { std::memcpy(target, lanes, sizeof(lanes)); }

  static void look_up(const NibbleTable& table, const std::byte* nibbles, ScalarVector (&out)[2]) {
    for (size_t i = 0; i < 2 * kLanes; ++i) {
      const uint32_t code = std::to_integer<uint32_t>(nibbles[i / 2]) >> (4 * (i % 2)) & 15;
      out[i / kLanes].lanes[i % kLanes] = table.numbers[code];
    }
  }
};

using S = ScalarVector;

uint32_t pattern(float value) {
  return std::bit_cast<uint32_t>(value);
}
float from_pattern(uint32_t value) {
  return std::bit_cast<float>(value);
}

S operator+(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = a.lanes[l] + b.lanes[l];
  return result;
}
S operator-(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = a.lanes[l] - b.lanes[l];
  return result;
}
S operator*(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = a.lanes[l] * b.lanes[l];
  return result;
}
S operator/(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = a.lanes[l] / b.lanes[l];
  return result;
}
S fma(const S& a, const S& b, const S& c) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = std::fma(a.lanes[l], b.lanes[l], c.lanes[l]);
  return result;
}
S square_root(const S& a) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = std::sqrt(a.lanes[l]);
  return result;
}
S bit_and(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = from_pattern(pattern(a.lanes[l]) & pattern(b.lanes[l]));
  return result;
}
S bit_or(const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = from_pattern(pattern(a.lanes[l]) | pattern(b.lanes[l]));
  return result;
}
S shift_right_3(const S& a) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = from_pattern(pattern(a.lanes[l]) >> 3);
  return result;
}
S power_of_two(const S& rounded) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = from_pattern((pattern(rounded.lanes[l]) << 23) + 0x3f800000U);
  return result;
}
S::Mask greater(const S& a, const S& b) {
  S::Mask result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = a.lanes[l] > b.lanes[l];
  return result;
}
S select(const S::Mask& mask, const S& a, const S& b) {
  S result;
  for (size_t l = 0; l < kLanes; ++l) result.lanes[l] = mask.lanes[l] ? a.lanes[l] : b.lanes[l];
  return result;
}
S in_registers(const S& a) {
  return a;
}
S to_look_up_order(const S& a) {
  return a;
}
S to_natural_order(const S& a) {
  return a;
}
float sum(S a) {
  for (size_t distance = kLanes / 2; distance > 0; distance /= 2) {
    for (size_t l = 0; l < distance; ++l) a.lanes[l] += a.lanes[l + distance];
  }
  return a.lanes[0];
}

}  // namespace
}  // namespace headrace

#include "kernels/algorithms/table.h"

namespace headrace {

const Kernels kScalarKernels = make_kernels<ScalarVector>("scalar");

}  // namespace headrace
