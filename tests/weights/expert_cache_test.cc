#include "weights/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/test_files.h"
#include "weights/expert_model.h"

namespace headrace {
namespace {

using test::ExpertModel;
using test::ExpertModelOptions;
using test::FaultPlan;
using test::TempFolder;
using test::WrittenTensor;

/// A model with its catalog and a cache over it.
struct CachedModel {
  explicit CachedModel(const ExpertModelOptions& options, size_t slot_count = ExpertCache::kSlotsMin) : model(options) {
    start(slot_count);
  }
  CachedModel(const ExpertModelOptions& options, const TempFolder& folder, size_t slot_count = ExpertCache::kSlotsMin)
      : model(options, folder) {
    start(slot_count);
  }
  void start(size_t slot_count) {
    catalog.emplace(model.catalog().take_value());
    cache = ExpertCache::create(*model.checkpoint, *catalog, slot_count, model.budget).take_value();
    model.plan.reset_counts();
  }

  ExpertModel model;
  std::optional<ExpertCatalog> catalog;
  std::unique_ptr<ExpertCache> cache;
};

/// The lease holds what was written.
void expect_written(const ExpertModel& model, ExpertId id, const ExpertLease& lease) {
  const std::vector<std::string> names = model.tensor_names(id);
  size_t next = 0;
  for (size_t matrix = 0; matrix < 3; ++matrix) {
    const WeightView view = lease.matrix(matrix);
    const ExpertMatrixShape shape = model.layout().matrices[matrix];
    ASSERT_EQ(view.format, shape.format);
    ASSERT_EQ(view.rows, shape.rows);
    ASSERT_EQ(view.cols, shape.cols);
    ASSERT_EQ(test::stored_data(view), model.tensor_bytes(names[next])) << names[next];
    ++next;
    if (!model.options.mxfp4) {
      ASSERT_EQ(view.scales, nullptr);
      continue;
    }
    ASSERT_EQ(test::stored_scales(view), model.tensor_bytes(names[next])) << names[next];
    ++next;
  }
}

std::vector<ExpertModelOptions> arrangements() {
  std::vector<ExpertModelOptions> all;
  for (const bool mxfp4 : {true, false}) {
    for (const size_t block : {1u, 512u, 4096u, 16'384u}) {
      for (const uint64_t seed : {0u, 1u, 2u, 3u}) {
        for (const size_t row_factor : {1u, 20u}) {
          all.push_back({.mxfp4 = mxfp4,
                         .block_bytes = block,
                         .scatter_seed = seed,
                         .file_count = 1 + seed % 3,
                         .row_factor = row_factor});
        }
      }
    }
  }
  // Files of a folder may lie on different drives: blocks of 512 and 4096, or direct beside buffered.
  for (const uint64_t seed : {4u, 5u, 6u}) {
    all.push_back({.block_bytes = 512, .other_block_bytes = 4096, .scatter_seed = seed, .file_count = 3});
    all.push_back({.block_bytes = 16'384, .other_block_bytes = 1, .scatter_seed = seed, .file_count = 2});
  }
  return all;
}

TEST(ExpertCache, EveryExpertHoldsWhatWasWritten) {
  for (const ExpertModelOptions& options : arrangements()) {
    CachedModel cached(options);
    for (const ExpertId id : cached.model.ids()) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      expect_written(cached.model, id, lease);
    }
  }
}

/// A tensor of a folder on disk by a plain stream and a plain parser.
std::string tensor_by_plain_read(const TempFolder& folder, const std::string& name) {
  const auto index = nlohmann::json::parse(test::plain_read(folder.file("model.safetensors.index.json")));
  const std::string path = folder.file(index["weight_map"][name].get<std::string>());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, test::plain_read(path, 0, 8).data(), 8);
  const auto offsets = nlohmann::json::parse(test::plain_read(path, 8, header_bytes))[name]["data_offsets"];
  const uint64_t begin = offsets[0].get<uint64_t>();
  return test::plain_read(path, 8 + header_bytes + begin, offsets[1].get<uint64_t>() - begin);
}

TEST(ExpertCache, EveryExpertEqualsAPlainReadOfTheFilesOnDisk) {
  for (const uint64_t seed : {0u, 5u}) {
    TempFolder folder;
    CachedModel cached({.mxfp4 = true, .scatter_seed = seed, .file_count = 3, .row_factor = 10}, folder);
    for (const ExpertId id : cached.model.ids()) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      const std::vector<std::string> names = cached.model.tensor_names(id);
      for (size_t matrix = 0; matrix < 3; ++matrix) {
        ASSERT_EQ(test::stored_data(lease.matrix(matrix)), tensor_by_plain_read(folder, names[2 * matrix]));
        ASSERT_EQ(test::stored_scales(lease.matrix(matrix)), tensor_by_plain_read(folder, names[2 * matrix + 1]));
      }
    }
  }
}

/// The slot that a lease looks into, from its placement.
std::span<std::byte> slot_of(const CachedModel& cached, ExpertId id, const ExpertLease& lease) {
  ExpertCatalog::PlacedRecord record;
  cached.catalog->place(id, record);
  std::byte* data = const_cast<std::byte*>(lease.matrix(0).data);
  return {data - record.tensor_offsets[0], cached.catalog->slot_bytes()};
}

TEST(ExpertCache, NoReadTouchesBytesOutsideItsAreas) {
  // A related engine read widened blocks over the tensors beside them; its tests compared it with itself, and passed.
  constexpr std::byte kCanary{0xc5};
  for (const ExpertModelOptions& options : arrangements()) {
    CachedModel cached(options);
    const std::vector<ExpertId> ids = cached.model.ids();
    for (const ExpertId id : ids) {
      const std::span<std::byte> slot = slot_of(cached, id, cached.cache->acquire(id).take_value());
      std::ranges::fill(slot, kCanary);
    }
    // Every slot has been filled with canaries now, and every expert is read again.
    for (const ExpertId id : ids) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      expect_written(cached.model, id, lease);
      const std::span<std::byte> slot = slot_of(cached, id, lease);
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
    CachedModel cached({.block_bytes = block, .scatter_seed = 8, .file_count = 2}, 8);
    const std::vector<ExpertId> ids = cached.model.ids();
    std::vector<std::pair<ExpertId, ExpertLease>> held;
    for (size_t i = 0; i < 7; ++i) held.emplace_back(ids[i], cached.cache->acquire(ids[i]).take_value());
    // One slot is left, between or beside the held ones.
    for (const ExpertId id : ids) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      for (const auto& [held_id, held_lease] : held) expect_written(cached.model, held_id, held_lease);
    }
  }
}

TEST(ExpertCache, AResidentExpertIsNotReadAgain) {
  CachedModel cached({.block_bytes = 512});
  const ExpertId id{1, 3};
  EXPECT_FALSE(cached.cache->is_resident(id));
  ASSERT_TRUE(cached.cache->acquire(id));
  EXPECT_TRUE(cached.cache->is_resident(id));
  const uint64_t read_count = cached.model.plan.read_count;
  const ExpertLease lease = cached.cache->acquire(id).take_value();
  expect_written(cached.model, id, lease);
  EXPECT_EQ(cached.model.plan.read_count, read_count);
  EXPECT_EQ(cached.cache->counters().hits, 1u);
  EXPECT_EQ(cached.cache->counters().misses, 1u);
}

TEST(ExpertCache, GivesUpTheExpertThatWasNotUsedForLongest) {
  CachedModel cached({}, 6);
  for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.cache->acquire({0, expert}));
  ASSERT_TRUE(cached.cache->acquire({0, 0}));
  ASSERT_TRUE(cached.cache->acquire({0, 6}));
  EXPECT_TRUE(cached.cache->is_resident({0, 0}));
  EXPECT_FALSE(cached.cache->is_resident({0, 1}));
  ASSERT_TRUE(cached.cache->acquire({0, 7}));
  EXPECT_FALSE(cached.cache->is_resident({0, 2}));
  for (const uint32_t expert : {0u, 3u, 4u, 5u, 6u, 7u}) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, NeverGivesUpALeasedExpert) {
  CachedModel cached({}, 6);
  const ExpertLease first = cached.cache->acquire({0, 0}).take_value();
  const ExpertLease second = cached.cache->acquire({0, 1}).take_value();
  for (int round = 0; round < 3; ++round) {
    for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.cache->acquire(id));
  }
  EXPECT_TRUE(cached.cache->is_resident({0, 0}));
  EXPECT_TRUE(cached.cache->is_resident({0, 1}));
  expect_written(cached.model, {0, 0}, first);
  expect_written(cached.model, {0, 1}, second);
}

