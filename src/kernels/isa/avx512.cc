#if defined(__x86_64__)

#if !defined(__clang__)
// gcc 12 finds the deliberately undefined operands inside its own AVX-512 intrinsics, in every caller.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "kernels/isa/before_region.h"

HEADRACE_TARGET_REGION_BEGIN("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")

namespace headrace {
namespace {

/// 16 lanes in one register.
struct Avx512Vector {
  static constexpr size_t kSums = 16;
  static constexpr size_t kTileRows = 8;
  static constexpr size_t kTileTokens = 4;
  static constexpr size_t kPanelRows = 0;
  static constexpr size_t kPanelTokens = 0;
  static constexpr size_t kColumnVectors = 4;
  static constexpr size_t kColumnTokens = 4;

  __m512 lanes;

  using Mask = __mmask16;

  static Avx512Vector broadcast(float value) { return {_mm512_set1_ps(value)}; }
  static Avx512Vector bits(uint32_t pattern) {
    return {_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int32_t>(pattern)))};
  }
  static Avx512Vector load(const float* source) { return {_mm512_loadu_ps(source)}; }
  static Avx512Vector load_bytes(const std::byte* source) { return {_mm512_castsi512_ps(_mm512_loadu_si512(source))}; }
  static Avx512Vector load_upper_halves(const std::byte* source) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(source));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16))};
  }
  void store(float* target) const { _mm512_storeu_ps(target, lanes); }

  static void look_up(const NibbleTable& table, const std::byte* nibbles, Avx512Vector (&out)[2]) {
    const __m512 numbers = _mm512_load_ps(table.numbers);
    out[0] = {_mm512_permutexvar_ps(look_up_codes(nibbles), numbers)};
    out[1] = {_mm512_permutexvar_ps(look_up_codes(nibbles + 8), numbers)};
  }
  /// Every pair of lanes has all 16 nibbles and shifts one of the first eight and one of the last eight to the bottom;
  /// the permutation reads no other bits. The natural order would cost another operation for each 16 weights.
  static __m512i look_up_codes(const std::byte* nibbles) {
    int64_t packed;
    std::memcpy(&packed, nibbles, sizeof(packed));
    const __m512i shifts = _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28);
    return _mm512_srlv_epi32(_mm512_set1_epi64(packed), shifts);
  }
};

using V = Avx512Vector;

V operator+(V a, V b) {
  return {_mm512_add_ps(a.lanes, b.lanes)};
}
V operator-(V a, V b) {
  return {_mm512_sub_ps(a.lanes, b.lanes)};
}
V operator*(V a, V b) {
  return {_mm512_mul_ps(a.lanes, b.lanes)};
}
V operator/(V a, V b) {
  return {_mm512_div_ps(a.lanes, b.lanes)};
}
V fma(V a, V b, V c) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
V square_root(V a) {
  return {_mm512_sqrt_ps(a.lanes)};
}
V bit_and(V a, V b) {
  return {_mm512_and_ps(a.lanes, b.lanes)};
}
V bit_or(V a, V b) {
  return {_mm512_or_ps(a.lanes, b.lanes)};
}
V shift_right_3(V a) {
  return {_mm512_castsi512_ps(_mm512_srli_epi32(_mm512_castps_si512(a.lanes), 3))};
}
V power_of_two(V rounded) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(rounded.lanes), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(0x3f800000)))};
}
V::Mask greater(V a, V b) {
  return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_GT_OQ);
}
V select(V::Mask mask, V a, V b) {
  return {_mm512_mask_blend_ps(mask, b.lanes, a.lanes)};
}
V in_registers(V a) {
  return a;
}
V to_look_up_order(V a) {
  const __m512i source = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return {_mm512_permutexvar_ps(source, a.lanes)};
}
V to_natural_order(V a) {
  const __m512i source = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  return {_mm512_permutexvar_ps(source, a.lanes)};
}
float sum(V a) {
  const __m256 by_8 = _mm256_add_ps(_mm512_castps512_ps256(a.lanes), _mm512_extractf32x8_ps(a.lanes, 1));
  const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
  const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
  return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_shuffle_ps(by_2, by_2, 1)));
}

}  // namespace
}  // namespace headrace

#include "kernels/algorithms/table.h"

HEADRACE_TARGET_REGION_END

namespace headrace {

const Kernels kAvx512Kernels = make_kernels<Avx512Vector>("avx512");

}  // namespace headrace

#endif
