#include "formats/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "formats/formats.h"

namespace headrace {
namespace {

TEST(Format, RowBytesFollowTheCodeWidth) {
  EXPECT_EQ(format_row_bytes(Format::kF32, 7), 28u);
  EXPECT_EQ(format_row_bytes(Format::kBf16, 7), 14u);
  EXPECT_EQ(format_row_bytes(Format::kF16, 7), 14u);
  EXPECT_EQ(format_row_bytes(Format::kMxfp4, 3584), 1792u);
}

TEST(Format, OnlyMxfp4HasScales) {
  EXPECT_EQ(format_scale_row_bytes(Format::kF32, 64), 0u);
  EXPECT_EQ(format_scale_row_bytes(Format::kBf16, 64), 0u);
  EXPECT_EQ(format_scale_row_bytes(Format::kF16, 64), 0u);
  EXPECT_EQ(format_scale_row_bytes(Format::kMxfp4, 64), 2u);
}

TEST(Format, NamesAreThoseOfTheFiles) {
  EXPECT_STREQ(format_name(Format::kF32), "F32");
  EXPECT_STREQ(format_name(Format::kBf16), "BF16");
  EXPECT_STREQ(format_name(Format::kF16), "F16");
  EXPECT_STREQ(format_name(Format::kMxfp4), "MXFP4");
}

TEST(FormatDeathTest, Mxfp4RowsOfPartialBlocksAreABug) {
  EXPECT_DEATH(format_row_bytes(Format::kMxfp4, 33), "");
  EXPECT_DEATH(format_scale_row_bytes(Format::kMxfp4, 16), "");
}

TEST(Mxfp4, TablesHoldEveryProductOfAMagnitudeAndAScaleInBothForms) {
  constexpr double kMagnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (int scale = 0; scale < 255; ++scale) {
    for (int code = 0; code < 16; ++code) {
      const NibbleTable& table = kScaledE2m1[scale];
      const double magnitude = std::ldexp(kMagnitudes[code & 7], scale - 127);
      const auto expected = static_cast<float>(code & 8 ? -magnitude : magnitude);
      EXPECT_EQ(std::bit_cast<uint32_t>(table.numbers[code]), std::bit_cast<uint32_t>(expected)) << scale;
      EXPECT_EQ(table.upper[code] << 24 | table.lower[code] << 16, std::bit_cast<int32_t>(expected)) << scale;
    }
  }
}

TEST(Mxfp4, ScaleTwoHundredFiftyFiveIsNanInBothForms) {
  const NibbleTable& table = kScaledE2m1[255];
  for (int code = 0; code < 16; ++code) {
    EXPECT_TRUE(std::isnan(table.numbers[code]));
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(table.upper[code] << 24 | table.lower[code] << 16)));
  }
}

TEST(WeightView, RowsAndRangesMoveDataAndScales) {
  const std::vector<std::byte> data(100);
  const std::vector<std::byte> scales(20);
  const WeightView view = {.format = Format::kMxfp4,
                           .rows = 5,
                           .cols = 32,
                           .data = data.data(),
                           .row_bytes = 17,
                           .scales = scales.data(),
                           .scale_row_bytes = 3};
  const WeightView part = view.row_range(2, 3);
  EXPECT_EQ(part.rows, 3u);
  EXPECT_EQ(part.row(1).data, data.data() + 3 * 17);
  EXPECT_EQ(part.row(1).scales, scales.data() + 3 * 3);
}

TEST(WeightView, FloatsInMemoryAreWeights) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const WeightView view = float_weights(values.data(), 2, 2, 3);
  EXPECT_EQ(view.format, Format::kF32);
  EXPECT_EQ(view.row_bytes, 12u);
  EXPECT_EQ(view.row(1).data, reinterpret_cast<const std::byte*>(values.data() + 3));
  EXPECT_EQ(view.row(1).scales, nullptr);
}

}  // namespace
}  // namespace headrace
