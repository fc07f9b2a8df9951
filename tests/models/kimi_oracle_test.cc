// Whole models against the float64 oracle: every position's logits, the experts and their weights, and a greedy
// continuation, for both tiny models of the spec and for configurations that exercise every option by value.

#include <gtest/gtest.h>

#include <cmath>

#include "models/model_harness.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using test::OpenModel;
using test::RunResult;
using test::RunSetup;

// Spec 16: final logits of tiny models.
constexpr double kRelativeBound = 1e-4;
constexpr double kAbsoluteBound = 5e-4;
constexpr double kWeightBound = 1e-5;

double relative_l2(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

class KimiOracle : public testing::TestWithParam<std::string> {};

void expect_logits(const RunResult& result, const nlohmann::json& vector) {
  double worst = 0;
  ASSERT_EQ(result.logits.size(), vector["logits"].size());
  for (size_t t = 0; t < result.logits.size(); ++t) {
    const auto want = vector["logits"][t].get<std::vector<double>>();
    ASSERT_EQ(result.logits[t].size(), want.size());
    worst = std::max(worst, relative_l2(result.logits[t], want));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(result.logits[t][i], want[i], kAbsoluteBound) << t << " " << i;
  }
  EXPECT_LT(worst, kRelativeBound);
  testing::Test::RecordProperty("largest_relative_l2", std::to_string(worst));
}

void expect_experts(const RunResult& result, const nlohmann::json& vector) {
  for (size_t t = 0; t < result.routing.size(); ++t) {
    const auto& layers = vector["experts"][t];
    ASSERT_EQ(result.routing[t].size(), layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      const RoutedExperts& got = result.routing[t][i];
      EXPECT_EQ(got.layer, layers[i][0].get<uint32_t>());
      EXPECT_EQ(got.experts, layers[i][1].get<std::vector<uint32_t>>()) << "token " << t << ", layer " << got.layer;
      const auto weights = layers[i][2].get<std::vector<double>>();
      for (size_t k = 0; k < weights.size(); ++k)
        EXPECT_NEAR(got.weights[k], weights[k], kWeightBound * (1 + weights[k]));
    }
  }
}

TEST_P(KimiOracle, LogitsExpertsAndGreedyTokensAgree) {
  const auto vector = test::load_oracle_vectors("models/" + GetParam());
  ASSERT_GT(vector["smallest_router_gap"].get<double>(), 1e-4) << "expert sets are only comparable without near ties";
  const test::TempFolder folder;
  folder.write(test::oracle_checkpoint(vector));
  for (const Kernels* kernels : usable_kernels()) {
    SCOPED_TRACE(kernels->name);
    auto open = OpenModel::open(folder.path(), RunSetup{.isa = kernels->name, .threads = 2});
    ASSERT_TRUE(open) << open.error().message;
    auto result = open.value()->run(vector["prompt"].get<std::vector<int32_t>>());
    ASSERT_TRUE(result) << result.error().message;
    expect_logits(result.value(), vector);
    expect_experts(result.value(), vector);
    const auto greedy = vector["greedy"]["ids"].get<std::vector<int32_t>>();
    auto ids = open.value()->continue_greedily(result.value().logits.back(), greedy.size());
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(ids.value(), greedy);
    EXPECT_EQ(open.value()->model().info().tensor_count, vector["tensors"]["count"].get<size_t>());
    EXPECT_EQ(open.value()->model().info().checkpoint_bytes, vector["tensors"]["bytes"].get<uint64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, KimiOracle, testing::ValuesIn(test::oracle_model_names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace headrace
