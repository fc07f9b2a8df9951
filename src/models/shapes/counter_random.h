#pragma once

#include <cstdint>
#include <string_view>

namespace headrace {

/// Random numbers by their index: any of them at any time, the same on every machine. Not for secrets.
class CounterRandom {
 public:
  /// A sequence for each seed and name.
  CounterRandom(uint64_t seed, std::string_view name) : key_(mix(seed + kStep)) {
    for (const char byte : name) key_ = mix(key_ ^ static_cast<uint8_t>(byte));
  }

  uint64_t at(uint64_t index) const { return mix(key_ + index * kStep); }

 private:
  /// Odd, from the golden ratio: successive counters differ in about half of their bits.
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  /// Every bit of the result depends on every bit of `value`: multiplications carry upwards, shifts downwards.
  static constexpr uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  uint64_t key_;
};

}  // namespace headrace
