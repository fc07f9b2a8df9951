#include "weights/eviction/policies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr RecordGrid kGrid{.layer_count = 4, .expert_count = 8};

/// A policy of its own budget.
struct OwnPolicy {
  explicit OwnPolicy(const char* name, RecordGrid grid = kGrid) {
    const EvictionPolicyKind& kind = *find_eviction_policy(name).take_value();
    policy = kind.create(grid, budget).take_value();
  }
  void visit(uint32_t layer, std::vector<ExpertUse> uses, uint32_t token_count = 1) {
    policy->visit({layer, token_count, uses});
  }
  double worth(ExpertId id) const {
    float rate = 0;
    policy->rate(id.layer, id.expert, {&rate, 1});
    return static_cast<double>(rate) * static_cast<double>(policy->layer_weight(id.layer));
  }

  Budget budget{size_t{1} << 30};
  std::unique_ptr<EvictionPolicy> policy;
};

TEST(EvictionPolicies, AreFoundByName) {
  EXPECT_STREQ(find_eviction_policy("phase").take_value()->name, "phase");
  EXPECT_STREQ(find_eviction_policy("lru").take_value()->name, "lru");
  EXPECT_STREQ(eviction_policies().front().name, "phase");
  const auto unknown = find_eviction_policy("phases");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kArgument);
  EXPECT_EQ(unknown.error().message, "there is no cache policy \"phases\"; there are: phase, lru");
}

TEST(EvictionPolicies, TakeWhatTheySayAndGiveItBack) {
  for (const EvictionPolicyKind& kind : eviction_policies()) {
    for (const RecordGrid grid : {RecordGrid{1, 1}, RecordGrid{4, 8}, RecordGrid{92, 896}}) {
      Budget budget(size_t{1} << 30);
      {
        const auto policy = kind.create(grid, budget).take_value();
        EXPECT_EQ(budget.used_bytes(), kind.memory_bytes(grid)) << kind.name;
      }
      EXPECT_EQ(budget.used_bytes(), 0u);
      Budget small(kind.memory_bytes(grid) - 1);
      const auto refused = kind.create(grid, small);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::kBudget);
      EXPECT_EQ(small.used_bytes(), 0u);
    }
  }
}

TEST(EvictionPolicies, TakeLittleMoreThanEightBytesForEachRecordOfKimiK3) {
  for (const EvictionPolicyKind& kind : eviction_policies()) {
    EXPECT_LT(kind.memory_bytes({92, 896}), 82'432u * 8 + 16'384) << kind.name;
  }
}

/// The definition, in other words: averages over a history of visits, newest last.
double expected_worth(const std::vector<bool>& used, int distance) {
  double fast = 0;
  double slow = 0;
  for (const bool is_used : used) {
    fast = fast * 0.5 + 0.5 * (is_used ? 1 : 0);
    slow = slow * std::pow(0.5, 1.0 / 200) + (1 - std::pow(0.5, 1.0 / 200)) * (is_used ? 1 : 0);
  }
  return (0.2 * fast + 0.8 * slow) / std::sqrt(distance);
}

TEST(PhasePolicy, WeighsTwoAveragesByTheDistanceOfTheLayer) {
  OwnPolicy own("phase");
  const std::vector<bool> history = {true, false, false, true, true, false, true, false};
  for (const bool is_used : history) {
    for (uint32_t layer = 0; layer < 4; ++layer)
      own.visit(layer, is_used ? std::vector<ExpertUse>{{2}, {5}} : std::vector<ExpertUse>{{5}});
  }
  const double tolerance = 1e-6;  // Of numbers below 1 in float.
  // Layer 3 has run last: layer 0 is next, layer 3 comes after all others.
  for (uint32_t layer = 0; layer < 4; ++layer) {
    EXPECT_NEAR(own.worth({layer, 2}), expected_worth(history, static_cast<int>(layer) + 1), tolerance);
    EXPECT_NEAR(own.worth({layer, 5}), expected_worth(std::vector<bool>(8, true), static_cast<int>(layer) + 1),
                tolerance);
    EXPECT_EQ(own.worth({layer, 0}), 0.0);
  }
}

TEST(PhasePolicy, CountsTheDistanceInACircle) {
  OwnPolicy own("phase");
  for (uint32_t layer = 0; layer < 4; ++layer) own.visit(layer, {{0}});
  own.visit(1, {{0}});
  EXPECT_GT(own.worth({2, 0}), own.worth({3, 0}));
  EXPECT_GT(own.worth({3, 0}), own.worth({0, 0}));
  EXPECT_NEAR(own.worth({2, 0}), expected_worth({true}, 1), 1e-6);
  EXPECT_NEAR(own.worth({0, 0}), expected_worth({true}, 3), 1e-6);
  EXPECT_NEAR(own.worth({1, 0}), expected_worth({true, true}, 4), 1e-6);
}

TEST(PhasePolicy, AModelOfOneLayerHasADistanceOfOne) {
  OwnPolicy own("phase", {1, 4});
  own.visit(0, {{1}});
  EXPECT_NEAR(own.worth({0, 1}), expected_worth({true}, 1), 1e-6);
}

TEST(PhasePolicy, RemembersWhatWasOftenUsedOverWhatWasUsedOnce) {
  OwnPolicy own("phase");
  for (int token = 0; token < 200; ++token) own.visit(0, {{3}});
  for (int token = 0; token < 20; ++token) own.visit(0, {{token == 10 ? 4u : 5u}});
  EXPECT_GT(own.worth({0, 3}), own.worth({0, 4}));
}

TEST(PhasePolicy, AChunkCountsItsTokens) {
  OwnPolicy own("phase");
  own.visit(0, {{0, 64}, {1, 16}, {2, 1}}, 64);
  EXPECT_GT(own.worth({0, 0}), 3 * own.worth({0, 1}));
  EXPECT_GT(own.worth({0, 1}), 10 * own.worth({0, 2}));
  EXPECT_GT(own.worth({0, 2}), 0.0);
  // 64 tokens that all used an expert, as a chunk or one by one: the same.
  OwnPolicy single("phase");
  for (int token = 0; token < 64; ++token) single.visit(0, {{0}});
  EXPECT_NEAR(own.worth({0, 0}), single.worth({0, 0}), 1e-5);
}

TEST(PhasePolicy, RatesStayFiniteWhateverTheChunk) {
  OwnPolicy own("phase");
  own.visit(2, {{0, UINT32_MAX}, {1, 1}}, UINT32_MAX);
  for (int token = 0; token < 5000; ++token) own.visit(0, {});
  own.visit(2, {}, 100'000);
  for (const uint32_t expert : {0u, 1u, 2u}) EXPECT_TRUE(std::isfinite(own.worth({2, expert})));
}

TEST(LruPolicy, OrdersByTheLastUse) {
  OwnPolicy own("lru");
  own.visit(0, {{0}, {1}});
  own.visit(1, {{0}});
  own.visit(0, {{1}});
  EXPECT_EQ(own.worth({3, 3}), 0.0);
  EXPECT_LT(own.worth({3, 3}), own.worth({0, 0}));
  EXPECT_LT(own.worth({0, 0}), own.worth({1, 0}));
  EXPECT_LT(own.worth({1, 0}), own.worth({0, 1}));
}

}  // namespace
}  // namespace headrace
