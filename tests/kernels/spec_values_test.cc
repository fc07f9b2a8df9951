#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/every_table.h"

namespace headrace {
namespace {

/// Numbers that the specification of the Kimi family prints, sections 5, 8 and 9. Nine digits are printed; float32
/// arithmetic adds a few units of 6e-8.
class SpecValues : public test::EveryTable {
 protected:
  static void expect_near(float got, double expected) {
    EXPECT_NEAR(got, expected, 5e-7 * std::max(std::fabs(expected), 1e-2));
  }
};

TEST_P(SpecValues, Situ) {
  const std::vector<float> gate = {0.5F, 1, -1, 4, -4, 12, -12, 2.5F};
  const std::vector<float> up = {1, 2, 3, 10, -10, 60, 60, -30};
  const double expected[] = {0.309453721, 1.42935113, -0.786652964,    28.4162295,
                             0.520461399, 97.8804329, -0.000601398165, -42.7271993};
  std::vector<float> out(gate.size());
  kernels().situ(gate, up, 4.0F, 25.0F, out);
  for (size_t i = 0; i < out.size(); ++i) expect_near(out[i], expected[i]);
}

TEST_P(SpecValues, Decay) {
  struct Case {
    float z;
    double a_log, unbounded, bounded;
  };
  constexpr Case kCases[] = {{-2, 0, -0.126928011, -0.59601461},
                             {0, 0, -0.693147181, -2.5},
                             {1.5F, 0.5, -2.80515626, -4.61116542},
                             {-6, 1, -0.00672960992, -4.12820427e-07},
                             {25, 0, -25, -5}};
  for (const Case& c : kCases) {
    const auto a = static_cast<float>(std::exp(c.a_log));
    const float zero = 0.0F;
    float decay = 0.0F;
    kernels().decay_unbounded({&c.z, 1}, {&zero, 1}, a, {&decay, 1});
    EXPECT_NEAR(decay / std::exp(c.unbounded), 1.0, 1e-6) << c.z;
    kernels().decay_bounded({&c.z, 1}, {&zero, 1}, a, -5.0F, {&decay, 1});
    EXPECT_NEAR(decay / std::exp(c.bounded), 1.0, 1e-6) << c.z;
  }
}

TEST_P(SpecValues, RmsNorm) {
  const std::vector<float> x = {1, -2, 3, 0.5F};
  const std::vector<float> weight = {1, 2, 0.5F, -1};
  const double expected[] = {0.529812199, -2.1192488, 0.794718299, -0.2649061};
  std::vector<float> out(4);
  kernels().rms_norm(x, weight, 1e-5F, out);
  for (size_t i = 0; i < 4; ++i) expect_near(out[i], expected[i]);
}

TEST_P(SpecValues, KdaOfOneHead) {
  struct Step {
    std::array<float, 2> q, k, v, g;
    float beta;
    double o[2], state[4];
  };
  constexpr Step kSteps[] = {
      {{3, 4}, {1, 0}, {2, -1}, {-0.5F, -1}, 0.5F, {0.424263848, -0.212131924}, {0.9999995, -0.49999975, 0, 0}},
      {{1, 1},
       {0.6F, 0.8F},
       {1, 1},
       {-0.1F, -0.2F},
       0.75F,
       {0.692394688, 0.441302065},
       {1.110531, 0.11973416, 0.274258718, 0.762870191}},
      {{0, 2},
       {0, -1},
       {-1, 0.5F},
       {-2, -0.05F},
       1,
       {0.707106524, -0.353552657},
       {0.150294028, 0.0162042565, 0.999999761, -0.499999024}}};
  std::vector<float> state(4, 0.0F);
  for (const Step& step : kSteps) {
    std::vector<float> q(2), k(2), decay(2), out(2);
    kernels().l2_normalize(step.q, 1e-6F, static_cast<float>(std::pow(2.0, -0.5)), q);
    kernels().l2_normalize(step.k, 1e-6F, 1.0F, k);
    for (size_t d = 0; d < 2; ++d) decay[d] = kernels().exp(step.g[d]);
    kernels().delta_rule({.q = q, .k = k, .v = step.v, .decay = decay, .beta = step.beta},
                         MatrixView<float>(state.data(), 2, 2), out);
    for (size_t i = 0; i < 2; ++i) expect_near(out[i], step.o[i]);
    for (size_t i = 0; i < 4; ++i) expect_near(state[i], step.state[i]);
  }
}

TEST_P(SpecValues, AttentionResidual) {
  const std::vector<float> sources[] = {{1, 2, -2, 0.5F}, {0, 1, 0, -1}, {3, -1, 2, 2}};
  const std::vector<float> weight = {1 * 0.3F, 0.5F * -0.2F, 2 * 0.1F, 1 * 0.4F};
  const double scores[] = {-0.0657594527, -0.70709971, 1.03708879};
  const double p[] = {0.220297264, 0.116005497, 0.663697239};
  const double mix[] = {2.21138898, -0.107097214, 0.88679995, 1.32153761};
  std::vector<float> got(3);
  for (size_t i = 0; i < 3; ++i) {
    got[i] = kernels().residual_score(sources[i], weight, 1e-5F);
    expect_near(got[i], scores[i]);
  }
  kernels().softmax(got, 1.0F, got);
  std::vector<float> sum(4, 0.0F);
  for (size_t i = 0; i < 3; ++i) {
    expect_near(got[i], p[i]);
    kernels().add_scaled(got[i], sources[i], sum);
  }
  // Terms up to 2 cancel.
  for (size_t d = 0; d < 4; ++d) EXPECT_NEAR(sum[d], mix[d], 5e-7);
}

TEST_P(SpecValues, RouterSigmoids) {
  const std::vector<float> logits = {0.2F, -1, 1};
  const double expected[] = {0.867766457, 0.424452372, 1.15378117};
  std::vector<float> w(3);
  kernels().sigmoid(logits, w);
  const float sum = w[0] + w[1] + w[2];
  for (size_t i = 0; i < 3; ++i) expect_near(w[i] / sum * 2.446F, expected[i]);
}

INSTANTIATE_TEST_SUITE_P(Tables, SpecValues, testing::ValuesIn(usable_kernels()), test::table_name);

}  // namespace
}  // namespace headrace
