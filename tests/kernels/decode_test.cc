#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "kernels/every_table.h"
#include "kernels/numbers.h"
#include "kernels/weight_samples.h"

namespace headrace {
namespace {

/// Every code of every format, against the decoders of the tests.
class Decode : public test::EveryTable {
 protected:
  std::vector<float> decode(const WeightView& weights, size_t row) const {
    std::vector<float> out(weights.cols);
    kernels().decode_row[static_cast<size_t>(weights.format)](weights, row, out);
    return out;
  }

  void expect_all_codes_of_16_bits(Format format) const {
    // Odd addresses, and rows of 127 numbers so that each code meets a tail as well as the middle of a row.
    std::vector<std::byte> bytes(1 + 2 * 65536 + 2 * 127);
    for (size_t code = 0; code < 65536; ++code) {
      bytes[1 + 2 * code] = static_cast<std::byte>(code & 255);
      bytes[2 + 2 * code] = static_cast<std::byte>(code >> 8);
    }
    for (const size_t cols : {127, 128}) {
      const WeightView view = {.format = format,
                               .rows = (65535 + cols) / cols,
                               .cols = cols,
                               .data = bytes.data() + 1,
                               .row_bytes = 2 * cols};
      for (size_t row = 0; row < view.rows; ++row) {
        const std::vector<float> got = decode(view, row);
        for (size_t col = 0; col < cols; ++col) {
          const auto expected = static_cast<float>(test::decode_reference(view, row, col));
          ASSERT_TRUE(test::same_number(got[col], expected)) << "code " << row * cols + col;
        }
      }
    }
  }
};

TEST_P(Decode, KnowsEveryCodeOfBf16) {
  expect_all_codes_of_16_bits(Format::kBf16);
}

TEST_P(Decode, KnowsEveryCodeOfF16) {
  expect_all_codes_of_16_bits(Format::kF16);
}

TEST_P(Decode, GivesF32AsItIs) {
  test::Numbers numbers(5);
  const test::WeightSample sample(numbers, test::Inputs::kAnything, Format::kF32, 3, 100, {.offset_bytes = 3});
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<float> got = decode(sample.view(), row);
    for (size_t col = 0; col < 100; ++col) {
      const auto expected = static_cast<float>(test::decode_reference(sample.view(), row, col));
      ASSERT_TRUE(test::same_number(got[col], expected));
    }
  }
}

TEST_P(Decode, KnowsEveryNibbleUnderEveryScaleInBothPlaces) {
  // A row for each scale: 16 bytes whose low nibbles count up and whose high nibbles count down.
  std::vector<std::byte> packed(256 * 16);
  std::vector<std::byte> scales(256);
  for (size_t scale = 0; scale < 256; ++scale) {
    scales[scale] = static_cast<std::byte>(scale);
    for (size_t j = 0; j < 16; ++j) packed[scale * 16 + j] = static_cast<std::byte>(j | (15 - j) << 4);
  }
  const WeightView view = {.format = Format::kMxfp4,
                           .rows = 256,
                           .cols = 32,
                           .data = packed.data(),
                           .row_bytes = 16,
                           .scales = scales.data(),
                           .scale_row_bytes = 1};
  for (size_t scale = 0; scale < 256; ++scale) {
    const std::vector<float> got = decode(view, scale);
    for (size_t col = 0; col < 32; ++col) {
      const double exact = test::decode_reference(view, scale, col);
      ASSERT_TRUE(test::same_number(got[col], static_cast<float>(exact))) << "scale " << scale << " column " << col;
      if (scale < 253) {
        ASSERT_EQ(got[col], exact) << "only 4 and 6 times 2^126 or more leave the range of float32";
      }
    }
  }
}

TEST_P(Decode, ReadsNibblesInTheOrderOfTheSpecification) {
  const uint8_t bytes[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0x8b, 0xad, 0xcf,
                           0xe0, 0xf1, 0x02, 0x13, 0x24, 0x35, 0x46, 0x57};
  const uint8_t scale = 126;
  const float expected[] = {0,  .25F, .5F, .75F, 1, 1.5F, 2,    3, -0.0F, -.25F, -.75F, -0.0F, -1.5F, -.5F, -3,  -1, 0,
                            -2, .25F, -3,  .5F,  0, .75F, .25F, 1, .5F,   1.5F,  .75F,  2,     1,     3,    1.5F};
  const WeightView view = {.format = Format::kMxfp4,
                           .rows = 1,
                           .cols = 32,
                           .data = reinterpret_cast<const std::byte*>(bytes),
                           .row_bytes = 16,
                           .scales = reinterpret_cast<const std::byte*>(&scale),
                           .scale_row_bytes = 1};
  const std::vector<float> got = decode(view, 0);
  for (size_t col = 0; col < 32; ++col) {
    EXPECT_EQ(std::bit_cast<uint32_t>(got[col]), std::bit_cast<uint32_t>(expected[col])) << col;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Decode, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
