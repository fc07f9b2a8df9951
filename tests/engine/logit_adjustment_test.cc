// Penalties and biases, against their definitions written down once more.

#include "engine/logit_adjustment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Ids = std::vector<int32_t>;

struct Place {
  Ids sequence;
  Ids generated;
};

Result<int32_t> sample(const std::vector<float>& logits, const SamplingOptions& options, const Place& place,
                       uint64_t position = 0) {
  std::vector<SampleCandidate> scratch(logits.size());
  return sample_token(logits, options, {position, place.sequence, place.generated}, scratch);
}

std::vector<double> adjusted(const std::vector<float>& logits, const SamplingOptions& options, const Place& place) {
  std::vector<SampleCandidate> tokens(logits.size());
  for (size_t id = 0; id < logits.size(); ++id) tokens[id] = {logits[id], static_cast<int32_t>(id), 0};
  adjust_logits(options, {0, place.sequence, place.generated}, tokens);
  std::vector<double> values;
  for (const SampleCandidate& token : tokens) {
    EXPECT_EQ(token.count, 0u);
    values.push_back(token.value);
  }
  return values;
}

/// The definitions, token by token.
std::vector<double> adjusted_by_definition(const std::vector<float>& logits, const SamplingOptions& options,
                                           const Place& place) {
  std::vector<double> values(logits.begin(), logits.end());
  const size_t window = std::min(options.penalty_window, place.sequence.size());
  const std::set<int32_t> seen(place.sequence.end() - static_cast<ptrdiff_t>(window), place.sequence.end());
  for (size_t id = 0; id < values.size(); ++id) {
    const auto count = static_cast<double>(std::ranges::count(place.generated, static_cast<int32_t>(id)));
    if (seen.count(static_cast<int32_t>(id)) > 0) {
      values[id] = values[id] > 0 ? values[id] / options.repetition_penalty : values[id] * options.repetition_penalty;
    }
    values[id] = values[id] - (options.frequency_penalty * count + (count > 0 ? options.presence_penalty : 0));
    for (const LogitBias& bias : options.logit_bias) {
      if (bias.id == static_cast<int32_t>(id)) values[id] = bias.bias <= -100 ? -kInfinity : values[id] + bias.bias;
    }
  }
  return values;
}

TEST(LogitAdjustment, GivesWhatTheDefinitionsGive) {
  std::vector<float> logits(40);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 7919) % 97) / 8.0f - 6.0f;
  logits[7] = -std::numeric_limits<float>::infinity();
  Place place;
  for (int32_t i = 0; i < 90; ++i) place.sequence.push_back(i * i % 37);
  place.generated.assign(place.sequence.end() - 30, place.sequence.end());
  for (const double repetition : {1.0, 1.3, 0.5, 100.0}) {
    for (const size_t window : {size_t{0}, size_t{1}, size_t{12}, size_t{90}, SIZE_MAX}) {
      for (const double frequency : {0.0, 0.4, -2.0}) {
        for (const double presence : {0.0, 1.5}) {
          const SamplingOptions options = {.repetition_penalty = repetition,
                                           .penalty_window = window,
                                           .frequency_penalty = frequency,
                                           .presence_penalty = presence,
                                           .logit_bias = {{3, 2.5}, {0, -7}, {9, -100}, {10, -kInfinity}, {7, 100}}};
          ASSERT_EQ(adjusted(logits, options, place), adjusted_by_definition(logits, options, place));
        }
      }
    }
  }
}

TEST(LogitAdjustment, OptionsAtTheirDefaultsChangeNothing) {
  EXPECT_FALSE(adjusts_logits({}));
  EXPECT_FALSE(adjusts_logits({.temperature = 1, .penalty_window = 9}));
  EXPECT_TRUE(adjusts_logits({.repetition_penalty = 1.1}));
  EXPECT_TRUE(adjusts_logits({.frequency_penalty = -0.1}));
  EXPECT_TRUE(adjusts_logits({.presence_penalty = 0.1}));
  EXPECT_TRUE(adjusts_logits({.logit_bias = {{0, 0}}}));
}

TEST(LogitAdjustment, GreedyTakesTheGreatestAdjustedLogitAndTheLowestIdOfEquals) {
  const std::vector<float> logits = {1, 4, 3, 2};
  EXPECT_EQ(sample(logits, {.repetition_penalty = 2}, {{1}, {}}).value(), 2);
  EXPECT_EQ(sample(logits, {.repetition_penalty = 2}, {{1, 2}, {}}).value(), 1);  // 2, 1.5 and 2 are left.
  EXPECT_EQ(sample(logits, {.frequency_penalty = 0.6}, {{}, {1, 1}}).value(), 2);
  EXPECT_EQ(sample(logits, {.presence_penalty = 1}, {{}, {1, 1}}).value(), 1);  // 3 and 3.
  EXPECT_EQ(sample(logits, {.logit_bias = {{0, 3.5}}}, {}).value(), 0);
  EXPECT_EQ(sample(logits, {.logit_bias = {{1, -kInfinity}}}, {}).value(), 2);
  EXPECT_EQ(sample(logits, {.top_k = 1, .logit_bias = {{1, -100}, {2, -100}}}, {}).value(), 3);
}

