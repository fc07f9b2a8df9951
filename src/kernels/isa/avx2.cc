#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/isa/before_region.h"

HEADRACE_TARGET_REGION_BEGIN("avx2,fma")

namespace headrace {
namespace {

/// 16 lanes in two registers.
struct Avx2Vector {
  static constexpr size_t kTileRows = 4;
  static constexpr size_t kTileTokens = 2;
  static constexpr size_t kColumnVectors = 2;

  __m256 low;
  __m256 high;

  struct Mask {
    __m256 low;
    __m256 high;
  };
  struct SignedTable {
    __m256 magnitudes;
  };

  static Avx2Vector broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Avx2Vector bits(uint32_t pattern) {
    const __m256 lanes = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int32_t>(pattern)));
    return {lanes, lanes};
  }
  static Avx2Vector load(const float* source) { return {_mm256_loadu_ps(source), _mm256_loadu_ps(source + 8)}; }
  static Avx2Vector load_bytes(const std::byte* source) {
    const auto* lanes = reinterpret_cast<const __m256i_u*>(source);
    return {_mm256_castsi256_ps(_mm256_loadu_si256(lanes)), _mm256_castsi256_ps(_mm256_loadu_si256(lanes + 1))};
  }
  static Avx2Vector load_upper_halves(const std::byte* source) {
    const auto* codes = reinterpret_cast<const __m128i_u*>(source);
    const __m256i first = _mm256_cvtepu16_epi32(_mm_loadu_si128(codes));
    const __m256i second = _mm256_cvtepu16_epi32(_mm_loadu_si128(codes + 1));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(first, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(second, 16))};
  }
  void store(float* target) const {
    _mm256_storeu_ps(target, low);
    _mm256_storeu_ps(target + 8, high);
  }

  static SignedTable signed_table(const float (&m)[8]) {
    return {_mm256_setr_ps(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7])};
  }
  static SignedTable scale_table(SignedTable table, float factor) {
    return {_mm256_mul_ps(table.magnitudes, _mm256_set1_ps(factor))};
  }
  /// Eight nibbles: each lane shifts its own to the bottom; the permutation reads three bits, the fourth is the sign.
  static __m256 look_up_half(SignedTable table, const std::byte* nibbles) {
    int32_t packed;
    std::memcpy(&packed, nibbles, sizeof(packed));
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi32(packed), shifts);
    const __m256 sign_bit = _mm256_set1_ps(-0.0F);
    const __m256 sign = _mm256_and_ps(_mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)), sign_bit);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(table.magnitudes, codes), sign);
  }
  static Avx2Vector look_up(SignedTable table, const std::byte* nibbles) {
    return {look_up_half(table, nibbles), look_up_half(table, nibbles + 4)};
  }
};

using V = Avx2Vector;

V operator+(V a, V b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
V operator-(V a, V b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
V operator*(V a, V b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
V operator/(V a, V b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
V fma(V a, V b, V c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
V square_root(V a) {
  return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}
V bit_and(V a, V b) {
  return {_mm256_and_ps(a.low, b.low), _mm256_and_ps(a.high, b.high)};
}
V bit_or(V a, V b) {
  return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)};
}

__m256 shift_half_right_3(__m256 a) {
  return _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(a), 3));
}
V shift_right_3(V a) {
  return {shift_half_right_3(a.low), shift_half_right_3(a.high)};
}

__m256 half_power_of_two(__m256 rounded) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000)));
}
V power_of_two(V rounded) {
  return {half_power_of_two(rounded.low), half_power_of_two(rounded.high)};
}

V::Mask greater(V a, V b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)};
}
V select(V::Mask mask, V a, V b) {
  return {_mm256_blendv_ps(b.low, a.low, mask.low), _mm256_blendv_ps(b.high, a.high, mask.high)};
}
float sum(V a) {
  const __m256 by_8 = _mm256_add_ps(a.low, a.high);
  const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
  const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
  return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_shuffle_ps(by_2, by_2, 1)));
}

}  // namespace
}  // namespace headrace

#include "kernels/algorithms/table.h"

HEADRACE_TARGET_REGION_END

namespace headrace {

const Kernels kAvx2Kernels = make_kernels<Avx2Vector>("avx2");

}  // namespace headrace

#endif
