#include "weights/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/kernel_counts.h"
#include "support/test_files.h"
#include "weights/expert_cached_model.h"

namespace headrace {
namespace {

using test::CachedModel;
using test::expert_arrangements;
using test::ExpertModel;
using test::ExpertModelOptions;
using test::first_numbers;
using test::TempFolder;
using test::usable_backends;
using test::WrittenTensor;

TEST(ExpertCache, EveryExpertHoldsWhatWasWritten) {
  for (const ReadBackendKind backend : usable_backends()) {
    for (const ExpertModelOptions& options : expert_arrangements()) {
      CachedModel cached(options, {.backend = backend});
      for (const ExpertId id : cached.model.ids()) cached.expect_written(cached.fetch(id).take_value());
    }
  }
}

using Tensors = std::map<std::string, std::string>;

/// All tensors of a folder on disk, by a plain stream and a plain parser.
Tensors tensors_by_plain_read(const TempFolder& folder) {
  const auto index = nlohmann::json::parse(test::plain_read(folder.file("model.safetensors.index.json")));
  std::map<std::string, nlohmann::json> headers;
  std::map<std::string, uint64_t> data_begins;
  Tensors tensors;
  for (const auto& [name, file_name] : index["weight_map"].items()) {
    const std::string path = folder.file(file_name.get<std::string>());
    if (!headers.contains(path)) {
      uint64_t header_bytes = 0;
      std::memcpy(&header_bytes, test::plain_read(path, 0, 8).data(), 8);
      headers[path] = nlohmann::json::parse(test::plain_read(path, 8, header_bytes));
      data_begins[path] = 8 + header_bytes;
    }
    const auto& offsets = headers[path][name]["data_offsets"];
    const auto begin = offsets[0].get<uint64_t>();
    tensors[name] = test::plain_read(path, data_begins[path] + begin, offsets[1].get<uint64_t>() - begin);
  }
  return tensors;
}

void expect_equal(const Tensors& tensors, const CachedModel& cached, const ExpertLease& lease) {
  const std::vector<std::string> names = cached.model.tensor_names(lease.id());
  for (size_t matrix = 0; matrix < 3; ++matrix) {
    ASSERT_EQ(test::stored_data(lease.matrix(matrix)), tensors.at(names[2 * matrix]));
    ASSERT_EQ(test::stored_scales(lease.matrix(matrix)), tensors.at(names[2 * matrix + 1]));
  }
}

TEST(ExpertCache, EveryExpertEqualsAPlainReadOfTheFilesOnDisk) {
  for (const uint64_t seed : {0u, 5u}) {
    for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
      for (const ReadBackendKind backend : usable_backends()) {
        TempFolder folder;
        CachedModel cached({.scatter_seed = seed, .file_count = 3, .row_factor = 10, .read_mode = mode}, folder,
                           {.backend = backend});
        const Tensors tensors = tensors_by_plain_read(folder);
        for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
          for (uint32_t layer = 0; layer < 2; ++layer) {
            cached.announce(layer, first_numbers(8), order);
            while (cached.cache->pending_count() > 0) {
              expect_equal(tensors, cached, cached.cache->next().take_value());
            }
          }
        }
      }
    }
  }
}

/// The slot that a lease looks into, from its placement.
std::span<std::byte> slot_of(const CachedModel& cached, const ExpertLease& lease) {
  ExpertCatalog::PlacedRecord record;
  cached.catalog->place(lease.id(), record);
  std::byte* data = const_cast<std::byte*>(lease.matrix(0).data);
  return {data - record.tensor_offsets[0], cached.catalog->slot_bytes()};
}

TEST(ExpertCache, NoReadTouchesBytesOutsideItsAreas) {
  // A related engine read widened blocks over the tensors beside them; its tests compared it with itself, and passed.
  constexpr std::byte kCanary{0xc5};
  for (const ExpertModelOptions& options : expert_arrangements()) {
    CachedModel cached(options);
    const std::vector<ExpertId> ids = cached.model.ids();
    for (const ExpertId id : ids) {
      const std::span<std::byte> slot = slot_of(cached, cached.fetch(id).take_value());
      std::ranges::fill(slot, kCanary);
    }
    // Every slot has been filled with canaries now, and every expert is read again.
    for (const ExpertId id : ids) {
      const ExpertLease lease = cached.fetch(id).take_value();
      cached.expect_written(lease);
      const std::span<std::byte> slot = slot_of(cached, lease);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(slot.data()) % std::max<size_t>(4096, options.block_bytes), 0u);
      ExpertCatalog::PlacedRecord record;
      cached.catalog->place(id, record);
      std::vector<bool> is_read(slot.size(), false);
      for (const auto& read : record.reads) {
        std::fill_n(is_read.begin() + static_cast<std::ptrdiff_t>(read.slot_offset), read.range.size, true);
      }
      for (size_t i = 0; i < slot.size(); ++i) ASSERT_TRUE(is_read[i] || slot[i] == kCanary) << i;
      std::ranges::fill(slot, kCanary);
    }
  }
}

