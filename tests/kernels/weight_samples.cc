#include "kernels/weight_samples.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace headrace::test {
namespace {

uint16_t sixteen_bits(const std::byte* at) {
  return static_cast<uint16_t>(std::to_integer<unsigned>(at[0]) | std::to_integer<unsigned>(at[1]) << 8);
}

double small_float(uint32_t code, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = code & ((1U << mantissa_bits) - 1);
  const uint32_t exponent = code >> mantissa_bits & ((1U << exponent_bits) - 1);
  const double sign = code >> (mantissa_bits + exponent_bits) & 1 ? -1.0 : 1.0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1U << exponent_bits) - 1) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const uint32_t leading = exponent == 0 ? 0 : 1U << mantissa_bits;
  return sign * std::ldexp(leading + mantissa, std::max(static_cast<int>(exponent), 1) - bias - mantissa_bits);
}

/// A half whose number is like `inputs`.
uint16_t half_code(Numbers& numbers, Inputs inputs) {
  const uint32_t code = numbers.bits() & 0xffff;
  switch (inputs) {
    case Inputs::kOrdinary:  // 2^-4 to 2^3.
      return static_cast<uint16_t>((code & 0x83ff) | (11 + numbers.below(8)) << 10);
    case Inputs::kDenormal:
      return static_cast<uint16_t>(code & 0x83ff);
    case Inputs::kHuge:
      return static_cast<uint16_t>((code & 0x83ff) | 30 << 10);
    case Inputs::kZeros:
      return static_cast<uint16_t>(code & 0x8001);
    case Inputs::kAnything:
      return static_cast<uint16_t>(code);
  }
  return 0;
}

std::byte scale_code(Numbers& numbers, Inputs inputs) {
  switch (inputs) {
    case Inputs::kOrdinary:
      return static_cast<std::byte>(120 + numbers.below(12));
    case Inputs::kDenormal:
      return static_cast<std::byte>(numbers.below(8));
    case Inputs::kHuge:
      return static_cast<std::byte>(245 + numbers.below(10));
    case Inputs::kZeros:
      return static_cast<std::byte>(20 + numbers.below(10));
    case Inputs::kAnything:
      return static_cast<std::byte>(numbers.below(256));
  }
  return std::byte{0};
}

}  // namespace

void fill_weight_row(Numbers& numbers, Inputs inputs, Format format, size_t cols, std::byte* data, std::byte* scales) {
  for (size_t col = 0; col < cols; ++col) {
    const float value = number(numbers, inputs);
    const uint16_t half = half_code(numbers, inputs);
    const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    if (format == Format::kF32) std::memcpy(data + 4 * col, &value, sizeof(value));
    if (format == Format::kBf16) std::memcpy(data + 2 * col, &upper, sizeof(upper));
    if (format == Format::kF16) std::memcpy(data + 2 * col, &half, sizeof(half));
    if (format == Format::kMxfp4 && col % 2 == 0) {
      // Zeros are codes 0 and 8.
      const uint32_t mask = inputs == Inputs::kZeros ? 0x88 : 0xff;
      data[col / 2] = static_cast<std::byte>(numbers.bits() & mask);
    }
    if (scales && col % 32 == 0) scales[col / 32] = scale_code(numbers, inputs);
  }
}

WeightSample::WeightSample(Numbers& numbers, Inputs inputs, Format format, size_t rows, size_t cols,
                           Placement placement) {
  const size_t row_bytes = format_row_bytes(format, cols) + placement.padding_bytes;
  const size_t scale_bytes = format_scale_row_bytes(format, cols);
  const size_t scale_row_bytes = scale_bytes == 0 ? 0 : scale_bytes + placement.padding_bytes;
  const std::byte garbage{0x7f};
  data_.resize(64 + placement.offset_bytes + rows * row_bytes, garbage);
  scales_.resize(placement.offset_bytes + rows * scale_row_bytes, garbage);
  const size_t to_line = (64 - reinterpret_cast<uintptr_t>(data_.data()) % 64) % 64;
  view_ = {.format = format,
           .rows = rows,
           .cols = cols,
           .data = data_.data() + to_line + placement.offset_bytes,
           .row_bytes = row_bytes,
           .scales = scale_bytes == 0 ? nullptr : scales_.data() + placement.offset_bytes,
           .scale_row_bytes = scale_row_bytes};
  for (size_t r = 0; r < rows; ++r) {
    std::byte* data = data_.data() + to_line + placement.offset_bytes + r * row_bytes;
    std::byte* scales = scale_bytes == 0 ? nullptr : scales_.data() + placement.offset_bytes + r * scale_row_bytes;
    fill_weight_row(numbers, inputs, format, cols, data, scales);
  }
}

double decode_reference(const WeightView& weights, size_t row, size_t col) {
  const std::byte* data = weights.data + row * weights.row_bytes;
  if (weights.format == Format::kBf16) return small_float(sixteen_bits(data + 2 * col), 8, 7);
  if (weights.format == Format::kF16) return small_float(sixteen_bits(data + 2 * col), 5, 10);
  if (weights.format == Format::kF32) {
    const std::byte* at = data + 4 * col;
    return small_float(sixteen_bits(at) | static_cast<uint32_t>(sixteen_bits(at + 2)) << 16, 8, 23);
  }
  constexpr double kMagnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  const auto pair = std::to_integer<uint32_t>(data[col / 2]);
  const uint32_t code = col % 2 ? pair >> 4 : pair & 15;
  const auto scale = std::to_integer<int>(weights.scales[row * weights.scale_row_bytes + col / 32]);
  if (scale == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(code & 8 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7], scale - 127);
}

}  // namespace headrace::test
