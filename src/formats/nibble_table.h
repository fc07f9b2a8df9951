#pragma once

#include <cstdint>

namespace headrace {

/// The numbers of sixteen codes of four bits, each of which fits BF16, in two forms: as float32, for instructions that
/// look up 32 bits, and as the upper and lower bytes of BF16, for those that look up bytes.
struct alignas(128) NibbleTable {
  float numbers[16];
  uint8_t upper[16];
  uint8_t lower[16];
};

}  // namespace headrace