TEST(ExpertCache, NeighboursStayWhatTheyAreWhileOthersAreRead) {
  for (const size_t block : {512u, 4096u}) {
    CachedModel cached({.block_bytes = block, .scatter_seed = 8, .file_count = 2}, {.slot_count = 8});
    const std::vector<ExpertId> ids = cached.model.ids();
    std::vector<ExpertLease> held;
    for (size_t i = 0; i < 7; ++i) held.push_back(cached.fetch(ids[i]).take_value());
    // One slot is left, between or beside the held ones.
    for (const ExpertId id : ids) {
      const ExpertLease lease = cached.fetch(id).take_value();
      for (const ExpertLease& held_lease : held) cached.expect_written(held_lease);
    }
  }
}

TEST(ExpertCache, AResidentExpertIsNotReadAgain) {
  CachedModel cached({.block_bytes = 512});
  const ExpertId id{1, 3};
  EXPECT_FALSE(cached.cache->is_resident(id));
  ASSERT_TRUE(cached.fetch(id));
  EXPECT_TRUE(cached.cache->is_resident(id));
  const uint64_t read_count = cached.model.plan.read_count;
  const ExpertLease lease = cached.fetch(id).take_value();
  cached.expect_written(lease);
  EXPECT_EQ(cached.model.plan.read_count, read_count);
  EXPECT_EQ(cached.cache->counters().hits, 1u);
  EXPECT_EQ(cached.cache->counters().misses, 1u);
}

TEST(ExpertCache, GivesUpTheExpertThatWasNotUsedForLongest) {
  CachedModel cached({}, {.policy = "lru"});
  for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.fetch({0, expert}));
  ASSERT_TRUE(cached.fetch({0, 0}));
  ASSERT_TRUE(cached.fetch({0, 6}));
  EXPECT_TRUE(cached.cache->is_resident({0, 0}));
  EXPECT_FALSE(cached.cache->is_resident({0, 1}));
  ASSERT_TRUE(cached.fetch({0, 7}));
  EXPECT_FALSE(cached.cache->is_resident({0, 2}));
  for (const uint32_t expert : {0u, 3u, 4u, 5u, 6u, 7u}) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, NeverGivesUpALeasedExpert) {
  CachedModel cached({});
  const ExpertLease first = cached.fetch({0, 0}).take_value();
  const ExpertLease second = cached.fetch({0, 1}).take_value();
  for (int round = 0; round < 3; ++round) {
    for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.fetch(id));
  }
  EXPECT_TRUE(cached.cache->is_resident({0, 0}));
  EXPECT_TRUE(cached.cache->is_resident({0, 1}));
  cached.expect_written(first);
  cached.expect_written(second);
}

TEST(ExpertCache, IsFullWhenEverySlotIsLeased) {
  CachedModel cached({});
  std::vector<ExpertLease> leases;
  for (uint32_t expert = 0; expert < 6; ++expert) leases.push_back(cached.fetch({0, expert}).take_value());
  const Result<ExpertLease> refused = cached.fetch({0, 6});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("all 6 slots"), std::string::npos);
  EXPECT_TRUE(cached.fetch({0, 3})) << "what is there already needs no slot";
  leases.erase(leases.begin() + 2);
  const ExpertLease lease = cached.fetch({0, 6}).take_value();
  cached.expect_written(lease);
  EXPECT_FALSE(cached.cache->is_resident({0, 2}));
}

TEST(ExpertCache, TwoLeasesOfOneExpertShareItsSlot) {
  CachedModel cached({});
  std::optional<ExpertLease> first(cached.fetch({0, 0}).take_value());
  ExpertLease second = cached.fetch({0, 0}).take_value();
  EXPECT_EQ(first->matrix(0).data, second.matrix(0).data);
  first.reset();
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.fetch(id));
  cached.expect_written(second);
}

