#include "plain_read.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::bench {
namespace {

uint64_t read_words(std::span<const std::byte> bytes) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 32 <= bytes.size(); i += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + i, sizeof(words));
    for (size_t j = 0; j < 4; ++j) sums[j] += words[j];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) uint64_t read_512(std::span<const std::byte> bytes) {
  __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t i = 0; i + 256 <= bytes.size(); i += 256) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] = _mm512_add_epi64(sums[j], _mm512_loadu_si512(bytes.data() + i + 64 * j));
    }
  }
  const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
  uint64_t lanes[8];
  _mm512_storeu_si512(lanes, sum);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
}

__attribute__((target("avx2"))) uint64_t read_256(std::span<const std::byte> bytes) {
  __m256i sums[4] = {};
  for (size_t i = 0; i + 128 <= bytes.size(); i += 128) {
    for (size_t j = 0; j < 4; ++j) {
      const auto* at = reinterpret_cast<const __m256i_u*>(bytes.data() + i + 32 * j);
      sums[j] = _mm256_add_epi64(sums[j], _mm256_loadu_si256(at));
    }
  }
  const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  uint64_t lanes[4];
  std::memcpy(lanes, &sum, sizeof(lanes));
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif

}  // namespace

uint64_t plain_read(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_512(bytes);
  if (__builtin_cpu_supports("avx2")) return read_256(bytes);
#endif
  return read_words(bytes);
}

}  // namespace headrace::bench
