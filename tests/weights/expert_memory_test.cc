#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "weights/expert_cached_model.h"
#include "weights/expert_slots.h"

namespace headrace {
namespace {

using test::BackendScript;
using test::CachedModel;
using test::CachedModelOptions;
using test::ExpertModelOptions;
using test::first_numbers;
using test::usable_backends;

size_t cache_bytes(const CachedModel& cached) {
  return cached.model.budget.used_bytes() - cached.used_without_cache;
}
size_t bound_bytes(const CachedModel& cached, size_t slot_count, const char* policy = "phase") {
  return ExpertCache::fixed_memory_bytes(*cached.catalog, *find_eviction_policy(policy).take_value()) +
         slot_count * ExpertCache::slot_memory_bytes(*cached.catalog);
}

TEST(ExpertCacheMemory, StaysBelowItsBoundAndNearIt) {
  for (const size_t block : {512u, 4096u, 16'384u, 65'536u}) {
    for (const char* policy : {"phase", "lru"}) {
      for (const size_t slot_count : {6u, 7u, 31u, 100u}) {
        CachedModel cached({.block_bytes = block, .row_factor = 20}, {.slot_count = slot_count, .policy = policy});
        EXPECT_LE(cache_bytes(cached), bound_bytes(cached, slot_count, policy));
        EXPECT_GE(cache_bytes(cached), slot_count * cached.catalog->slot_bytes());
        // Slack is the alignment of a chunk, counted for each slot, and the second list while slots are resized.
        const size_t slack = slot_count * ((block > 4096 ? block : 0) + 256);
        EXPECT_LE(bound_bytes(cached, slot_count, policy), cache_bytes(cached) + slack);
        cached.cache.reset();
        EXPECT_EQ(cache_bytes(cached), 0u);
      }
    }
  }
}

TEST(ExpertCacheMemory, EveryBudgetBelowTheBoundIsRefusedOrDoes) {
  CachedModel cached({});
  const size_t bound = bound_bytes(cached, 6);
  for (size_t limit = 0; limit < bound; limit += 500) {
    Budget budget(limit);
    const auto cache = ExpertCache::create(*cached.catalog, *cached.queue, {.slot_count = 6}, budget);
    if (cache) {
      EXPECT_GT(limit, 6 * cached.catalog->slot_bytes());
      continue;
    }
    EXPECT_EQ(cache.error().code, Code::kBudget);
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
  Budget exact(bound);
  EXPECT_TRUE(ExpertCache::create(*cached.catalog, *cached.queue, {.slot_count = 6}, exact));
  for (const size_t endless_count : {SIZE_MAX, SIZE_MAX / 4096, size_t{UINT32_MAX}}) {
    Budget budget(SIZE_MAX);
    const auto endless = ExpertCache::create(*cached.catalog, *cached.queue, {.slot_count = endless_count}, budget);
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().code, Code::kBudget);
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
}

TEST(ExpertCacheMemory, GrowingKeepsWhatIsThere) {
  for (const ReadBackendKind backend : usable_backends()) {
    CachedModel cached({.experts = 16, .row_factor = 3}, {.slot_count = 6, .backend = backend});
    ASSERT_TRUE(cached.run(0, first_numbers(6), ExpertOrder::kAscending));
    ASSERT_TRUE(cached.cache->resize(20));
    EXPECT_EQ(cached.cache->slot_count(), 20u);
    for (uint32_t expert = 0; expert < 6; ++expert) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
    ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
    EXPECT_EQ(cached.cache->counters().hits, 6u);
    EXPECT_EQ(cached.resident_count(), 16u);
    EXPECT_LE(cache_bytes(cached), bound_bytes(cached, 20));
  }
}

TEST(ExpertCacheMemory, ShrinkingGivesMemoryBackAndKeepsWholeChunks) {
  CachedModel cached({.experts = 16}, {.slot_count = 6});
  const size_t small_bytes = cache_bytes(cached);
  ASSERT_TRUE(cached.cache->resize(32));
  for (uint32_t layer = 0; layer < 2; ++layer)
    ASSERT_TRUE(cached.run(layer, first_numbers(16), ExpertOrder::kAscending));
  EXPECT_EQ(cached.resident_count(), 32u);
  // The first chunk has six slots and stays.
  ASSERT_TRUE(cached.cache->resize(6));
  EXPECT_EQ(cached.cache->slot_count(), 6u);
  EXPECT_EQ(cache_bytes(cached), small_bytes);
  EXPECT_EQ(cached.resident_count(), 6u);
  for (uint32_t layer = 0; layer < 2; ++layer) {
    for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
      ASSERT_TRUE(cached.run(layer, first_numbers(16), order));
    }
  }
}

TEST(ExpertCacheMemory, AChunkThatIsCutLosesItsRecords) {
  CachedModel cached({.experts = 16}, {.slot_count = 16});
  ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
  ASSERT_TRUE(cached.cache->resize(10));
  EXPECT_EQ(cached.cache->slot_count(), 10u);
  EXPECT_EQ(cached.resident_count(), 0u);
  ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
  EXPECT_EQ(cached.resident_count(), 10u);
}

TEST(ExpertCacheMemory, ResizingUpAndDownStaysBelowTheLargerBound) {
  for (const size_t block : {512u, 16'384u}) {
    CachedModel cached({.block_bytes = block, .scatter_seed = 4, .file_count = 2, .experts = 16}, {.slot_count = 8});
    size_t largest = 8;
    for (const size_t slot_count : {9u, 32u, 10u, 31u, 6u, 32u, 9u, 32u, 6u, 7u, 8u}) {
      Budget& budget = cached.model.budget;
      ASSERT_TRUE(cached.cache->resize(slot_count));
      largest = std::max<size_t>(largest, slot_count);
      EXPECT_LE(cache_bytes(cached), bound_bytes(cached, slot_count));
      EXPECT_LE(budget.peak_bytes(),
                std::max(cached.peak_without_cache, cached.used_without_cache + bound_bytes(cached, largest)));
      for (uint32_t layer = 0; layer < 2; ++layer) {
        const auto came = cached.run(layer, first_numbers(16), ExpertOrder::kAsTheyLand);
        ASSERT_TRUE(came) << came.error().message;
        ASSERT_EQ(came.value().size(), 16u);
      }
    }
    cached.cache.reset();
    EXPECT_EQ(cache_bytes(cached), 0u);
  }
}

TEST(ExpertCacheMemory, ACacheThatCannotGrowStaysWhatItWas) {
  CachedModel cached({.experts = 16}, {.slot_count = 6});
  ASSERT_TRUE(cached.run(0, first_numbers(6), ExpertOrder::kAscending));
  const size_t used_bytes = cached.model.budget.used_bytes();
  for (const size_t slot_count : {size_t{1} << 20, size_t{1} << 40, SIZE_MAX}) {
    const Status refused = cached.cache->resize(slot_count);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kBudget);
    EXPECT_EQ(cached.cache->slot_count(), 6u);
    EXPECT_EQ(cached.model.budget.used_bytes(), used_bytes);
    EXPECT_EQ(cached.resident_count(), 6u);
  }
  const Status too_few = cached.cache->resize(5);
  ASSERT_FALSE(too_few);
  EXPECT_NE(too_few.error().message.find("room for 5 experts, but 6 are the least"), std::string::npos);
  EXPECT_EQ(cached.resident_count(), 6u);
}

TEST(ExpertCacheMemory, ResizingWaitsForReadsOnTheirWay) {
  CachedModel cached({.experts = 16}, {.slot_count = 16, .backend = std::nullopt, .depth = 16});
  cached.script.arrivals_allowed = 0;
  cached.announce(0, first_numbers(16));
  ASSERT_EQ(cached.script.in_flight, 16u);
  ASSERT_TRUE(cached.cache->resize(6));
  EXPECT_EQ(cached.script.in_flight, 0u);
  EXPECT_EQ(cached.cache->pending_count(), 0u);
  cached.script.arrivals_allowed = BackendScript::kAll;
  ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
}

TEST(ExpertSlots, ComeInChunksOfBoundedSize) {
  CachedModel cached({});
  constexpr size_t kSlotBytes = size_t{100} << 20;
  Budget budget(size_t{4} << 30);
  ExpertSlots slots({kSlotBytes, 4096}, *cached.queue, budget);
  ASSERT_TRUE(slots.resize(7));  // Chunks of 2, 2, 2 and 1.
  EXPECT_EQ(slots.count(), 7u);
  EXPECT_EQ(budget.used_bytes(), 7 * kSlotBytes);
  EXPECT_EQ(slots.kept_count(7), 7u);
  EXPECT_EQ(slots.kept_count(6), 6u);
  EXPECT_EQ(slots.kept_count(5), 4u);
  EXPECT_EQ(slots.kept_count(100), 7u);
  std::byte* const third = slots.data(2);
  EXPECT_EQ(slots.data(3), third + kSlotBytes);
  ASSERT_TRUE(slots.resize(3));
  EXPECT_EQ(slots.count(), 3u);
  EXPECT_EQ(budget.used_bytes(), 3 * kSlotBytes);
  EXPECT_FALSE(slots.resize(1000));
  EXPECT_EQ(slots.count(), 3u);
  EXPECT_EQ(budget.used_bytes(), 3 * kSlotBytes);
}

}  // namespace
}  // namespace headrace