TEST(ExpertCache, IsFullWhenEverySlotIsLeased) {
  CachedModel cached({}, 6);
  std::vector<ExpertLease> leases;
  for (uint32_t expert = 0; expert < 6; ++expert) leases.push_back(cached.cache->acquire({0, expert}).take_value());
  const Result<ExpertLease> refused = cached.cache->acquire({0, 6});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("all 6 slots"), std::string::npos);
  EXPECT_TRUE(cached.cache->acquire({0, 3})) << "what is there already needs no slot";
  leases.erase(leases.begin() + 2);
  const ExpertLease lease = cached.cache->acquire({0, 6}).take_value();
  expect_written(cached.model, {0, 6}, lease);
  EXPECT_FALSE(cached.cache->is_resident({0, 2}));
}

TEST(ExpertCache, TwoLeasesOfOneExpertShareItsSlot) {
  CachedModel cached({}, 6);
  std::optional<ExpertLease> first(cached.cache->acquire({0, 0}).take_value());
  ExpertLease second = cached.cache->acquire({0, 0}).take_value();
  EXPECT_EQ(first->matrix(0).data, second.matrix(0).data);
  first.reset();
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.cache->acquire(id));
  expect_written(cached.model, {0, 0}, second);
}

TEST(ExpertCache, LeasesMove) {
  CachedModel cached({}, 6);
  ExpertLease lease = cached.cache->acquire({0, 0}).take_value();
  ExpertLease moved = std::move(lease);
  expect_written(cached.model, {0, 0}, moved);
  // Assignment gives the slot of the old expert back.
  moved = cached.cache->acquire({0, 1}).take_value();
  expect_written(cached.model, {0, 1}, moved);
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.cache->acquire(id));
  EXPECT_FALSE(cached.cache->is_resident({0, 0}));
  EXPECT_TRUE(cached.cache->is_resident({0, 1}));
}

