#pragma once

#include <cstdint>
#include <string>

namespace headrace {

/// kUp: for a least size, so that it is still enough when somebody types it.
enum class Rounding : uint8_t { kNearest, kUp };

/// "512 bytes", "3.2 GiB": for messages; the exact number stands beside it where it matters.
std::string bytes_text(uint64_t bytes, Rounding rounding = Rounding::kNearest);

}  // namespace headrace
