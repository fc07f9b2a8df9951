#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/isa/before_region.h"

namespace headrace {
namespace {

/// 16 lanes in four registers. Every aarch64 has these instructions: no region.
struct NeonVector {
  static constexpr size_t kTileRows = 4;
  static constexpr size_t kTileTokens = 2;
  static constexpr size_t kColumnVectors = 2;
  static constexpr size_t kParts = 4;

  float32x4_t part[kParts];

  struct Mask {
    uint32x4_t part[kParts];
  };
  struct SignedTable {
    float32x4_t magnitudes[2];
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
    const uint16x8_t first = vreinterpretq_u16_u8(load_16(source));
    const uint16x8_t second = vreinterpretq_u16_u8(load_16(source + 16));
    return {{upper_halves(vget_low_u16(first)), upper_halves(vget_high_u16(first)), upper_halves(vget_low_u16(second)),
             upper_halves(vget_high_u16(second))}};
  }
  static float32x4_t upper_halves(uint16x4_t codes) { return vreinterpretq_f32_u32(vshll_n_u16(codes, 16)); }
  void store(float* target) const {
    for (size_t i = 0; i < kParts; ++i) vst1q_f32(target + 4 * i, part[i]);
  }

  static SignedTable signed_table(const float (&magnitudes)[8]) {
    return {{vld1q_f32(magnitudes), vld1q_f32(magnitudes + 4)}};
  }
  static SignedTable scale_table(SignedTable table, float factor) {
    return {{vmulq_n_f32(table.magnitudes[0], factor), vmulq_n_f32(table.magnitudes[1], factor)}};
  }
  /// A table of bytes gives the four bytes of a float: each code becomes four neighbouring indices. Those of a negative
  /// code lie eight entries higher, past the table, so bit 3 goes into the sign instead.
  static float32x4_t look_up_4(uint8x16x2_t table, uint8x16_t codes, uint8x16_t spread) {
    const uint8x16_t code = vqtbl1q_u8(codes, spread);
    const uint8x16_t byte_of_float = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100));
    const uint8x16_t index = vorrq_u8(vshlq_n_u8(vandq_u8(code, vdupq_n_u8(7)), 2), byte_of_float);
    const uint32x4_t sign = vshlq_n_u32(vshrq_n_u32(vreinterpretq_u32_u8(code), 3), 31);
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_u8(vqtbl2q_u8(table, index)), sign));
  }
  static NeonVector look_up(SignedTable table, const std::byte* nibbles) {
    const uint8x8_t packed = vld1_u8(reinterpret_cast<const uint8_t*>(nibbles));
    const uint8x8x2_t in_order = vzip_u8(vand_u8(packed, vdup_n_u8(15)), vshr_n_u8(packed, 4));
    const uint8x16_t codes = vcombine_u8(in_order.val[0], in_order.val[1]);
    const uint8x16x2_t bytes = {{vreinterpretq_u8_f32(table.magnitudes[0]), vreinterpretq_u8_f32(table.magnitudes[1])}};
    const uint8x16_t spread = vreinterpretq_u8_u32(uint32x4_t{0x00000000, 0x01010101, 0x02020202, 0x03030303});
    const uint8x16_t four = vdupq_n_u8(4);
    const uint8x16_t spread_1 = vaddq_u8(spread, four);
    const uint8x16_t spread_2 = vaddq_u8(spread_1, four);
    return {{look_up_4(bytes, codes, spread), look_up_4(bytes, codes, spread_1), look_up_4(bytes, codes, spread_2),
             look_up_4(bytes, codes, vaddq_u8(spread_2, four))}};
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
