#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/every_table.h"
#include "kernels/numbers.h"
#include "kernels/weight_samples.h"

namespace headrace {
namespace {

using test::Inputs;
using test::Numbers;

/// Tests of what a sum is, against the words of kernels.h written out here once more, one number at a time.
class Sums : public test::EveryTable {};

float joined(const float (&lanes)[16]) {
  float by_8[8];
  for (size_t l = 0; l < 8; ++l) by_8[l] = lanes[l] + lanes[l + 8];
  float by_4[4];
  for (size_t l = 0; l < 4; ++l) by_4[l] = by_8[l] + by_8[l + 4];
  return (by_4[0] + by_4[2]) + (by_4[1] + by_4[3]);
}

float product_by_definition(const WeightView& weights, size_t row, const float* x) {
  float lanes[16] = {};
  for (size_t k = 0; k < (weights.cols + 15) / 16 * 16; ++k) {
    const float w = k < weights.cols ? static_cast<float>(test::decode_reference(weights, row, k)) : 0.0F;
    lanes[k % 16] = std::fma(w, k < weights.cols ? x[k] : 0.0F, lanes[k % 16]);
  }
  return joined(lanes);
}

TEST_P(Sums, ProductsFollowTheDefinitionToTheBit) {
  Numbers numbers(11);
  for (const Format format : test::kAllFormats) {
    for (const Inputs inputs : test::kAllInputs) {
      for (size_t width = 1; width <= 40; ++width) {
        const size_t cols = width * test::column_multiple(format);
        const size_t rows = 1 + width % 9;
        const size_t tokens = 1 + width % 7;
        const test::WeightSample weights(numbers, inputs, format, rows, cols, {.offset_bytes = width % 4});
        const std::vector<float> x = test::many_numbers(numbers, inputs, tokens * cols);
        std::vector<float> y(tokens * rows);
        kernels().matmul[static_cast<size_t>(format)](weights.view(), MatrixView<const float>(x.data(), tokens, cols),
                                                      MatrixView<float>(y.data(), tokens, rows));
        for (size_t t = 0; t < tokens; ++t) {
          for (size_t r = 0; r < rows; ++r) {
            const float expected = product_by_definition(weights.view(), r, x.data() + t * cols);
            ASSERT_TRUE(test::same_number(y[t * rows + r], expected))
                << format_name(format) << " cols " << cols << ": " << y[t * rows + r] << ", expected " << expected;
          }
        }
      }
    }
  }
}

TEST_P(Sums, TransposedProductsFollowTheDefinitionToTheBit) {
  Numbers numbers(12);
  for (const Format format : test::kAllFormats) {
    for (const Inputs inputs : test::kAllInputs) {
      for (size_t width = 1; width <= 40; ++width) {
        const size_t cols = width * test::column_multiple(format);
        const size_t rows = width % 8 == 0 ? 150 : 1 + width % 9;
        const size_t tokens = 1 + width % 7;
        const test::WeightSample weights(numbers, inputs, format, rows, cols, {.offset_bytes = width % 4});
        const std::vector<float> x = test::many_numbers(numbers, inputs, tokens * rows);
        std::vector<float> y(tokens * cols);
        kernels().matmul_transposed[static_cast<size_t>(format)](
            weights.view(), MatrixView<const float>(x.data(), tokens, rows), MatrixView<float>(y.data(), tokens, cols));
        for (size_t t = 0; t < tokens; ++t) {
          for (size_t c = 0; c < cols; ++c) {
            float expected = 0.0F;
            for (size_t r = 0; r < rows; ++r) {
              const auto w = static_cast<float>(test::decode_reference(weights.view(), r, c));
              expected = std::fma(x[t * rows + r], w, expected);
            }
            ASSERT_TRUE(test::same_number(y[t * cols + c], expected)) << format_name(format) << " cols " << cols;
          }
        }
      }
    }
  }
}

TEST_P(Sums, RowsPastTheEndCountAsZeros) {
  // Every product of the first 16 columns rounds to -0. A row of 16 columns keeps that. In a row of 17 the other lanes
  // add 0 * 0 and become +0, as the last column makes the first one.
  std::vector<float> weights(17, 0.0F);
  std::vector<float> x(17, 0.0F);
  std::fill(weights.begin(), weights.begin() + 16, 0x1p-100F);
  std::fill(x.begin(), x.begin() + 16, -0x1p-100F);
  for (const size_t cols : {16, 17}) {
    float y = 1.0F;
    kernels().matmul[static_cast<size_t>(Format::kF32)](float_weights(weights.data(), 1, cols, cols),
                                                        MatrixView<const float>(x.data(), 1, cols),
                                                        MatrixView<float>(&y, 1, 1));
    EXPECT_EQ(y, 0.0F);
    EXPECT_EQ(std::signbit(y), cols == 16) << cols;
  }
}

TEST_P(Sums, AProductWithoutColumnsIsZero) {
  float y = 1.0F;
  kernels().matmul[static_cast<size_t>(Format::kF32)](
      float_weights(nullptr, 1, 0, 0), MatrixView<const float>(nullptr, 1, 0), MatrixView<float>(&y, 1, 1));
  EXPECT_EQ(y, 0.0F);
}

TEST_P(Sums, ATransposedProductWithoutRowsIsZero) {
  std::vector<float> y(3, 1.0F);
  kernels().matmul_transposed[static_cast<size_t>(Format::kF32)](
      float_weights(nullptr, 0, 3, 3), MatrixView<const float>(nullptr, 1, 0), MatrixView<float>(y.data(), 1, 3));
  EXPECT_EQ(y, std::vector<float>(3, 0.0F));
}

TEST_P(Sums, ProductsAgreeWithFloat64) {
  Numbers numbers(13);
  for (const Format format : test::kAllFormats) {
    for (const size_t cols : {2304, 3584}) {
      const test::WeightSample weights(numbers, Inputs::kOrdinary, format, 6, cols, {});
      const std::vector<float> x = test::many_numbers(numbers, Inputs::kOrdinary, cols);
      std::vector<float> y(6);
      kernels().matmul[static_cast<size_t>(format)](weights.view(), MatrixView<const float>(x.data(), 1, cols),
                                                    MatrixView<float>(y.data(), 1, 6));
      for (size_t r = 0; r < 6; ++r) {
        double expected = 0.0;
        double magnitude = 0.0;
        for (size_t k = 0; k < cols; ++k) {
          const double term = test::decode_reference(weights.view(), r, k) * x[k];
          expected += term;
          magnitude += std::fabs(term);
        }
        // One rounding for each of cols / 16 steps of a lane and four in the tree, of 2^-24 each.
        EXPECT_NEAR(y[r], expected, magnitude * (static_cast<double>(cols) / 16 + 4) * 0x1p-24) << format_name(format);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Sums, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
