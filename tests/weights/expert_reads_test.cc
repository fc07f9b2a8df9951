#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "weights/expert_cached_model.h"

namespace headrace {
namespace {

using test::BackendScript;
using test::CachedModel;
using test::CachedModelOptions;
using test::ExpertModelOptions;
using test::first_numbers;
using test::usable_backends;

/// Several transfers to a record, from two files.
const ExpertModelOptions kScattered{.block_bytes = 512, .scatter_seed = 6, .file_count = 2, .experts = 16};

CachedModelOptions scripted(size_t slot_count = ExpertCache::kSlotsMin, size_t depth = 4) {
  return {.slot_count = slot_count, .backend = std::nullopt, .depth = depth};
}

/// Every expert of both layers, as written.
void expect_usable(CachedModel& cached) {
  for (uint32_t layer = 0; layer < 2; ++layer) {
    for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
      const auto came = cached.run(layer, first_numbers(16), order);
      ASSERT_TRUE(came) << came.error().message;
      ASSERT_EQ(came.value().size(), 16u);
    }
  }
}

TEST(ExpertReads, StartWhenAPassIsAnnounced) {
  CachedModel cached(kScattered, scripted(16, 256));
  cached.script.arrivals_allowed = 0;
  cached.announce(0, {1, 4, 9});
  ExpertCatalog::PlacedRecord record;
  size_t read_count = 0;
  for (const uint32_t expert : {1u, 4u, 9u}) {
    cached.catalog->place({0, expert}, record);
    read_count += record.reads.size();
  }
  EXPECT_EQ(cached.script.in_flight, read_count);
  EXPECT_EQ(cached.script.issued.size(), read_count);
  cached.script.arrivals_allowed = BackendScript::kAll;
  for (int i = 0; i < 3; ++i) cached.expect_written(cached.cache->next().take_value());
}

TEST(ExpertReads, ComeAsTheyLand) {
  CachedModel cached({.experts = 16}, scripted(16, 256));
  cached.script.last_first = true;
  cached.script.arrivals_allowed = 0;
  cached.announce(0, {1, 4, 9});
  std::vector<uint32_t> came;
  while (cached.cache->pending_count() > 0) {
    cached.script.arrivals_allowed = 1;  // An unscattered record is one transfer.
    const ExpertLease lease = cached.cache->next().take_value();
    cached.expect_written(lease);
    came.push_back(lease.id().expert);
  }
  EXPECT_EQ(came, (std::vector<uint32_t>{9, 4, 1}));
}

TEST(ExpertReads, OfASweepComeInOrderHoweverTheyLand) {
  for (const size_t slot_count : {6u, 9u, 16u, 32u}) {
    CachedModel cached(kScattered, scripted(slot_count, 32));
    cached.script.last_first = true;
    for (int round = 0; round < 3; ++round) {
      for (uint32_t layer = 0; layer < 2; ++layer) {
        cached.script.arrivals_allowed = 0;
        EXPECT_EQ(cached.run(layer, first_numbers(16), ExpertOrder::kAscending).take_value(), first_numbers(16));
      }
    }
  }
}

TEST(ExpertReads, OfASweepStayABoundedNumberAhead) {
  // A wide model whose cache would hold it all: what is not read yet is not worth evicting others for.
  CachedModel cached({.experts = 64}, scripted(128, 4));
  cached.script.arrivals_allowed = 0;
  cached.announce(0, first_numbers(64), ExpertOrder::kAscending);
  EXPECT_EQ(cached.bytes_read(), 0u);
  size_t issued_max = 0;
  for (uint32_t expert = 0; cached.cache->pending_count() > 0; ++expert) {
    const ExpertLease lease = cached.cache->next().take_value();
    ASSERT_EQ(lease.id().expert, expert);
    issued_max = std::max(issued_max, cached.script.issued.size() - expert);
  }
  EXPECT_LE(issued_max, 9u);
}

TEST(ExpertReads, GoOnIntoSlotsWhoseLeasesAreReturned) {
  CachedModel cached({.experts = 16}, scripted(6, 256));
  cached.announce(0, first_numbers(16), ExpertOrder::kAsTheyLand);
  EXPECT_EQ(cached.script.issued.size(), 6u);
  std::vector<ExpertLease> leases;
  for (int i = 0; i < 6; ++i) leases.push_back(cached.cache->next().take_value());
  EXPECT_EQ(cached.script.issued.size(), 6u);
  leases.erase(leases.begin(), leases.begin() + 3);
  const ExpertLease next = cached.cache->next().take_value();
  EXPECT_EQ(cached.script.issued.size(), 9u) << "three slots were free for three reads";
}

TEST(ExpertReads, AreMadeOncePerPass) {
  CachedModel cached({.experts = 16}, scripted(64, 4));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    ASSERT_TRUE(cached.run(layer, first_numbers(16), ExpertOrder::kAscending));
  }
  EXPECT_EQ(cached.script.issued.size(), 32u);
  ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
  EXPECT_EQ(cached.script.issued.size(), 32u);
}

