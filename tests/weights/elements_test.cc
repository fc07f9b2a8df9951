#include "weights/elements.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace headrace {
namespace {

template <class T>
float decode_one(Format format, T bits) {
  std::byte bytes[1 + sizeof(T)];
  std::memcpy(bytes + 1, &bits, sizeof(T));  // At an odd address, like tensors of a checkpoint.
  float value = 0;
  decode_elements(format, bytes + 1, std::span(&value, 1));
  return value;
}

TEST(Elements, DecodeEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10) & 31;
    const int fraction = static_cast<int>(bits & 1023);
    const float value = decode_one(Format::kF16, static_cast<uint16_t>(bits));
    // IEEE 754: what the fields mean, by arithmetic in double.
    double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
      ASSERT_EQ(std::isinf(value), fraction == 0) << bits;
      ASSERT_EQ(std::isnan(value), fraction != 0) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), bits >> 15 ? -expected : expected) << bits;
    }
    ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
  }
}

TEST(Elements, DecodeBfloat16AndFloat32BitByBit) {
  for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
    const float value = decode_one(Format::kBf16, static_cast<uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    const float wide = decode_one(Format::kF32, bits * 0x10001);
    ASSERT_EQ(std::bit_cast<uint32_t>(wide), bits * 0x10001);
  }
}

TEST(Elements, OnlyPlainNumbersHaveAFormat) {
  EXPECT_EQ(plain_format(DType::kF32), Format::kF32);
  EXPECT_EQ(plain_format(DType::kBf16), Format::kBf16);
  EXPECT_EQ(plain_format(DType::kF16), Format::kF16);
  for (const DType dtype : {DType::kU8, DType::kF8E4m3, DType::kF64, DType::kI32, DType::kBool}) {
    EXPECT_FALSE(plain_format(dtype));
  }
}

TEST(Elements, NamesTheFirstNumberThatIsNone) {
  // Largest finite number, infinities and NaN of each type, at an odd address and past a run of the search.
  struct Case {
    Format format;
    size_t bytes;
    uint32_t largest;
    std::vector<uint32_t> bad;
  };
  const Case cases[] = {{Format::kF32, 4, 0x7f7fffff, {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff}},
                        {Format::kBf16, 2, 0x7f7f, {0x7f80, 0xff80, 0x7fc0, 0xffff}},
                        {Format::kF16, 2, 0x7bff, {0x7c00, 0xfc00, 0x7e00, 0xffff}}};
  constexpr size_t kCount = 10000;
  constexpr size_t kBad = 9001;
  for (const Case& test : cases) {
    std::vector<std::byte> memory(1 + kCount * test.bytes);
    std::byte* const data = memory.data() + 1;
    for (size_t i = 0; i < kCount; ++i) std::memcpy(data + i * test.bytes, &test.largest, test.bytes);
    EXPECT_TRUE(check_finite(test.format, data, kCount));
    for (const uint32_t bad : test.bad) {
      std::memcpy(data + kBad * test.bytes, &bad, test.bytes);
      const Status status = check_finite(test.format, data, kCount);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Code::kFormat);
      EXPECT_EQ(status.error().message, "element 9001 is not a finite number");
    }
  }
}

}  // namespace
}  // namespace headrace
