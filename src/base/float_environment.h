#pragma once

#include <cstdint>

namespace headrace {

/// Sets the thread's floating-point control register to the one setting that results are defined for (round to
/// nearest, denormals kept, no traps) and restores the caller's when destroyed. On the stack of one thread. On x86-64
/// that is MXCSR; the x87 unit (long double) is left alone, since no result comes from it.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace headrace
