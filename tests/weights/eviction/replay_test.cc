#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "weights/eviction/eviction_table.h"

namespace headrace {
namespace {

/// Experts of [token][layer], ascending.
using Trace = std::vector<std::vector<std::vector<uint32_t>>>;

// Before it the cache is filling, and the averages know nothing.
constexpr size_t kWarmUpTokens = 60;

Trace read_trace(const std::string& path) {
  std::ifstream in(path);
  Trace trace;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) trace.push_back(nlohmann::json::parse(line)["layers"].get<std::vector<std::vector<uint32_t>>>());
  }
  return trace;
}

/// A cache of records without bytes.
class ReplayedCache {
 public:
  ReplayedCache(const char* policy_name, const Trace& trace, size_t expert_count, size_t slot_count)
      : table_(EvictionTable::create(*find_eviction_policy(policy_name).take_value(), {trace[0].size(), expert_count},
                                     budget_)
                   .take_value()),
        free_count_(slot_count) {}

  /// Runs a layer for some tokens. How many of its distinct experts were there. Of more misses than slots the last ones
  /// stay.
  size_t run(uint32_t layer, const std::vector<ExpertUse>& uses, uint32_t token_count) {
    table_.visit({layer, token_count, uses});
    size_t hits = 0;
    for (const ExpertUse& use : uses) {
      const ExpertId id{layer, use.expert};
      if (!table_.contains(id)) continue;
      table_.remove(id);  // Not for the others of this pass.
      ++free_count_;
      ++hits;
    }
    const size_t wanted = uses.size();
    std::vector<Victim> room(wanted);
    if (wanted > free_count_) free_count_ += table_.take(std::span(room).first(wanted - free_count_)).size();
    for (size_t i = wanted - std::min(wanted, free_count_); i < wanted; ++i) {
      table_.add({layer, uses[i].expert});
      --free_count_;
    }
    return hits;
  }

 private:
  Budget budget_{size_t{1} << 30};
  EvictionTable table_;
  size_t free_count_;
};

std::vector<ExpertUse> single_uses(const std::vector<uint32_t>& experts) {
  std::vector<ExpertUse> uses;
  for (const uint32_t expert : experts) uses.push_back({expert, 1});
  return uses;
}

/// Share of hits in percent, decoding from the first token on, counted after the warm-up.
double hit_percent(const char* policy, const Trace& trace, size_t expert_count, double working_sets) {
  const auto slots =
      static_cast<size_t>(std::lround(working_sets * static_cast<double>(trace[0].size() * trace[0][0].size())));
  ReplayedCache cache(policy, trace, expert_count, slots);
  size_t hits = 0;
  size_t wanted = 0;
  for (size_t token = 0; token < trace.size(); ++token) {
    for (uint32_t layer = 0; layer < trace[token].size(); ++layer) {
      const size_t layer_hits = cache.run(layer, single_uses(trace[token][layer]), 1);
      if (token < kWarmUpTokens) continue;
      hits += layer_hits;
      wanted += trace[token][layer].size();
    }
  }
  return 100.0 * static_cast<double>(hits) / static_cast<double>(wanted);
}

/// The same for the tokens decoded after a prompt of `prompt_tokens`, taken in as one chunk that counts its tokens, or
/// as one visit that used all its experts once.
double hit_percent_after_prompt(const Trace& trace, size_t expert_count, double working_sets, bool counts_tokens) {
  constexpr size_t kPromptTokens = 128;
  constexpr size_t kAnswerTokens = 40;
  const auto slots =
      static_cast<size_t>(std::lround(working_sets * static_cast<double>(trace[0].size() * trace[0][0].size())));
  ReplayedCache cache("phase", trace, expert_count, slots);
  for (uint32_t layer = 0; layer < trace[0].size(); ++layer) {
    std::vector<uint32_t> counts(expert_count);
    for (size_t token = 0; token < kPromptTokens; ++token) {
      for (const uint32_t expert : trace[token][layer]) ++counts[expert];
    }
    std::vector<ExpertUse> uses;
    for (uint32_t expert = 0; expert < expert_count; ++expert) {
      if (counts[expert] > 0) uses.push_back({expert, counts_tokens ? counts[expert] : 1});
    }
    cache.run(layer, uses, counts_tokens ? kPromptTokens : 1);
  }
  size_t hits = 0;
  size_t wanted = 0;
  for (size_t token = kPromptTokens; token < kPromptTokens + kAnswerTokens; ++token) {
    for (uint32_t layer = 0; layer < trace[token].size(); ++layer) {
      hits += cache.run(layer, single_uses(trace[token][layer]), 1);
      wanted += trace[token][layer].size();
    }
  }
  return 100.0 * static_cast<double>(hits) / static_cast<double>(wanted);
}

struct Expected {
  double working_sets;
  double phase_percent;
  double lru_percent;
};

class EvictionReplay : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("HEADRACE_TEST_TRACES");
    if (!folder || !*folder) GTEST_SKIP() << "HEADRACE_TEST_TRACES names no folder with routing traces";
    folder_ = folder;
  }
  Trace load(const char* name) const { return read_trace(folder_ + "/" + name); }

  std::string folder_;
};

// Two windows of a trace differ by more than this under one policy.
constexpr double kTolerancePercent = 1.5;

TEST_F(EvictionReplay, ReachesTheHitRatesOfAnIndependentSimulationOnKimiLinear) {
  const Trace trace = load("trace_kimi_300.jsonl");
  ASSERT_EQ(trace.size(), 300u);
  for (const Expected& expected :
       {Expected{0.25, 14.3, 0}, {0.5, 24.7, 0}, {1, 36.4, 33.5}, {2, 48.4, 41.4}, {4, 61.7, 57.5}}) {
    const double phase = hit_percent("phase", trace, 256, expected.working_sets);
    const double lru = hit_percent("lru", trace, 256, expected.working_sets);
    std::printf("Kimi-Linear, %.2f working sets: phase %.1f %%, lru %.1f %%\n", expected.working_sets, phase, lru);
    EXPECT_NEAR(phase, expected.phase_percent, kTolerancePercent);
    EXPECT_NEAR(lru, expected.lru_percent, kTolerancePercent);
  }
}

TEST_F(EvictionReplay, ReachesTheHitRatesOfAnIndependentSimulationOnOlmoe) {
  const Trace trace = load("trace_olmoe_299.jsonl");
  ASSERT_EQ(trace.size(), 299u);
  for (const auto& [working_sets, percent] :
       {std::pair(0.25, 14.6), {0.5, 27.9}, {1.0, 45.1}, {2.0, 61.6}, {4.0, 82.6}}) {
    const double phase = hit_percent("phase", trace, 64, working_sets);
    std::printf("OLMoE, %.2f working sets: phase %.1f %%\n", working_sets, phase);
    EXPECT_NEAR(phase, percent, kTolerancePercent);
  }
}

TEST_F(EvictionReplay, CountingTheTokensOfAPromptHelpsTheAnswer) {
  for (const auto& [name, experts] : {std::pair("trace_kimi_300.jsonl", 256u), {"trace_olmoe_299.jsonl", 64u}}) {
    const Trace trace = load(name);
    for (const double working_sets : {0.5, 1.0, 2.0, 4.0}) {
      const double counted = hit_percent_after_prompt(trace, experts, working_sets, true);
      const double once = hit_percent_after_prompt(trace, experts, working_sets, false);
      std::printf("%s, %.2f working sets: tokens counted %.1f %%, chunk counted once %.1f %%\n", name, working_sets,
                  counted, once);
      EXPECT_GT(counted, once);
    }
  }
}

}  // namespace
}  // namespace headrace
