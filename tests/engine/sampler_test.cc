#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace headrace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Result<int32_t> sample(const std::vector<float>& logits, const SamplingOptions& options, uint64_t position = 0) {
  std::vector<SampleCandidate> scratch(logits.size());
  return sample_token(logits, options, {.position = position}, scratch);
}

/// Ids that `draws` draws bring.
std::set<int32_t> drawn_ids(const std::vector<float>& logits, const SamplingOptions& options, uint64_t draws = 4000) {
  std::set<int32_t> ids;
  for (uint64_t position = 0; position < draws; ++position) ids.insert(sample(logits, options, position).value());
  return ids;
}

/// Spread over [0, 8) without order.
std::vector<float> many_logits(size_t count) {
  std::vector<float> logits(count);
  for (size_t i = 0; i < count; ++i) logits[i] = static_cast<float>((i * 7919) % 8191) / 1024.0f;
  return logits;
}

/// The definition, by sorting everything and the library's exponential: ids kept by the filters.
std::set<int32_t> kept_by_definition(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && options.top_k < ids.size()) ids.resize(options.top_k);
  const auto weight = [&](int32_t id) { return std::exp((logits[id] - logits[ids[0]]) / options.temperature); };
  double total = 0;
  for (const int32_t id : ids) total += weight(id);
  std::set<int32_t> kept;
  double sum = 0;
  for (const int32_t id : ids) {
    if (!kept.empty() && options.top_p < 1 && sum >= options.top_p * total) break;
    sum += weight(id);
    if (weight(id) >= options.min_p) kept.insert(id);
  }
  return kept;
}

TEST(Sampler, TemperatureZeroTakesTheGreatestLogitAndTheLowestIdOfEquals) {
  EXPECT_EQ(sample({1, 3, 2}, {}).value(), 1);
  EXPECT_EQ(sample({1, 3, 3, 3}, {}).value(), 1);
  EXPECT_EQ(sample({2, 2}, {}).value(), 0);
  EXPECT_EQ(sample({-kInfinity, -5, -5}, {}).value(), 1);
}

TEST(Sampler, TinyTemperaturesAreGreedyWithoutOverflow) {
  for (const double temperature : {1e-4, 1e-8, 1e-300, std::numeric_limits<double>::denorm_min()}) {
    EXPECT_EQ(drawn_ids({1.0f, 3.0f, 2.9f, -80.0f}, {.temperature = temperature}, 200), (std::set<int32_t>{1}));
  }
}

TEST(Sampler, HugeTemperatureDrawsEvenly) {
  EXPECT_EQ(drawn_ids({-60, 0, 60}, {.temperature = 1e6}).size(), 3u);
}

TEST(Sampler, TopKHasDefinedResultsAtItsEnds) {
  const std::vector<float> logits = {0.1f, 0.4f, 0.2f, 0.3f};
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_k = 1}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_k = 2}), (std::set<int32_t>{1, 3}));
  // No limit, exactly all, and more than there are: one and the same draw.
  for (uint64_t position = 0; position < 500; ++position) {
    const int32_t id = sample(logits, {.temperature = 1}, position).value();
    EXPECT_EQ(sample(logits, {.temperature = 1, .top_k = 4}, position).value(), id);
    EXPECT_EQ(sample(logits, {.temperature = 1, .top_k = 1000}, position).value(), id);
  }
}

TEST(Sampler, TopPHasDefinedResultsAtItsEnds) {
  const std::vector<float> logits = {0.1f, 0.4f, 0.2f, 0.3f};
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_p = 0}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_p = 1}).size(), 4u);
}

TEST(Sampler, TiesAtTheBorderOfAFilterKeepTheLowerIds) {
  const std::vector<float> logits(10, 1.5f);
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_k = 3}), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .top_p = 0.35}), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(drawn_ids(logits, {.temperature = 1, .min_p = 1}).size(), 10u);
}

TEST(Sampler, FiltersKeepWhatTheirDefinitionKeeps) {
  const std::vector<float> logits = many_logits(200);
  const SamplingOptions cases[] = {
      {.temperature = 0.3, .top_k = 20},
      {.temperature = 0.3, .top_p = 0.5},
      {.temperature = 2, .top_p = 0.2},
      {.temperature = 0.3, .min_p = 0.2},
      {.temperature = 0.5, .top_k = 40, .top_p = 0.8},
      {.temperature = 0.5, .top_k = 40, .min_p = 0.3},
      {.temperature = 0.2, .top_k = 50, .top_p = 0.95, .min_p = 0.1},
  };
  for (const SamplingOptions& options : cases) {
    EXPECT_EQ(drawn_ids(logits, options, 8000), kept_by_definition(logits, options))
        << "top_k " << options.top_k << " top_p " << options.top_p << " min_p " << options.min_p;
  }
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  constexpr double kTemperature = 0.7;
  constexpr uint64_t kDraws = 200000;
  std::vector<double> counts(logits.size());
  for (uint64_t position = 0; position < kDraws; ++position) {
    counts[sample(logits, {.temperature = kTemperature, .seed = 5}, position).value()] += 1;
  }
  double total = 0;
  for (const float logit : logits) total += std::exp(logit / kTemperature);
  for (size_t id = 0; id < logits.size(); ++id) {
    const double expected = std::exp(logits[id] / kTemperature) / total;
    // Five standard deviations of a binomial count.
    const double tolerance = 5 * std::sqrt(expected * (1 - expected) / kDraws);
    EXPECT_NEAR(counts[id] / kDraws, expected, tolerance) << id;
  }
}