TEST(ExpertCache, AnnouncedExpertsAreNotGivenUpForOthers) {
  CachedModel cached({}, 6);
  for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.cache->acquire({0, expert}));
  // 0 and 1 would be the first to go; they are wanted, after two others.
  const ExpertId wanted[] = {{0, 0}, {0, 1}, {0, 6}, {0, 7}};
  cached.cache->announce(wanted);
  ASSERT_TRUE(cached.cache->acquire({0, 7}));
  ASSERT_TRUE(cached.cache->acquire({0, 6}));
  EXPECT_TRUE(cached.cache->is_resident({0, 0}));
  EXPECT_TRUE(cached.cache->is_resident({0, 1}));
  ASSERT_TRUE(cached.cache->acquire({0, 0}));
  ASSERT_TRUE(cached.cache->acquire({0, 1}));
  EXPECT_EQ(cached.cache->counters().hits, 2u);
}

TEST(ExpertCache, OfTheAnnouncedTheLastOneIsGivenUpFirst) {
  CachedModel cached({}, 6);
  std::vector<ExpertId> layer = cached.model.ids();
  layer.resize(8);
  for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.cache->acquire({0, expert}));
  cached.cache->announce(layer);
  ASSERT_TRUE(cached.cache->acquire({0, 7}));
  EXPECT_FALSE(cached.cache->is_resident({0, 5}));
  for (uint32_t expert = 0; expert < 5; ++expert) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, AnAnnouncementHoldsUntilItsExpertIsAcquired) {
  CachedModel cached({}, 6);
  std::vector<ExpertId> layer = cached.model.ids();
  layer.resize(6);
  for (const ExpertId id : layer) ASSERT_TRUE(cached.cache->acquire(id));
  cached.cache->announce(layer);
  ASSERT_TRUE(cached.cache->acquire({0, 0}));
  ASSERT_TRUE(cached.cache->acquire({1, 0}));
  EXPECT_FALSE(cached.cache->is_resident({0, 0})) << "it was used, the others are still wanted";
  for (uint32_t expert = 1; expert < 6; ++expert) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
}

