#include "engine/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace headrace {

std::string bytes_text(uint64_t bytes, Rounding rounding) {
  constexpr uint64_t kStep = 1024;
  if (bytes < kStep) return std::to_string(bytes) + " bytes";
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / kStep;
  size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  if (rounding == Rounding::kUp) value = std::ceil(value * 10) / 10;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace headrace
