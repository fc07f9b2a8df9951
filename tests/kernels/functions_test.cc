#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/every_table.h"
#include "kernels/numbers.h"

namespace headrace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Accuracy of the functions, in units in the last place of float32, against the C library in double.
class Functions : public test::EveryTable {
 protected:
  std::vector<float> exp(const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = kernels().exp(x[i]);
    return y;
  }
  std::vector<float> sigmoid(const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    kernels().sigmoid(x, y);
    return y;
  }
  /// SiTU with beta = linear_beta = 1 and a gate so large that its two factors are exactly 1.
  std::vector<float> tanh(const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    const std::vector<float> gate(x.size(), 200.0F);
    kernels().situ(gate, x, 1.0F, 1.0F, y);
    return y;
  }
};

/// Numbers of all sizes in [low, high], `count` by equal steps and `count` by equal ratios.
std::vector<float> grid(double low, double high, int count) {
  std::vector<float> x;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(low + (high - low) * i / count));
  for (int i = 0; i <= count; ++i) {
    const double size = std::pow(10.0, -45.0 + 47.0 * i / count);
    if (size <= high) x.push_back(static_cast<float>(size));
    if (-size >= low) x.push_back(static_cast<float>(-size));
  }
  return x;
}

double worst_error(const std::vector<float>& x, const std::vector<float>& y,
                   const std::function<double(double)>& reference) {
  double worst = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = reference(x[i]);
    const double error = std::fabs(y[i] - expected) / test::unit_in_last_place(expected);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

TEST_P(Functions, ExpIsWithinOneUnit) {
  const std::vector<float> x = grid(-87.0, 88.72, 60000);
  EXPECT_LE(worst_error(x, exp(x), [](double v) { return std::exp(v); }), 1.0);
}

TEST_P(Functions, ExpRoundsSubnormalResultsOnce) {
  const std::vector<float> x = grid(-104.5, -87.0, 20000);
  // Half a unit of the subnormal grid, and what the polynomial adds at its upper end.
  EXPECT_LE(worst_error(x, exp(x), [](double v) { return std::exp(v); }), 1.0);
}

TEST_P(Functions, ExpOfExtremesIsZeroOneInfinityOrNan) {
  for (const float x : {-kInfinity, -3.4e38F, -1000.0F, -105.0F, -104.0F}) {
    EXPECT_EQ(kernels().exp(x), 0.0F) << x;
    EXPECT_FALSE(std::signbit(kernels().exp(x)));
  }
  for (const float x : {0.0F, -0.0F, 1e-45F, -1e-45F, 1e-38F, -1e-38F}) EXPECT_EQ(kernels().exp(x), 1.0F) << x;
  for (const float x : {88.73F, 89.0F, 1000.0F, 3.4e38F, kInfinity}) EXPECT_EQ(kernels().exp(x), kInfinity) << x;
  EXPECT_GT(kernels().exp(-103.9F), 0.0F);
  EXPECT_LT(kernels().exp(88.72F), kInfinity);
  EXPECT_TRUE(std::isnan(kernels().exp(kNan)));
  EXPECT_TRUE(std::isnan(kernels().exp(-kNan)));
}

TEST_P(Functions, SigmoidIsWithinThreeUnits) {
  const std::vector<float> x = grid(-103.0, 100.0, 100000);
  EXPECT_LE(worst_error(x, sigmoid(x), logistic), 3.0);
}

TEST_P(Functions, SigmoidOfExtremesIsZeroHalfOneOrNan) {
  const std::vector<float> y =
      sigmoid({-kInfinity, -3.4e38F, -0.0F, 0.0F, 1e-45F, -1e-45F, 3.4e38F, kInfinity, kNan, -kNan});
  const std::vector<float> expected = {0.0F, 0.0F, 0.5F, 0.5F, 0.5F, 0.5F, 1.0F, 1.0F, kNan, kNan};
  for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(test::same_number(y[i], expected[i])) << i << ": " << y[i];
}

TEST_P(Functions, TanhIsWithinThreeUnits) {
  const std::vector<float> x = grid(-22.0, 22.0, 100000);
  EXPECT_LE(worst_error(x, tanh(x), [](double v) { return std::tanh(v); }), 3.0);
}

TEST_P(Functions, TanhOfExtremesKeepsTheSign) {
  const std::vector<float> x = {-kInfinity, -3.4e38F, -20.0F, -0.0F, 0.0F, 1e-45F, -1e-45F, 2e-38F, 50.0F, kInfinity};
  const std::vector<float> expected = {-1.0F, -1.0F, -1.0F, -0.0F, 0.0F, 1e-45F, -1e-45F, 2e-38F, 1.0F, 1.0F};
  const std::vector<float> y = tanh(x);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(test::same_number(y[i], expected[i])) << x[i] << ": " << y[i];
  EXPECT_TRUE(std::isnan(tanh({kNan})[0]));
}

TEST_P(Functions, SoftplusIsAccurateRelativeToItsSizeForVeryNegativeArguments) {
  // exp(-a softplus(z)) with a = 1 / softplus(z): a relative error e of softplus shows as an error e of 1/e.
  for (const float z : grid(-80.0, 20.0, 20000)) {
    const double expected = std::log1p(std::exp(static_cast<double>(z)));
    const auto a = static_cast<float>(1.0 / expected);
    float decay = 0.0F;
    const float zero = 0.0F;
    kernels().decay_unbounded({&z, 1}, {&zero, 1}, a, {&decay, 1});
    ASSERT_NEAR(decay, std::exp(-a * expected), 4e-7 * std::exp(-1.0)) << z;
  }
}

TEST_P(Functions, SoftplusIsItsArgumentAboveTwenty) {
  for (const float z : {20.5F, 25.0F, 80.0F}) {
    float decay = 0.0F;
    const float zero = 0.0F;
    kernels().decay_unbounded({&z, 1}, {&zero, 1}, 1.0F, {&decay, 1});
    EXPECT_EQ(decay, kernels().exp(-z));
  }
}

TEST_P(Functions, DecaysOfExtremesStayWithinZeroAndOne) {
  const std::vector<float> z = {-kInfinity, -3.4e38F, -200.0F, -0.0F, 0.0F, 200.0F, 3.4e38F, kInfinity, kNan};
  const std::vector<float> zero(z.size(), 0.0F);
  std::vector<float> unbounded(z.size());
  std::vector<float> bounded(z.size());
  kernels().decay_unbounded(z, zero, 1.0F, unbounded);
  kernels().decay_bounded(z, zero, 1.0F, -5.0F, bounded);
  for (size_t i = 0; i + 1 < z.size(); ++i) {
    EXPECT_TRUE(unbounded[i] >= 0.0F && unbounded[i] <= 1.0F) << z[i];
    EXPECT_TRUE(bounded[i] >= 0.0067F && bounded[i] <= 1.0F) << z[i];
  }
  EXPECT_TRUE(std::isnan(unbounded.back()));
  EXPECT_TRUE(std::isnan(bounded.back()));
}

TEST_P(Functions, FinitenessSeesEveryLane) {
  for (size_t length = 1; length <= 50; ++length) {
    std::vector<float> x(length, std::numeric_limits<float>::max());
    EXPECT_TRUE(kernels().all_finite(x));
    for (size_t i = 0; i < length; ++i) {
      for (const float bad : {kInfinity, -kInfinity, kNan}) {
        x[i] = bad;
        EXPECT_FALSE(kernels().all_finite(x)) << i << " of " << length;
      }
      x[i] = -std::numeric_limits<float>::denorm_min();
    }
    EXPECT_TRUE(kernels().all_finite(x));
  }
  EXPECT_TRUE(kernels().all_finite({}));
}

INSTANTIATE_TEST_SUITE_P(Tables, Functions, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
