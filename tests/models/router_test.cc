#include "models/router.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/oracle_vectors.h"

namespace headrace {
namespace {

struct Choice {
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};

Choice choose(const RouterRules& rules, const std::vector<float>& scores, const std::vector<float>& bias) {
  Router router(rules, scores.size());
  Choice choice{std::vector<uint32_t>(rules.top_k), std::vector<float>(rules.top_k)};
  router.choose(scores, bias, choice.experts, choice.weights);
  return choice;
}

std::vector<float> scores_of(const std::vector<double>& logits, const std::string& activation) {
  std::vector<float> scores;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) {
    scores.push_back(static_cast<float>(activation == "softmax" ? std::exp(logit) / sum : 1 / (1 + std::exp(-logit))));
  }
  return scores;
}

TEST(Router, ChoosesAndWeighsAsTheOracle) {
  const auto vectors = test::load_oracle_vectors("kernels/router");
  ASSERT_GT(vectors["cases"].size(), 10u);
  for (const auto& vector : vectors["cases"]) {
    SCOPED_TRACE(vector.dump().substr(0, 200));
    const RouterRules rules{vector["top_k"], vector["groups"], vector["groups_kept"], vector["renormalize"],
                            vector["scale"]};
    const auto choice = choose(rules, scores_of(vector["logits"], vector["activation"]), vector["bias"]);
    EXPECT_EQ(choice.experts, vector["ids"].get<std::vector<uint32_t>>());
    const auto weights = vector["weights"].get<std::vector<double>>();
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(choice.weights[i], weights[i], 1e-6 * (1 + weights[i]));
  }
}

TEST(Router, TheBiasChoosesButDoesNotWeigh) {
  // Spec 8: expert 3 has the largest score and is not chosen; expert 5 has the smallest and is.
  const auto scores = scores_of({1, -0.5, 0.2, 2, 0.9, -1}, "sigmoid");
  const auto choice = choose({3, 1, 1, true, 2.446f}, scores, {0, 0.3f, 0.25f, -0.4f, 0, 0.5f});
  EXPECT_EQ(choice.experts, (std::vector<uint32_t>{0, 2, 5}));
  EXPECT_NEAR(choice.weights[0], 1.15378117, 1e-6);
  EXPECT_NEAR(choice.weights[1], 0.867766457, 1e-6);
  EXPECT_NEAR(choice.weights[2], 0.424452372, 1e-6);
}

TEST(Router, TiesGoToTheLowestIndex) {
  const std::vector<float> equal(9, 0.5f);
  EXPECT_EQ(choose({4, 1, 1, true, 1.0f}, equal, std::vector<float>(9)).experts, (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(Router, ScoresThatAreNotNumbersStillGiveDistinctExperts) {
  const float nan = std::nanf("");
  const auto choice = choose({3, 1, 1, true, 1.0f}, {nan, 0.2f, nan, nan}, std::vector<float>(4));
  EXPECT_EQ(choice.experts, (std::vector<uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace headrace
