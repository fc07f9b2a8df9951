#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/isa/before_region.h"

namespace headrace {
namespace {

/// 16 lanes in four registers. Every aarch64 has these instructions: no region.
struct NeonVector {
  static constexpr size_t kSums = 4;
  static constexpr size_t kTileRows = 4;
  static constexpr size_t kTileTokens = 2;
  static constexpr size_t kPanelRows = 2;
  static constexpr size_t kPanelTokens = 2;
  static constexpr size_t kColumnVectors = 2;
  static constexpr size_t kColumnTokens = 2;
  static constexpr size_t kParts = 4;

  float32x4_t part[kParts];

  struct Mask {
    uint32x4_t part[kParts];
  };

  static NeonVector broadcast(float value) {
    const float32x4_t lanes = vdupq_n_f32(value);
    return {{lanes, lanes, lanes, lanes}};
  }
  static NeonVector bits(uint32_t pattern) {
    const float32x4_t lanes = vreinterpretq_f32_u32(vdupq_n_u32(pattern));
    return {{lanes, lanes, lanes, lanes}};
  }
  static NeonVector load(const float* source) {
    return {{vld1q_f32(source), vld1q_f32(source + 4), vld1q_f32(source + 8), vld1q_f32(source + 12)}};
  }
  static uint8x16_t load_16(const std::byte* source) { return vld1q_u8(reinterpret_cast<const uint8_t*>(source)); }
  static NeonVector load_bytes(const std::byte* source) {
    return {{vreinterpretq_f32_u8(load_16(source)), vreinterpretq_f32_u8(load_16(source + 16)),
             vreinterpretq_f32_u8(load_16(source + 32)), vreinterpretq_f32_u8(load_16(source + 48))}};
  }
  static NeonVector load_upper_halves(const std::byte* source) {
    return from_words(vreinterpretq_u16_u8(load_16(source)), vreinterpretq_u16_u8(load_16(source + 16)));
  }
  static float32x4_t upper_halves(uint16x4_t codes) { return vreinterpretq_f32_u32(vshll_n_u16(codes, 16)); }
  void store(float* target) const {
    for (size_t i = 0; i < kParts; ++i) vst1q_f32(target + 4 * i, part[i]);
  }

  /// Bytes are looked up, 16 at once, and joined to BF16.
  static void look_up(const NibbleTable& table, const std::byte* nibbles, NeonVector (&out)[2]) {
    const uint8x16_t packed = load_16(nibbles);
    const uint8x16_t low = vandq_u8(packed, vdupq_n_u8(15));
    const uint8x16_t high = vshrq_n_u8(packed, 4);
    out[0] = look_up_16(table, vzip1q_u8(low, high));
    out[1] = look_up_16(table, vzip2q_u8(low, high));
  }
  static NeonVector look_up_16(const NibbleTable& table, uint8x16_t codes) {
    const uint8x16_t upper = vqtbl1q_u8(vld1q_u8(table.upper), codes);
    const uint8x16_t lower = vqtbl1q_u8(vld1q_u8(table.lower), codes);
    return from_words(vreinterpretq_u16_u8(vzip1q_u8(lower, upper)), vreinterpretq_u16_u8(vzip2q_u8(lower, upper)));
  }
  /// The upper halves of 16 lanes.
  static NeonVector from_words(uint16x8_t first, uint16x8_t second) {
    return {{upper_halves(vget_low_u16(first)), upper_halves(vget_high_u16(first)), upper_halves(vget_low_u16(second)),
             upper_halves(vget_high_u16(second))}};
  }
};

using V = NeonVector;

V operator+(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vaddq_f32(a.part[i], b.part[i]);
  return a;
}
V operator-(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vsubq_f32(a.part[i], b.part[i]);
  return a;
}
V operator*(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vmulq_f32(a.part[i], b.part[i]);
  return a;
}
V operator/(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vdivq_f32(a.part[i], b.part[i]);
  return a;
}
V fma(V a, V b, V c) {
  for (size_t i = 0; i < V::kParts; ++i) c.part[i] = vfmaq_f32(c.part[i], a.part[i], b.part[i]);
  return c;
}
V square_root(V a) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vsqrtq_f32(a.part[i]);
  return a;
}
uint32x4_t pattern(float32x4_t lanes) {
  return vreinterpretq_u32_f32(lanes);
}
V bit_and(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) {
    a.part[i] = vreinterpretq_f32_u32(vandq_u32(pattern(a.part[i]), pattern(b.part[i])));
  }
  return a;
}
V bit_or(V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) {
    a.part[i] = vreinterpretq_f32_u32(vorrq_u32(pattern(a.part[i]), pattern(b.part[i])));
  }
  return a;
}
V shift_right_3(V a) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vreinterpretq_f32_u32(vshrq_n_u32(pattern(a.part[i]), 3));
  return a;
}
V power_of_two(V rounded) {
  for (size_t i = 0; i < V::kParts; ++i) {
    const uint32x4_t exponent = vshlq_n_u32(pattern(rounded.part[i]), 23);
    rounded.part[i] = vreinterpretq_f32_u32(vaddq_u32(exponent, vdupq_n_u32(0x3f800000)));
  }
  return rounded;
}
V::Mask greater(V a, V b) {
  V::Mask mask;
  for (size_t i = 0; i < V::kParts; ++i) mask.part[i] = vcgtq_f32(a.part[i], b.part[i]);
  return mask;
}
V select(V::Mask mask, V a, V b) {
  for (size_t i = 0; i < V::kParts; ++i) a.part[i] = vbslq_f32(mask.part[i], a.part[i], b.part[i]);
  return a;
}
V in_registers(V a) {
  return a;
}
V to_look_up_order(V a) {
  return a;
}
V to_natural_order(V a) {
  return a;
}
float sum(V a) {
  const float32x4_t by_8[2] = {vaddq_f32(a.part[0], a.part[2]), vaddq_f32(a.part[1], a.part[3])};
  const float32x4_t by_4 = vaddq_f32(by_8[0], by_8[1]);
  const float32x2_t by_2 = vadd_f32(vget_low_f32(by_4), vget_high_f32(by_4));
  return vget_lane_f32(by_2, 0) + vget_lane_f32(by_2, 1);
}

}  // namespace
}  // namespace headrace

#include "kernels/algorithms/table.h"

namespace headrace {

const Kernels kNeonKernels = make_kernels<NeonVector>("neon");

}  // namespace headrace

#endif
