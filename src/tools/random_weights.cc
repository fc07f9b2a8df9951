#include "tools/random_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/ensure.h"
#include "formats/mxfp4.h"

namespace headrace {
namespace {

constexpr size_t kWordBytes = 8;
constexpr int kScaleBias = 127;
/// Mean square of the sixteen E2M1 numbers, which random nibbles choose from.
constexpr double kNibbleMeanSquare = 8.5625;

/// A float32 to the nearest BF16, ties to even. Not for NaN.
uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// The number that a normal one stays below with probability `share`, by halving.
double normal_quantile(double share) {
  double low = -8;
  double high = 8;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    const double below = std::erfc(-middle / std::sqrt(2.0)) / 2;
    (below < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Numbers that one row of a tensor holds: what a product adds up.
uint64_t row_length(const Shape& shape) {
  uint64_t length = 1;
  for (size_t i = 1; i < shape.rank; ++i) length *= shape.dims[i];
  return length;
}

}  // namespace

const RandomWeights::Quantiles& RandomWeights::normal_quantiles() {
  static const Quantiles quantiles = [] {
    Quantiles values;
    for (size_t i = 0; i < kTableSize; ++i) {
      values[i] = static_cast<float>(normal_quantile((static_cast<double>(i) + 0.5) / kTableSize));
    }
    return values;
  }();
  return quantiles;
}

RandomWeights::Distribution RandomWeights::distribution_of(const ListedTensor& tensor, const WeightRules& rules) {
  switch (tensor.role) {
    case TensorRole::kMatrix:
      return {true, 0.0f, static_cast<float>(1 / std::sqrt(static_cast<double>(row_length(tensor.shape))))};
    case TensorRole::kNorm:
      return {false, 1.0f, 0.1f};
    case TensorRole::kEmbedding:
      // Large beside what the layers add, of which tokens have much in common: each token chooses experts of its own.
      return {true, 0.0f, 16.0f};
    case TensorRole::kConvolution:
      return {true, 0.0f, static_cast<float>(1 / std::sqrt(static_cast<double>(row_length(tensor.shape))))};
    case TensorRole::kRouterBias:
      // The best scores lie a few hundredths apart: a larger bias would give some experts all the work.
      return {false, 0.0f, 0.01f};
    case TensorRole::kDecayRate:
      // Rates of 1 to 16 as such layers are initialised; bounded decays put them on a logit, where they stay near 1.
      return rules.decay_is_bounded ? Distribution{false, 0.0f, 0.75f} : Distribution{false, 1.4f, 1.4f};
    case TensorRole::kDecayBias:
      // Steps of 0.001 to 0.1: a memory of one to a thousand tokens.
      return rules.decay_is_bounded ? Distribution{false, -3.5f, 2.5f} : Distribution{false, -4.6f, 2.3f};
    case TensorRole::kPackedNibbles:
    case TensorRole::kBlockScales:
      break;
  }
  return {};
}

void RandomWeights::assign(const ListedTensor& tensor, const WeightRules& rules) {
  random_ = CounterRandom(rules.seed, tensor.name);
  used_bytes_ = tensor.used_count * dtype_bytes(tensor.dtype);
  if (tensor.role == TensorRole::kPackedNibbles) {
    kind_ = Kind::kBytes;
    return;
  }
  if (tensor.role == TensorRole::kBlockScales) {
    kind_ = Kind::kScales;
    set_scales(row_length(tensor.shape) * Mxfp4::kBlockColumns);
    return;
  }
  ENSURE(tensor.dtype == DType::kBf16 || tensor.dtype == DType::kF32);
  kind_ = tensor.dtype == DType::kBf16 ? Kind::kBf16 : Kind::kF32;
  set_table(distribution_of(tensor, rules));
}

void RandomWeights::set_table(const Distribution& distribution) {
  if (has_table_ && distribution == distribution_) return;
  distribution_ = distribution;
  has_table_ = true;
  for (size_t i = 0; i < kTableSize; ++i) {
    const float uniform = (2 * static_cast<float>(i) + 1) / kTableSize - 1;
    const float drawn = distribution.is_normal ? normal_quantiles()[i] : uniform;
    const float value = distribution.centre + distribution.spread * drawn;
    f32_[i] = std::bit_cast<uint32_t>(value);
    bf16_[i] = to_bf16(value);
  }
}

/// Mixes two neighbouring exponents so that numbers have a mean square of 1 / cols.
void RandomWeights::set_scales(uint64_t cols) {
  const double wanted = 1 / (static_cast<double>(cols) * kNibbleMeanSquare);  // Mean square of the scales.
  const int low = static_cast<int>(std::floor(std::log2(wanted) / 2));
  const double low_square = std::ldexp(1.0, 2 * low);
  const double high_square = 4 * low_square;
  low_scale_ = static_cast<uint8_t>(std::clamp(low + kScaleBias, 1, 253));
  low_share_ = static_cast<uint32_t>(std::clamp((high_square - wanted) / (high_square - low_square) * 256, 0.0, 256.0));
}

inline uint64_t RandomWeights::word(uint64_t index) const {
  const uint64_t random = random_.at(index);
  uint64_t word = 0;
  switch (kind_) {
    case Kind::kBytes:
      return random;
    case Kind::kScales:
      for (int i = 0; i < 8; ++i) {
        const uint32_t draw = (random >> (8 * i)) & 0xff;
        word |= uint64_t{static_cast<uint8_t>(low_scale_ + (draw >= low_share_))} << (8 * i);
      }
      return word;
    case Kind::kBf16:
      for (int i = 0; i < 4; ++i) {
        word |= uint64_t{bf16_[(random >> (16 * i)) & (kTableSize - 1)]} << (16 * i);
      }
      return word;
    case Kind::kF32:
      for (int i = 0; i < 2; ++i) {
        word |= uint64_t{f32_[(random >> (32 * i)) & (kTableSize - 1)]} << (32 * i);
      }
      return word;
  }
  return word;
}

void RandomWeights::fill_words(uint64_t first, std::span<std::byte> out) const {
  for (size_t at = 0; at < out.size(); at += kWordBytes) {
    const uint64_t bytes = word(first++);
    std::memcpy(out.data() + at, &bytes, kWordBytes);
  }
}

void RandomWeights::fill(uint64_t offset, std::span<std::byte> out) const {
  static_assert(std::endian::native == std::endian::little);
  const uint64_t end = offset + out.size();
  const auto part = [&](uint64_t index) {  // A word that the edges of `out` cut.
    const uint64_t bytes = word(index);
    const uint64_t begin = std::max(offset, index * kWordBytes);
    const uint64_t stop = std::min(end, (index + 1) * kWordBytes);
    std::memcpy(out.data() + (begin - offset),
                reinterpret_cast<const std::byte*>(&bytes) + (begin - index * kWordBytes),
                static_cast<size_t>(stop - begin));
  };
  const uint64_t first_whole = (offset + kWordBytes - 1) / kWordBytes;
  const uint64_t end_whole = end / kWordBytes;
  if (first_whole > offset / kWordBytes && !out.empty()) part(offset / kWordBytes);
  if (end_whole > first_whole) {
    fill_words(first_whole, out.subspan(static_cast<size_t>(first_whole * kWordBytes - offset),
                                        static_cast<size_t>((end_whole - first_whole) * kWordBytes)));
  }
  if (end_whole >= first_whole && end % kWordBytes != 0) part(end_whole);
  if (end <= used_bytes_) return;
  const uint64_t zeroes_begin = std::max(offset, used_bytes_);
  std::memset(out.data() + (zeroes_begin - offset), 0, static_cast<size_t>(end - zeroes_begin));
}

}  // namespace headrace
