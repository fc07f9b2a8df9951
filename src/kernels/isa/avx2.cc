#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/isa/before_region.h"

HEADRACE_TARGET_REGION_BEGIN("avx2,fma")

namespace headrace {
namespace {

/// 16 lanes in two registers.
struct Avx2Vector {
  static constexpr size_t kSums = 4;
  static constexpr size_t kTileRows = 4;
  static constexpr size_t kTileTokens = 2;
  static constexpr size_t kPanelRows = 2;
  static constexpr size_t kPanelTokens = 2;
  static constexpr size_t kColumnVectors = 2;
  static constexpr size_t kColumnTokens = 2;

  __m256 low;
  __m256 high;

  struct Mask {
    __m256 low;
    __m256 high;
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

  /// Bytes are looked up, 32 at once, and joined to BF16: word 2i of each pair becomes lane i of `low`, word 2i + 1
  /// lane i of `high`, so codes i and i + 8 of each 16 have to stand side by side. In pairs (0 8) (1 9) (2 10) ... the
  /// nibbles are low, low, high, high, ...
  static void look_up(const NibbleTable& table, const std::byte* nibbles, Avx2Vector (&out)[2]) {
    const __m256i spread = _mm256_setr_epi8(0, 4, 0, 4, 1, 5, 1, 5, 8, 12, 8, 12, 9, 13, 9, 13,  //
                                            2, 6, 2, 6, 3, 7, 3, 7, 10, 14, 10, 14, 11, 15, 11, 15);
    const __m256i low_nibbles = _mm256_set1_epi32(0x00000f0f);
    const __m256i high_nibbles = _mm256_set1_epi32(0x0f0f0000);
    const __m256i pairs = _mm256_shuffle_epi8(load_16(nibbles), spread);
    const __m256i codes = _mm256_or_si256(_mm256_and_si256(pairs, low_nibbles),
                                          _mm256_and_si256(_mm256_srli_epi32(pairs, 4), high_nibbles));
    const __m256i upper = _mm256_shuffle_epi8(load_16(table.upper), codes);
    const __m256i lower = _mm256_shuffle_epi8(load_16(table.lower), codes);
    out[0] = from_words(_mm256_unpacklo_epi8(lower, upper));
    out[1] = from_words(_mm256_unpackhi_epi8(lower, upper));
  }
  /// 16 bytes in both halves.
  static __m256i load_16(const void* source) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i_u*>(source)));
  }
  static Avx2Vector from_words(__m256i words) {
    const __m256i upper_halves = _mm256_set1_epi32(static_cast<int32_t>(0xffff0000));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(words, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(words, upper_halves))};
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
V in_registers(V a) {
  asm("" : "+x"(a.low), "+x"(a.high));
  return a;
}
V to_look_up_order(V a) {
  return a;
}
V to_natural_order(V a) {
  return a;
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