TEST(ExpertCache, LeasesMove) {
  CachedModel cached({});
  ExpertLease lease = cached.fetch({0, 0}).take_value();
  ExpertLease moved = std::move(lease);
  cached.expect_written(moved);
  // Assignment gives the slot of the old expert back.
  moved = cached.fetch({0, 1}).take_value();
  cached.expect_written(moved);
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.fetch(id));
  EXPECT_FALSE(cached.cache->is_resident({0, 0}));
  EXPECT_TRUE(cached.cache->is_resident({0, 1}));
}

TEST(ExpertCache, GivesUpWhatThePolicyRatesLowest) {
  CachedModel cached({});
  for (int token = 0; token < 5; ++token) ASSERT_TRUE(cached.run(0, {0, 1, 2, 3}, ExpertOrder::kAsTheyLand));
  ASSERT_TRUE(cached.run(0, {0, 1, 2, 3, 4, 5}, ExpertOrder::kAsTheyLand));
  ASSERT_TRUE(cached.run(0, {6, 7}, ExpertOrder::kAsTheyLand));
  for (const uint32_t expert : {0u, 1u, 2u, 3u, 6u, 7u}) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, WhatAPassWantsIsNotGivenUpForTheRest) {
  for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
    CachedModel cached({}, {.policy = "lru"});
    for (uint32_t expert = 2; expert < 8; ++expert) ASSERT_TRUE(cached.fetch({0, expert}));
    // 2 and 3 would be the first to go.
    ASSERT_TRUE(cached.run(0, {0, 1, 2, 3}, order));
    EXPECT_EQ(cached.cache->counters().hits, 2u);
    for (const uint32_t expert : {0u, 1u, 2u, 3u, 6u, 7u}) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
  }
}

TEST(ExpertCache, ASweepHandsOutInAscendingOrder) {
  CachedModel cached({});
  ASSERT_TRUE(cached.run(0, {2, 5}, ExpertOrder::kAscending));
  EXPECT_EQ(cached.run(0, {0, 2, 3, 5, 7}, ExpertOrder::kAscending).take_value(),
            (std::vector<uint32_t>{0, 2, 3, 5, 7}));
}