TEST(LogitAdjustment, TinyTemperaturesAreGreedy) {
  const std::vector<float> logits = {1, 4, 3.5, 2};
  const SamplingOptions options = {.temperature = 1e-8, .repetition_penalty = 1.5, .logit_bias = {{3, 1.0}}};
  for (uint64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(sample(logits, options, {{1}, {}}, position).value(), 2);
  }
}

TEST(LogitAdjustment, BannedTokensAreNeverDrawnAndSurvivorsFollowTheAdjustedSoftmax) {
  const std::vector<float> logits = {0, 1, 2, -1};
  const SamplingOptions options = {
      .temperature = 0.7, .seed = 3, .presence_penalty = 1, .logit_bias = {{2, -100}, {3, 1.5}}};
  const Place place = {{}, {1}};
  const std::vector<double> values = adjusted_by_definition(logits, options, place);
  constexpr uint64_t kDraws = 100000;
  std::map<int32_t, double> counts;
  for (uint64_t i = 0; i < kDraws; ++i) counts[sample(logits, options, place, i).value()] += 1;
  double total = 0;
  for (const double value : values) total += std::exp(value / 0.7);
  EXPECT_EQ(counts.count(2), 0u);
  for (const int32_t id : {0, 1, 3}) {
    const double expected = std::exp(values[static_cast<size_t>(id)] / 0.7) / total;
    // Five standard deviations of a binomial count.
    EXPECT_NEAR(counts[id] / kDraws, expected, 5 * std::sqrt(expected * (1 - expected) / kDraws)) << id;
  }
}

TEST(LogitAdjustment, FiltersSeeAdjustedLogits) {
  const std::vector<float> logits = {0, 1, 2, 3};
  for (uint64_t position = 0; position < 200; ++position) {
    const int32_t id =
        sample(logits, {.temperature = 5, .top_k = 2, .logit_bias = {{3, -100}, {0, 9}}}, {}, position).value();
    EXPECT_TRUE(id == 0 || id == 2) << id;
    EXPECT_EQ(sample(logits, {.temperature = 1, .top_p = 0.9, .logit_bias = {{1, 50}}}, {}, position).value(), 1);
    EXPECT_EQ(sample(logits, {.temperature = 1, .min_p = 0.9, .logit_bias = {{0, 50}}}, {}, position).value(), 0);
  }
}

TEST(LogitAdjustment, BiasesThatBanEverythingAreTheCallersError) {
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    for (const std::vector<float>& logits : {std::vector<float>{1, 2}, std::vector<float>{1, 2, minus_infinity}}) {
      const auto refused = sample(logits, {.temperature = temperature, .logit_bias = {{0, -100}, {1, -kInfinity}}}, {});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::kArgument);
      EXPECT_NE(refused.error().message.find("logit_bias"), std::string::npos);
    }
  }
}

TEST(LogitAdjustment, DamagedLogitsAreDamageWhateverTheBiases) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sample({1, nan}, {.logit_bias = {{1, -100}}}, {}).error().code, Code::kFormat);
}

TEST(LogitAdjustment, OptionsOutOfRangeAreRefusedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<SamplingOptions, const char*> cases[] = {
      {{.repetition_penalty = 0}, "repetition_penalty"},   {{.repetition_penalty = -1}, "repetition_penalty"},
      {{.repetition_penalty = 101}, "repetition_penalty"}, {{.repetition_penalty = nan}, "repetition_penalty"},
      {{.frequency_penalty = 2.1}, "frequency_penalty"},   {{.frequency_penalty = nan}, "frequency_penalty"},
      {{.presence_penalty = -2.1}, "presence_penalty"},    {{.presence_penalty = kInfinity}, "presence_penalty"},
      {{.logit_bias = {{-1, 0}}}, "logit_bias"},           {{.logit_bias = {{16, 0}}}, "logit_bias"},
      {{.logit_bias = {{1, 100.5}}}, "logit_bias"},        {{.logit_bias = {{1, -101}}}, "logit_bias"},
      {{.logit_bias = {{1, nan}}}, "logit_bias"},          {{.logit_bias = {{1, kInfinity}}}, "logit_bias"},
      {{.logit_bias = {{1, 1}, {2, 1}, {1, 1}}}, "twice"},
  };
  for (const auto& [options, name] : cases) {
    const Status status = check_sampling(options, 16);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, Code::kArgument);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  }
  SamplingOptions many;
  for (int32_t id = 0; id < 1025; ++id) many.logit_bias.push_back({id, 1});
  EXPECT_EQ(check_sampling(many, 100000).error().code, Code::kArgument);
  many.logit_bias.pop_back();
  EXPECT_TRUE(check_sampling(many, 100000));
  EXPECT_TRUE(check_sampling({.repetition_penalty = 0.01, .frequency_penalty = -2, .presence_penalty = 2}, 1));
}

// A long answer costs what it is long, not its square; the bound is loose because machines are busy.
TEST(LogitAdjustment, ALargeVocabularyAndALongAnswerTakeLittleTime) {
  std::vector<float> logits(163840);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 7919) % 8191) / 1024.0f;
  Ids ids;
  for (int32_t i = 0; i < 100000; ++i) ids.push_back(i * 31 % 163840);
  std::vector<SampleCandidate> scratch(logits.size());
  const SamplingOptions options = {.temperature = 0.8,
                                   .top_p = 0.95,
                                   .repetition_penalty = 1.1,
                                   .penalty_window = SIZE_MAX,
                                   .frequency_penalty = 0.1};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(sample_token(logits, options, {0, ids, ids}, scratch));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace headrace
