#include "weights/eviction/eviction_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace headrace {
namespace {

const EvictionPolicyKind& kind(const char* name) {
  return *find_eviction_policy(name).take_value();
}

/// A table over `grid` with a budget of its own.
struct OwnTable {
  explicit OwnTable(RecordGrid grid, const char* policy = "lru")
      : table(EvictionTable::create(kind(policy), grid, budget).take_value()) {}

  std::vector<ExpertId> take(size_t count) {
    std::vector<Victim> room(count);
    std::vector<ExpertId> ids;
    for (const Victim& victim : table.take(room)) ids.push_back(victim.id);
    return ids;
  }
  void visit(uint32_t layer, std::vector<ExpertUse> uses) { table.visit({layer, 1, uses}); }

  Budget budget{size_t{1} << 30};
  EvictionTable table;
};

TEST(EvictionTable, TakesTheLeastWorthFirst) {
  constexpr uint32_t kCount = 1000;
  for (const size_t count : {1u, 2u, 16u, 31u, 32u, 33u, 999u, 1000u, 2000u}) {
    OwnTable own({1, kCount});
    for (uint32_t i = 0; i < kCount; ++i) {
      own.visit(0, {{(i * 617 + 13) % kCount}});
      own.table.add({0, i});
    }
    const std::vector<ExpertId> taken = own.take(count);
    ASSERT_EQ(taken.size(), std::min<size_t>(count, kCount));
    for (uint32_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i], (ExpertId{0, (i * 617 + 13) % kCount})) << count;
    EXPECT_EQ(own.table.size(), kCount - taken.size());
    for (const ExpertId id : taken) EXPECT_FALSE(own.table.contains(id));
  }
}

TEST(EvictionTable, TakesOnlyWhatIsInIt) {
  OwnTable own({3, 40});
  for (uint32_t layer = 0; layer < 3; ++layer) own.visit(layer, {{0}, {7}, {39}});
  EXPECT_TRUE(own.take(5).empty());
  own.table.add({1, 7});
  own.table.add({1, 7});
  own.table.add({2, 39});
  own.table.add({0, 0});
  own.table.remove({2, 39});
  own.table.remove({2, 39});
  EXPECT_EQ(own.table.size(), 2u);
  EXPECT_TRUE(own.table.contains({1, 7}));
  EXPECT_FALSE(own.table.contains({2, 39}));
  EXPECT_EQ(own.take(5), (std::vector<ExpertId>{{0, 0}, {1, 7}}));
  EXPECT_EQ(own.table.size(), 0u);
}

TEST(EvictionTable, TakesTheSameOfEqualsEveryTime) {
  std::vector<std::vector<ExpertId>> taken;
  for (int round = 0; round < 2; ++round) {
    OwnTable own({2, 100});
    for (const uint32_t expert : {70u, 3u, 99u, 40u}) {
      own.table.add({1, expert});
      own.table.add({0, expert});
    }
    taken.push_back(own.take(3));
    taken.push_back(own.take(9));
    EXPECT_EQ(taken.back().size(), 5u);
  }
  EXPECT_EQ(taken[0], taken[2]);
  EXPECT_EQ(taken[1], taken[3]);
}

TEST(EvictionTable, RatesAnewWhenALayerIsVisited) {
  OwnTable own({1, 3});
  for (uint32_t expert = 0; expert < 3; ++expert) own.table.add({0, expert});
  own.visit(0, {{0}});
  own.visit(0, {{1}});
  own.visit(0, {{2}});
  own.visit(0, {{0}});
  EXPECT_EQ(own.take(3), (std::vector<ExpertId>{{0, 1}, {0, 2}, {0, 0}}));
}

/// Worth by the policy, for every record that is in, sorted: what a table does, without its shortcuts.
std::vector<float> least_by_sorting(const EvictionPolicy& policy, const std::vector<ExpertId>& in, size_t count) {
  std::vector<float> worth;
  for (const ExpertId id : in) {
    float rate = 0;
    policy.rate(id.layer, id.expert, {&rate, 1});
    worth.push_back(rate * policy.layer_weight(id.layer));
  }
  std::ranges::sort(worth);
  worth.resize(std::min(count, worth.size()));
  return worth;
}

TEST(EvictionTable, AgreesWithSortingEverything) {
  constexpr RecordGrid kGrid{.layer_count = 7, .expert_count = 45};
  std::mt19937 random(7);
  for (const EvictionPolicyKind& each : eviction_policies()) {
    OwnTable own(kGrid, each.name);
    Budget budget(SIZE_MAX);
    const auto policy = each.create(kGrid, budget).take_value();
    std::vector<ExpertId> in;
    for (uint32_t pass = 0; pass < 400; ++pass) {
      const uint32_t layer = pass % kGrid.layer_count;
      std::vector<ExpertUse> uses;
      for (uint32_t expert = 0; expert < kGrid.expert_count; ++expert) {
        if (random() % 9 == 0) uses.push_back({expert, 1});
      }
      own.visit(layer, uses);
      policy->visit({layer, 1, uses});
      for (const ExpertUse& use : uses) {
        const ExpertId id{layer, use.expert};
        if (!own.table.contains(id)) in.push_back(id);
        own.table.add(id);
      }
      if (in.size() < 60) continue;
      const std::vector<float> expected = least_by_sorting(*policy, in, 9);
      std::vector<Victim> room(9);
      const std::span<const Victim> taken = own.table.take(room);
      ASSERT_EQ(taken.size(), expected.size());
      for (size_t i = 0; i < taken.size(); ++i) {
        ASSERT_EQ(taken[i].worth, expected[i]) << each.name;
        std::erase(in, taken[i].id);
      }
      ASSERT_EQ(own.table.size(), in.size());
    }
  }
}

TEST(EvictionTable, TakesWhatItSaysAndGivesItBack) {
  for (const EvictionPolicyKind& each : eviction_policies()) {
    for (const RecordGrid grid : {RecordGrid{1, 1}, RecordGrid{5, 33}, RecordGrid{92, 896}}) {
      const size_t bytes = EvictionTable::memory_bytes(each, grid);
      Budget budget(bytes);
      {
        const auto table = EvictionTable::create(each, grid, budget);
        ASSERT_TRUE(table);
        EXPECT_EQ(budget.used_bytes(), bytes);
      }
      EXPECT_EQ(budget.used_bytes(), 0u);
      for (size_t limit = 0; limit < bytes; limit += 4096) {
        Budget small(limit);
        const auto refused = EvictionTable::create(each, grid, small);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::kBudget);
        EXPECT_EQ(small.used_bytes(), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