TEST(Sampler, ADrawDependsOnSeedAndPositionOnly) {
  const std::vector<float> logits = many_logits(300);
  const SamplingOptions options = {.temperature = 1, .seed = 42};
  std::map<uint64_t, int32_t> first;
  for (uint64_t position = 0; position < 50; ++position) first[position] = sample(logits, options, position).value();
  for (uint64_t position = 50; position-- > 0;) EXPECT_EQ(sample(logits, options, position).value(), first[position]);
  int same = 0;
  for (uint64_t position = 0; position < 50; ++position) {
    same += sample(logits, {.temperature = 1, .seed = 43}, position).value() == first[position];
  }
  EXPECT_LT(same, 10);
}

TEST(Sampler, TokensThatAreRuledOutAreNeverDrawn) {
  EXPECT_EQ(drawn_ids({-kInfinity, 0, -kInfinity, 0.5f}, {.temperature = 1e6}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(drawn_ids({-kInfinity, 0, -kInfinity, 0.5f}, {.temperature = 1e6, .top_k = 4, .top_p = 0.9999}),
            (std::set<int32_t>{1, 3}));
}

TEST(Sampler, LogitsThatAreNoNumbersAreDamage) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> cases = {{1, nan, 2}, {nan, 1}, {1, kInfinity}, {-kInfinity, -kInfinity}, {}};
  for (const auto& logits : cases) {
    for (const double temperature : {0.0, 1.0}) {
      const auto result = sample(logits, {.temperature = temperature});
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, Code::kFormat);
    }
  }
}

TEST(Sampler, OptionsOutOfRangeAreRefusedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<SamplingOptions, const char*> cases[] = {
      {{.temperature = -1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.temperature = HUGE_VAL}, "temperature"},
      {{.top_p = -0.1}, "top_p"},
      {{.top_p = 1.5}, "top_p"},
      {{.top_p = nan}, "top_p"},
      {{.min_p = -1}, "min_p"},
      {{.min_p = 2}, "min_p"},
      {{.min_p = nan}, "min_p"},
  };
  for (const auto& [options, name] : cases) {
    const Status status = check_sampling(options, 16);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kArgument);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  }
  EXPECT_TRUE(check_sampling({.temperature = 0.8, .top_k = 5, .top_p = 0, .min_p = 1}, 16));
}

// Computed with Python's integers from the published definition of SplitMix64.
TEST(Sampler, RandomNumbersAreThoseOfTheDefinition) {
  EXPECT_EQ(uniform_at(0, 0), 5876733520225071 * 0x1p-53);
  EXPECT_EQ(uniform_at(0, 1), 6315957190297641 * 0x1p-53);
  EXPECT_EQ(uniform_at(1, 0), 3316356330981164 * 0x1p-53);
  EXPECT_EQ(uniform_at(7, 4096), 5986637920121722 * 0x1p-53);
  EXPECT_EQ(uniform_at(UINT64_MAX, UINT64_MAX - 1), 1618220543686399 * 0x1p-53);
}

TEST(Sampler, TheExponentialIsWithinTwoUnitsInTheLastPlace) {
  for (int i = 0; i <= 200000; ++i) {
    const double x = -700.0 * i / 200000;
    const double expected = std::exp(x);
    const double unit = std::nextafter(expected, HUGE_VAL) - expected;
    ASSERT_LE(std::abs(exp_nonpositive(x) - expected), 2 * unit) << x;
  }
  EXPECT_EQ(exp_nonpositive(0), 1);
  EXPECT_EQ(exp_nonpositive(-701), 0);
  EXPECT_EQ(exp_nonpositive(-HUGE_VAL), 0);
}

// A selection sort took 27.9 s a token here in a related engine; the bound is loose because machines are busy.
TEST(Sampler, ALargeVocabularyWithoutTopKTakesOnePass) {
  const std::vector<float> logits = many_logits(163840);
  std::vector<SampleCandidate> scratch(logits.size());
  const SamplingOptions cases[] = {{.temperature = 0.8},
                                   {.temperature = 0.8, .top_p = 0.95},
                                   {.temperature = 100, .top_p = 0.999},
                                   {.temperature = 0.8, .top_k = 100000}};
  const auto start = std::chrono::steady_clock::now();
  for (const SamplingOptions& options : cases) ASSERT_TRUE(sample_token(logits, options, {}, scratch));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace headrace
