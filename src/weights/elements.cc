#include "weights/elements.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/ensure.h"

namespace headrace {
namespace {

template <class T>
T load(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

float float_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

float float_of_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // Zero or subnormal: exact.
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  // Infinities and NaN keep an exponent of all ones; others move from a bias of 15 to one of 127.
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

/// Numbers whose exponent is all ones are infinite or not a number. The inner loop has no exit, so that it becomes
/// vector code.
template <class T>
Status check_exponents(const std::byte* data, size_t count, T exponent) {
  constexpr size_t kRunElements = 4096;
  for (size_t begin = 0; begin < count; begin += kRunElements) {
    const size_t end = std::min(count, begin + kRunElements);
    unsigned any_bad = 0;
    for (size_t i = begin; i < end; ++i) any_bad |= (load<T>(data, i) & exponent) == exponent;
    if (!any_bad) continue;
    size_t bad = begin;
    while ((load<T>(data, bad) & exponent) != exponent) ++bad;
    return error(Code::kFormat, "element %zu is not a finite number", bad);
  }
  return {};
}

}  // namespace

std::optional<Format> plain_format(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Format::kF32;
    case DType::kBf16:
      return Format::kBf16;
    case DType::kF16:
      return Format::kF16;
    default:
      return std::nullopt;
  }
}

void decode_elements(Format format, const std::byte* data, std::span<float> out) {
  switch (format) {
    case Format::kF32:
      for (size_t i = 0; i < out.size(); ++i) out[i] = load<float>(data, i);
      return;
    case Format::kBf16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = float_of_bf16(load<uint16_t>(data, i));
      return;
    case Format::kF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = float_of_f16(load<uint16_t>(data, i));
      return;
    default:
      ENSURE(false);
  }
}

Status check_finite(Format format, const std::byte* data, size_t count) {
  switch (format) {
    case Format::kF32:
      return check_exponents<uint32_t>(data, count, 0x7f800000u);
    case Format::kBf16:
      return check_exponents<uint16_t>(data, count, 0x7f80u);
    case Format::kF16:
      return check_exponents<uint16_t>(data, count, 0x7c00u);
    default:
      ENSURE(false);
  }
}

}  // namespace headrace