/// Transfers of a pass over 16 experts with that many slots.
uint64_t transfers_of_a_pass(size_t slot_count, ExpertOrder order) {
  CachedModel cached(kScattered, scripted(slot_count));
  EXPECT_TRUE(cached.run(1, first_numbers(16), order));
  return cached.script.issued.size();
}

TEST(ExpertReads, EveryFailureNamesFileAndExpertAndLeavesTheCacheUsable) {
  for (const size_t slot_count : {6u, 20u}) {
    for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
      const uint64_t count = transfers_of_a_pass(slot_count, order);
      ASSERT_GT(count, 32u);
      for (uint64_t fail_at = 0; fail_at < count; ++fail_at) {
        for (const bool last_first : {false, true}) {
          CachedModel cached(kScattered, scripted(slot_count));
          const size_t used_bytes = cached.model.budget.used_bytes();
          cached.script.fail_at = fail_at;
          cached.script.last_first = last_first;
          const auto failed = cached.run(1, first_numbers(16), order);
          ASSERT_FALSE(failed) << fail_at;
          EXPECT_EQ(failed.error().code, Code::kIo);
          EXPECT_NE(failed.error().message.find("of expert layer 1: read m/s"), std::string::npos);
          EXPECT_EQ(failed.error().message.rfind("expert ", 0), 0u);
          EXPECT_EQ(cached.cache->pending_count(), 0u);
          expect_usable(cached);
          EXPECT_EQ(cached.model.budget.used_bytes(), used_bytes);
        }
      }
    }
  }
}

TEST(ExpertReads, EveryFailureOfEachBackEndLeavesTheCacheUsable) {
  for (const ReadBackendKind backend : usable_backends()) {
    for (uint64_t fail_at = 0; fail_at < 40; ++fail_at) {
      CachedModel cached(kScattered, {.slot_count = 6, .backend = backend});
      cached.model.plan.fail_at = fail_at;
      const auto failed = cached.run(0, first_numbers(16), ExpertOrder::kAsTheyLand);
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, Code::kIo);
      // A later transfer of the reads that were given up may have been the one to fail.
      cached.queue->drain();
      cached.model.plan.fail_at = test::FaultPlan::kNever;
      expect_usable(cached);
    }
  }
}

TEST(ExpertReads, AFailedExpertIsReadAgain) {
  CachedModel cached(kScattered, scripted());
  cached.script.fail_at = 0;
  const auto failed = cached.fetch({1, 5});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("expert 5 of expert layer 1: read m/s"), std::string::npos);
  EXPECT_FALSE(cached.cache->is_resident({1, 5}));
  cached.expect_written(cached.fetch({1, 5}).take_value());
}

TEST(ExpertReads, FailuresOfAnAbandonedPassFailNothing) {
  for (uint64_t fail_every = 1; fail_every < 4; ++fail_every) {
    CachedModel cached(kScattered, scripted(6, 8));
    cached.script.arrivals_allowed = 0;
    cached.script.fail_every = fail_every;
    cached.announce(0, first_numbers(16));
    cached.announce(1, {});
    cached.script.arrivals_allowed = BackendScript::kAll;
    cached.queue->drain();
    cached.script.fail_every = BackendScript::kNever;
    expect_usable(cached);
  }
}

