#include "support/value_generator.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/ensure.h"

namespace headrace::test {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

void append_float(std::string& bytes, const std::string& type, float value) {
  if (type == "F32") {
    append(bytes, value);
  } else if (type == "BF16") {
    append(bytes, bf16_of(value));
  } else {
    ENSURE(type == "F16");
    append(bytes, f16_of(value));
  }
}

}  // namespace

uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

uint64_t value_hash(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

float uniform_value(const ValueRule& rule, uint64_t hash) {
  const double u = static_cast<double>(hash >> 40) / 8388608.0 - 1.0;
  return static_cast<float>(rule.offset + rule.scale * u);
}

uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t f16_of(float value) {
  const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 16) & 0x8000;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  // In units of the last place of its binade; subnormals share the one of 2^-14.
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  ENSURE(exponent < 16 && units <= 2048);
  const auto fraction = static_cast<uint32_t>(units);
  // A fraction of 1024 and more carries into the exponent by itself.
  return static_cast<uint16_t>(sign + (static_cast<uint32_t>(exponent + 14) << 10) + fraction);
}

std::string tensor_bytes(std::string_view name, const std::string& type, const ValueRule& rule, size_t element_count,
                         size_t nonzero_count) {
  const uint64_t seed = fnv1a64(name);
  std::string bytes;
  for (size_t i = 0; i < element_count; ++i) {
    const uint64_t hash = value_hash(seed, i);
    switch (rule.kind) {
      case ValueRule::Kind::kUniform:
        append_float(bytes, type, i < nonzero_count ? uniform_value(rule, hash) : 0.0f);
        break;
      case ValueRule::Kind::kPackedByte:
        bytes.push_back(static_cast<char>(hash >> 56));
        break;
      case ValueRule::Kind::kScaleByte:
        bytes.push_back(static_cast<char>(121 + (hash >> 62)));
        break;
    }
  }
  return bytes;
}

}  // namespace headrace::test
