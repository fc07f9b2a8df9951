#include "formats/mxfp4.h"

#include <bit>
#include <limits>

namespace headrace {
namespace {

/// In double, which holds every product of a magnitude and a scale exactly.
constexpr double magnitude(uint32_t code, uint32_t scale) {
  constexpr double kMagnitudes[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  constexpr uint64_t kBias = 1023;
  return kMagnitudes[code & 7] * std::bit_cast<double>((scale + kBias - 127) << 52);
}

constexpr float scaled_e2m1(uint32_t code, uint32_t scale) {
  using Limits = std::numeric_limits<float>;
  if (scale == 255) return Limits::quiet_NaN();
  const double exact = magnitude(code, scale);
  const float number = exact > Limits::max() ? Limits::infinity() : static_cast<float>(exact);
  return code & 8 ? -number : number;
}

constexpr std::array<NibbleTable, 256> scale_e2m1() {
  std::array<NibbleTable, 256> tables{};
  for (uint32_t scale = 0; scale < 256; ++scale) {
    for (uint32_t code = 0; code < 16; ++code) {
      const float number = scaled_e2m1(code, scale);
      const auto bits = std::bit_cast<uint32_t>(number);
      tables[scale].numbers[code] = number;
      tables[scale].upper[code] = static_cast<uint8_t>(bits >> 24);
      tables[scale].lower[code] = static_cast<uint8_t>(bits >> 16);
    }
  }
  return tables;
}

}  // namespace

constinit const std::array<NibbleTable, 256> kScaledE2m1 = scale_e2m1();

}  // namespace headrace