TEST(ExpertCache, AnnouncingMoreThanTheSlotsHoldStillWorks) {
  CachedModel cached({}, 6);
  std::vector<ExpertId> layer = cached.model.ids();
  layer.resize(8);
  for (int round = 0; round < 4; ++round) {
    cached.cache->announce(layer);
    for (const ExpertId id : layer) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      expect_written(cached.model, id, lease);
    }
  }
  // The last one wanted is the one to give up: most of a sweep stays from round to round.
  EXPECT_GT(cached.cache->counters().hits, 10u);
}

TEST(ExpertCache, ANewAnnouncementReplacesTheOneBefore) {
  CachedModel cached({}, 6);
  for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.cache->acquire({0, expert}));
  const ExpertId first[] = {{0, 0}, {0, 1}};
  cached.cache->announce(first);
  cached.cache->announce({});
  ASSERT_TRUE(cached.cache->acquire({0, 6}));
  EXPECT_FALSE(cached.cache->is_resident({0, 0}));
}

TEST(ExpertCache, EveryFailingReadLeavesAnEmptySlot) {
  const ExpertModelOptions options{.block_bytes = 512, .scatter_seed = 6, .file_count = 2};
  CachedModel counting(options);
  ASSERT_TRUE(counting.cache->acquire({1, 5}));
  const uint64_t read_count = counting.model.plan.read_count;
  ASSERT_GT(read_count, 2u);
  for (uint64_t fail_at = 0; fail_at < read_count; ++fail_at) {
    CachedModel cached(options);
    const size_t used_bytes = cached.model.budget.used_bytes();
    for (uint32_t expert = 0; expert < 6; ++expert) ASSERT_TRUE(cached.cache->acquire({0, expert}));
    cached.model.plan.reset_counts();
    cached.model.plan.fail_at = fail_at;
    const Result<ExpertLease> failed = cached.cache->acquire({1, 5});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kIo);
    EXPECT_NE(failed.error().message.find("expert 5 of expert layer 1: read m/s"), std::string::npos);
    EXPECT_NE(failed.error().message.find(" @"), std::string::npos);
    EXPECT_FALSE(cached.cache->is_resident({1, 5}));
    EXPECT_FALSE(cached.cache->is_resident({0, 0})) << "its slot was taken";
    for (uint32_t expert = 1; expert < 6; ++expert) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
    // The next one who wants it reads it again, into the slot that is empty.
    const ExpertLease lease = cached.cache->acquire({1, 5}).take_value();
    expect_written(cached.model, {1, 5}, lease);
    for (uint32_t expert = 1; expert < 6; ++expert) EXPECT_TRUE(cached.cache->is_resident({0, expert}));
    EXPECT_EQ(cached.model.budget.used_bytes(), used_bytes);
  }
}

TEST(ExpertCache, ShortReadsChangeNothing) {
  for (const size_t block : {1u, 512u}) {
    CachedModel cached({.block_bytes = block, .scatter_seed = 6, .file_count = 2});
    for (uint64_t short_at = 0; short_at < 40; ++short_at) {
      cached.model.plan.reset_counts();
      cached.model.plan.short_at = short_at % 5;
      const ExpertId id = cached.model.ids()[short_at % 16];
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      expect_written(cached.model, id, lease);
    }
    cached.model.plan.bytes_per_read_max = 1;
    for (const ExpertId id : cached.model.ids()) {
      const ExpertLease lease = cached.cache->acquire(id).take_value();
      expect_written(cached.model, id, lease);
    }
  }
}

TEST(ExpertCache, RefusesAScaleThatIsNotANumber) {
  const std::string name = "l1.e5.w3.weight_scale";
  for (const size_t place : {0u, 41u, 79u}) {
    WrittenTensor scales{name, "U8", {40, 2}, std::string(80, 'x')};
    scales.bytes[place] = '\xff';
    CachedModel cached({.scatter_seed = 4, .file_count = 2, .replacements = {{name, scales}}});
    const Result<ExpertLease> refused = cached.cache->acquire({1, 5});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
    const std::string reason = "scales of matrix 1: scale " + std::to_string(place) + " is not a number";
    EXPECT_NE(refused.error().message.find("expert 5 of expert layer 1: m/s"), std::string::npos);
    EXPECT_NE(refused.error().message.find(reason), std::string::npos) << refused.error().message;
    EXPECT_FALSE(cached.cache->is_resident({1, 5}));
    EXPECT_TRUE(cached.cache->acquire({1, 4}));
  }
}