TEST(ExpertCache, DecodingHandsOutWhatIsResidentFirst) {
  CachedModel cached({});
  ASSERT_TRUE(cached.run(0, {2, 5}, ExpertOrder::kAscending));
  const std::vector<uint32_t> came = cached.run(0, {0, 2, 3, 5, 7}, ExpertOrder::kAsTheyLand).take_value();
  ASSERT_EQ(came.size(), 5u);
  EXPECT_EQ(std::vector<uint32_t>(came.begin(), came.begin() + 2), (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(cached.cache->counters().hits, 2u);
  EXPECT_EQ(cached.cache->counters().misses, 5u);
}

TEST(ExpertCache, SixSlotsDoForSixteenExperts) {
  for (const ReadBackendKind backend : usable_backends()) {
    for (const ExpertOrder order : {ExpertOrder::kAscending, ExpertOrder::kAsTheyLand}) {
      CachedModel cached({.block_bytes = 512, .scatter_seed = 3, .file_count = 2, .experts = 16}, {.backend = backend});
      for (int round = 0; round < 4; ++round) {
        for (uint32_t layer = 0; layer < 2; ++layer) {
          std::vector<uint32_t> came = cached.run(layer, first_numbers(16), order).take_value();
          std::ranges::sort(came);
          ASSERT_EQ(came, first_numbers(16));
        }
      }
      EXPECT_EQ(cached.cache->counters().hits + cached.cache->counters().misses, 4u * 2 * 16);
    }
  }
}

TEST(ExpertCache, ASweepGivesUpTheLastItWantsWhenNothingElseIsLeft) {
  CachedModel cached({});
  ASSERT_TRUE(cached.run(0, {2, 3, 4, 5, 6, 7}, ExpertOrder::kAscending));
  EXPECT_EQ(cached.run(0, first_numbers(8), ExpertOrder::kAscending).take_value(), first_numbers(8));
  EXPECT_GE(cached.cache->counters().hits, 4u);
  EXPECT_EQ(cached.cache->counters().hits + cached.cache->counters().misses, 14u);
}

TEST(ExpertCache, ALeaseOfAnOlderPassStaysGood) {
  CachedModel cached({.experts = 16});
  const ExpertLease old = cached.fetch({0, 9}).take_value();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(cached.run(0, first_numbers(16), ExpertOrder::kAscending));
    ASSERT_TRUE(cached.run(1, first_numbers(16), ExpertOrder::kAsTheyLand));
    cached.expect_written(old);
    EXPECT_TRUE(cached.cache->is_resident({0, 9}));
  }
}

TEST(ExpertCache, ANewPassReplacesTheOneBefore) {
  CachedModel cached({}, {.policy = "lru"});
  ASSERT_TRUE(cached.run(0, first_numbers(6), ExpertOrder::kAscending));
  cached.announce(0, {0, 1});
  EXPECT_EQ(cached.cache->pending_count(), 2u);
  cached.announce(1, {});
  EXPECT_EQ(cached.cache->pending_count(), 0u);
  // 0 and 1 are used last now, but not promised to anybody.
  ASSERT_TRUE(cached.run(1, first_numbers(6), ExpertOrder::kAscending));
  for (uint32_t expert = 0; expert < 6; ++expert) EXPECT_FALSE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, ShortReadsChangeNothing) {
  for (const size_t block : {1u, 512u}) {
    CachedModel cached({.block_bytes = block, .scatter_seed = 6, .file_count = 2});
    for (uint64_t short_at = 0; short_at < 40; ++short_at) {
      cached.model.plan.reset_counts();
      cached.model.plan.short_at = short_at % 5;
      cached.expect_written(cached.fetch(cached.model.ids()[short_at % 16]).take_value());
    }
    cached.model.plan.bytes_per_read_max = 1;
    for (const ExpertId id : cached.model.ids()) {
      const ExpertLease lease = cached.fetch(id).take_value();
      cached.expect_written(lease);
    }
  }
}

TEST(ExpertCache, RefusesAScaleThatIsNotANumber) {
  const std::string name = "l1.e5.w3.weight_scale";
  for (const size_t place : {0u, 41u, 79u}) {
    WrittenTensor scales{name, "U8", {40, 2}, std::string(80, 'x')};
    scales.bytes[place] = '\xff';
    CachedModel cached({.scatter_seed = 4, .file_count = 2, .replacements = {{name, scales}}});
    const Result<ExpertLease> refused = cached.fetch({1, 5});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
    const std::string reason = "scales of matrix 1: scale " + std::to_string(place) + " is not a number";
    EXPECT_NE(refused.error().message.find("expert 5 of expert layer 1: m/s"), std::string::npos);
    EXPECT_NE(refused.error().message.find(reason), std::string::npos) << refused.error().message;
    EXPECT_FALSE(cached.cache->is_resident({1, 5}));
    EXPECT_TRUE(cached.fetch({1, 4}));
  }
}

TEST(ExpertCache, PackedBytesOf255AreNumbers) {
  const std::string name = "l0.e0.w1.weight_packed";
  CachedModel cached({.replacements = {{name, {name, "U8", {40, 32}, std::string(40 * 32, '\xff')}}}});
  EXPECT_TRUE(cached.fetch({0, 0}));
}

TEST(ExpertCache, WantsSixSlotsWhereThereAreAsManyExperts) {
  CachedModel many({});
  const auto refused = ExpertCache::create(*many.catalog, *many.queue, {.slot_count = 5}, many.model.budget);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("room for 5 experts, but 6 are the least"), std::string::npos);

  CachedModel few({.layers = 1, .experts = 3}, {.slot_count = 3});
  for (const ExpertId id : few.model.ids()) ASSERT_TRUE(few.fetch(id));
  for (const ExpertId id : few.model.ids()) EXPECT_TRUE(few.cache->is_resident(id));
}

TEST(ExpertCache, CountsItsReadsAndItsWaiting) {
  CachedModel cached({.scatter_seed = 2});
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.fetch(id));
  EXPECT_EQ(cached.cache->counters().misses, 16u);
  EXPECT_EQ(cached.bytes_read(), 16 * cached.catalog->record_bytes());
  EXPECT_EQ(cached.bytes_read(), cached.model.plan.bytes_read);
  EXPECT_GT(cached.queue->counters().wait_s, 0.0);
}

TEST(ExpertCache, CountsTheBytesThatTheKernelCounts) {
  TempFolder folder;
  CachedModel cached({.scatter_seed = 5, .file_count = 3, .row_factor = 10}, folder);
  const uint64_t before = test::kernel_read_bytes();
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.fetch(id));
  const uint64_t kernel = test::kernel_read_bytes() - before;
  if (!cached.model.checkpoint->file(0).is_direct() || kernel == 0) {
    GTEST_SKIP() << "the file system of " << folder.path() << " refuses direct reads or does not count them";
  }
  EXPECT_EQ(cached.bytes_read(), kernel);
}

}  // namespace
}  // namespace headrace