/// Slots that transfers are on their way to must keep their bytes.
TEST(ExpertReads, ASlotIsNotUsedAgainBeforeItsAbandonedReadHasEnded) {
  CachedModel cached({.experts = 16}, scripted(6, 4));
  cached.script.arrivals_allowed = 0;
  cached.announce(0, {0, 1, 2, 3});
  ASSERT_EQ(cached.script.in_flight, 4u);
  cached.announce(1, {0, 1, 2, 3});
  // Two slots are left, and the queue is full of what nobody wants.
  EXPECT_EQ(cached.script.issued.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    cached.script.arrivals_allowed = 1;
    cached.expect_written(cached.cache->next().take_value());
  }
  EXPECT_EQ(cached.cache->pending_count(), 0u);
  for (const uint32_t expert : {0u, 1u, 2u, 3u}) EXPECT_FALSE(cached.cache->is_resident({0, expert}));
  EXPECT_EQ(cached.queue->counters().orphaned_count, 4u);
}

TEST(ExpertReads, WaitForAnAbandonedReadWhenNothingElseIsLeft) {
  for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
    CachedModel cached({.experts = 16}, scripted(6, 8));
    cached.script.arrivals_allowed = 0;
    cached.announce(0, first_numbers(6));
    ASSERT_EQ(cached.script.in_flight, 6u);
    const auto came = cached.run(1, first_numbers(16), order);
    ASSERT_TRUE(came) << came.error().message;
    EXPECT_EQ(came.value().size(), 16u);
  }
}

TEST(ExpertReads, PassesThatAreAbandonedAgainAndAgainStayBounded) {
  CachedModel cached({.experts = 16}, scripted(32, 256));
  std::mt19937 random(5);
  for (uint32_t pass = 0; pass < 400; ++pass) {
    cached.script.arrivals_allowed = random() % 5;
    cached.script.last_first = random() % 2 == 0;
    cached.announce(pass % 2, first_numbers(1 + random() % 16),
                    random() % 2 == 0 ? ExpertOrder::kAscending : ExpertOrder::kAsTheyLand);
    const size_t taken = random() % 4;
    for (size_t i = 0; i < taken && cached.cache->pending_count() > 0; ++i) {
      cached.expect_written(cached.cache->next().take_value());
    }
    ASSERT_LE(cached.script.in_flight, ExpertCache::kReadsMax);
  }
  expect_usable(cached);
}

TEST(ExpertReads, AreDrainedBeforeTheSlotsAreFreed) {
  CachedModel cached(kScattered, scripted(6, 16));
  cached.script.arrivals_allowed = 0;
  cached.announce(0, first_numbers(16));
  ASSERT_GT(cached.script.in_flight, 0u);
  cached.cache.reset();
  EXPECT_EQ(cached.script.in_flight, 0u);
  EXPECT_EQ(cached.model.budget.used_bytes(), cached.used_without_cache);
}

TEST(ExpertReads, ARandomLifeAlwaysHandsOutWhatWasWritten) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    CachedModelOptions options = scripted(6 + random() % 20, 1 + random() % 12);
    options.policy = seed % 3 == 0 ? "lru" : "phase";
    CachedModel cached(kScattered, options);
    std::vector<ExpertLease> held;
    for (uint32_t pass = 0; pass < 60; ++pass) {
      cached.script.arrivals_allowed = random() % 7 == 0 ? BackendScript::kAll : random() % 6;
      cached.script.last_first = random() % 2 == 0;
      cached.script.fail_at = random() % 5 == 0 ? cached.script.issued.size() + random() % 30 : BackendScript::kNever;
      std::set<uint32_t> experts;
      for (size_t i = 0; i < random() % 16; ++i) experts.insert(random() % 16);
      cached.announce(pass % 2, {experts.begin(), experts.end()},
                      random() % 2 == 0 ? ExpertOrder::kAscending : ExpertOrder::kAsTheyLand);
      const bool leaves_early = random() % 8 == 0;
      while (cached.cache->pending_count() > 0 && !(leaves_early && random() % 4 == 0)) {
        Result<ExpertLease> lease = cached.cache->next();
        if (!lease) {
          ASSERT_EQ(lease.error().code, Code::kIo) << lease.error().message;
          break;
        }
        ASSERT_EQ(experts.erase(lease.value().id().expert), 1u);
        cached.expect_written(lease.value());
        if (held.size() < 2 && random() % 4 == 0) held.push_back(lease.take_value());
      }
      for (const ExpertLease& lease : held) cached.expect_written(lease);
      if (random() % 3 == 0) held.clear();
    }
  }
}

}  // namespace
}  // namespace headrace
