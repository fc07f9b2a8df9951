#include "base/float_environment.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headrace {
namespace {

#if defined(__x86_64__)
// All exceptions masked, round to nearest, FTZ and DAZ off.
constexpr uint32_t kMxcsr = 0x1f80;
uint64_t read_control() {
  return _mm_getcsr();
}
void write_control(uint64_t value) {
  _mm_setcsr(static_cast<uint32_t>(value));
}
constexpr uint64_t kControl = kMxcsr;
#elif defined(__aarch64__)
uint64_t read_control() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void write_control(uint64_t value) {
  asm volatile("msr fpcr, %0" : : "r"(value));
}
constexpr uint64_t kControl = 0;
#else
#error "No floating-point control register known for this processor."
#endif

}  // namespace

FloatEnvironment::FloatEnvironment() : saved_(read_control()) {
  write_control(kControl);
}
FloatEnvironment::~FloatEnvironment() {
  write_control(saved_);
}

}  // namespace headrace