TEST(ExpertCache, PackedBytesOf255AreNumbers) {
  const std::string name = "l0.e0.w1.weight_packed";
  CachedModel cached({.replacements = {{name, {name, "U8", {40, 32}, std::string(40 * 32, '\xff')}}}});
  EXPECT_TRUE(cached.cache->acquire({0, 0}));
}

TEST(ExpertCache, TakesItsMemoryFromTheBudgetAndGivesItBack) {
  const ExpertModel model({.block_bytes = 16'384});
  const ExpertCatalog catalog = model.catalog().take_value();
  const size_t before = model.budget.used_bytes();
  {
    const auto cache = ExpertCache::create(*model.checkpoint, catalog, 10, model.budget).take_value();
    EXPECT_EQ(cache->slot_count(), 10u);
    EXPECT_GE(model.budget.used_bytes() - before, 10 * catalog.slot_bytes());
    EXPECT_LT(model.budget.used_bytes() - before, 11 * catalog.slot_bytes() + 16'384);
    ASSERT_TRUE(cache->acquire({0, 0}));
  }
  EXPECT_EQ(model.budget.used_bytes(), before);
}

TEST(ExpertCache, EveryBudgetThatIsTooSmallIsRefused) {
  const ExpertModel model({});
  const ExpertCatalog catalog = model.catalog().take_value();
  for (size_t limit = 0; limit < 7 * catalog.slot_bytes(); limit += 1000) {
    Budget budget(limit);
    const auto cache = ExpertCache::create(*model.checkpoint, catalog, 6, budget);
    if (cache) {
      EXPECT_GT(limit, 6 * catalog.slot_bytes());
      continue;
    }
    EXPECT_EQ(cache.error().code, Code::kBudget);
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
  Budget budget(SIZE_MAX);
  const auto endless = ExpertCache::create(*model.checkpoint, catalog, SIZE_MAX / 4096, budget);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, Code::kBudget);
}

TEST(ExpertCache, WantsSixSlotsWhereThereAreAsManyExperts) {
  const ExpertModel many({});
  const ExpertCatalog catalog = many.catalog().take_value();
  const auto refused = ExpertCache::create(*many.checkpoint, catalog, 5, many.budget);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("room for 5 experts, but 6 are the least"), std::string::npos);

  CachedModel few({.layers = 1, .experts = 3}, 3);
  for (const ExpertId id : few.model.ids()) ASSERT_TRUE(few.cache->acquire(id));
  for (const ExpertId id : few.model.ids()) EXPECT_TRUE(few.cache->is_resident(id));
}

TEST(ExpertCache, CountsItsReadsAndItsWaiting) {
  CachedModel cached({.scatter_seed = 2});
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.cache->acquire(id));
  EXPECT_EQ(cached.cache->counters().misses, 16u);
  EXPECT_EQ(cached.cache->counters().bytes_read, 16 * cached.catalog->record_bytes());
  EXPECT_EQ(cached.cache->counters().bytes_read, cached.model.plan.bytes_read);
  EXPECT_GT(cached.cache->counters().wait_s, 0.0);
}

uint64_t kernel_read_bytes() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

TEST(ExpertCache, CountsTheBytesThatTheKernelCounts) {
  TempFolder folder;
  CachedModel cached({.scatter_seed = 5, .file_count = 3, .row_factor = 10}, folder);
  const uint64_t before = kernel_read_bytes();
  for (const ExpertId id : cached.model.ids()) ASSERT_TRUE(cached.cache->acquire(id));
  const uint64_t kernel = kernel_read_bytes() - before;
  if (!cached.model.checkpoint->file(0).is_direct() || kernel == 0) {
    GTEST_SKIP() << "the file system of " << folder.path() << " refuses direct reads or does not count them";
  }
  EXPECT_EQ(cached.cache->counters().bytes_read, kernel);
}

}  // namespace
}  // namespace headrace
