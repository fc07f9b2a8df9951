#include "base/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headrace {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlushBits = 0x8040;  // Flush results to zero, take denormal inputs as zero.
uint64_t control_register() {
  return _mm_getcsr();
}
void set_control_register(uint64_t value) {
  _mm_setcsr(static_cast<uint32_t>(value));
}
#elif defined(__aarch64__)
constexpr uint64_t kFlushBits = uint64_t{1} << 24;
uint64_t control_register() {
  uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void set_control_register(uint64_t value) {
  asm volatile("msr fpcr, %0" : : "r"(value));
}
#endif

/// Half of the smallest normal number: a denormal, or 0 where those are flushed.
float denormal() {
  volatile float smallest = FLT_MIN;
  volatile float half = smallest * 0.5F;
  return half;
}

/// 1 plus a third of the distance to the next number.
float rounded_sum() {
  volatile float one = 1.0F;
  volatile float sum = one + FLT_EPSILON / 3;
  return sum;
}

TEST(FloatEnvironment, KeepsDenormalsThatTheCallerFlushes) {
  const uint64_t before = control_register();
  set_control_register(before | kFlushBits);
  const float flushed = denormal();
  float kept = 0;
  {
    const FloatEnvironment environment;
    kept = denormal();
  }
  const float flushed_again = denormal();
  const uint64_t after = control_register();
  set_control_register(before);
  EXPECT_EQ(flushed, 0.0F);
  EXPECT_EQ(kept, FLT_MIN / 2);
  EXPECT_EQ(flushed_again, 0.0F);
  EXPECT_EQ(after & kFlushBits, kFlushBits);
}

TEST(FloatEnvironment, RoundsToNearestAndRestoresTheCallersMode) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const float upward = rounded_sum();
  float nearest = 0;
  {
    const FloatEnvironment environment;
    nearest = rounded_sum();
  }
  const float upward_again = rounded_sum();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upward, 1.0F + FLT_EPSILON);
  EXPECT_EQ(nearest, 1.0F);
  EXPECT_EQ(upward_again, upward);
}

TEST(FloatEnvironment, Nests) {
  const uint64_t before = control_register();
  {
    const FloatEnvironment outer;
    { const FloatEnvironment inner; }
    EXPECT_EQ(rounded_sum(), 1.0F);
  }
  EXPECT_EQ(control_register(), before);
}

}  // namespace
}  // namespace headrace
