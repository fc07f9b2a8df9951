#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/units.h"

namespace headrace {
namespace {

constexpr size_t kMega = 1000000;
constexpr size_t kGiga = 1000000000;

/// Three layers and a head in the middle of the pin order, a hundred experts.
MemoryNeeds small_needs() {
  MemoryNeeds needs;
  needs.fixed_bytes = 1000;
  needs.session_bytes = 200;
  needs.context_tokens = 4096;
  needs.model.pin_order = {{false, 5000, 4900}, {true, 3000, 2900}, {false, 5000, 4900}, {false, 5000, 4900}};
  needs.model.ring_bytes = 2000;
  needs.model.expert_cache_fixed_bytes = 50;
  needs.model.expert_slot_bytes = 10;
  needs.model.expert_slots_min = 6;
  needs.model.expert_slots_max = 100;
  needs.model.expert_read_bytes = 10;
  needs.model.row_read_bytes = 7;
  needs.chunks = {{16, 300}, {64, 1200}, {256, 4800}};
  needs.moe_layers = 2;
  needs.experts = 50;
  needs.experts_per_token = 5;
  return needs;
}

/// What of a budget is not "process and kernel".
size_t without_process(size_t budget_bytes) {
  const size_t process = process_memory_bytes(budget_bytes);
  return budget_bytes - std::min(budget_bytes, process);
}

/// The least budget of which `bytes` are left for everything but the process.
size_t budget_with(size_t bytes) {
  size_t budget = bytes + process_memory_bytes(bytes);
  while (without_process(budget) < bytes) ++budget;
  return budget;
}

size_t trunk_read_bytes(const MemoryNeeds& needs) {
  size_t bytes = 0;
  for (const TrunkGroup& group : needs.model.pin_order) bytes += group.read_bytes;
  return bytes;
}

size_t sum_of_pieces(const MemoryPlan& plan) {
  return plan.fixed_bytes + plan.ring_bytes + plan.pinned_bytes + plan.arrangement.expert_slots * plan.slot_bytes +
         plan.spare_bytes;
}

std::vector<ChunkChoice> chunks_of(size_t scratch_bytes_per_token) {
  std::vector<ChunkChoice> chunks;
  for (const size_t tokens : {16, 64, 256, 512, 1024, 2048, 4096}) {
    chunks.push_back({tokens, tokens * scratch_bytes_per_token});
  }
  return chunks;
}

MemoryNeeds like_kimi_linear() {
  MemoryNeeds needs;
  needs.fixed_bytes = 60 * kMega;
  needs.session_bytes = 90 * kMega;
  needs.context_tokens = 4096;
  needs.model.pin_order.assign(28, {false, 70 * kMega, 70 * kMega});
  needs.model.pin_order[22] = {true, 755 * kMega, 755 * kMega};
  needs.model.ring_bytes = 130 * kMega;
  needs.model.expert_cache_fixed_bytes = kMega;
  needs.model.expert_slot_bytes = needs.model.expert_read_bytes = 14200000;
  needs.model.expert_slots_min = 6;
  needs.model.expert_slots_max = 6656;
  needs.model.row_read_bytes = 8192;
  needs.chunks = chunks_of(120000);
  needs.moe_layers = 26;
  needs.experts = 256;
  needs.experts_per_token = 8;
  return needs;
}

MemoryNeeds like_kimi_k3() {
  MemoryNeeds needs;
  needs.fixed_bytes = 90 * kMega;
  needs.session_bytes = 200 * kMega;
  needs.context_tokens = 4096;
  needs.model.pin_order.assign(94, {false, 1100 * kMega, 1100 * kMega});
  needs.model.pin_order[60] = {true, 2350 * kMega, 2350 * kMega};
  needs.model.ring_bytes = 135 * kMega;
  needs.model.expert_cache_fixed_bytes = 10 * kMega;
  needs.model.expert_slot_bytes = needs.model.expert_read_bytes = 17600000;
  needs.model.expert_slots_min = 6;
  needs.model.expert_slots_max = 82432;
  needs.model.row_read_bytes = 20480;
  needs.chunks = chunks_of(700000);
  needs.moe_layers = 92;
  needs.experts = 896;
  needs.experts_per_token = 16;
  return needs;
}

/// Budgets from the floor to more than everything: dense at first, and pairs of neighbours.
std::vector<size_t> budgets_of(const MemoryNeeds& needs) {
  const double floor = static_cast<double>(plan_memory(needs, 0).floor_bytes);
  const auto slots = static_cast<double>(needs.model.expert_slots_max * needs.model.expert_slot_bytes);
  const double most = 1.1 * (floor + slots + static_cast<double>(trunk_read_bytes(needs)) + 5e9);
  std::vector<size_t> budgets;
  constexpr int kSteps = 2500;
  for (int i = 0; i <= kSteps; ++i) {
    const auto budget = static_cast<size_t>(std::ceil(floor * std::pow(most / floor, static_cast<double>(i) / kSteps)));
    budgets.push_back(budget);
    budgets.push_back(budget + 1);
  }
  return budgets;
}

TEST(MemoryPlan, TheFloorIsTheLeastBudgetThatHoldsWhatMustBeThere) {
  const MemoryNeeds needs = small_needs();
  // Fixed, session, smallest chunk, cache, ring, six slots.
  const size_t least = 1000 + 200 + 300 + 50 + 2000 + 60;
  const size_t floor = plan_memory(needs, 0).floor_bytes;
  EXPECT_GE(without_process(floor), least);
  EXPECT_LT(without_process(floor - 1), least);
}

TEST(MemoryPlan, TheFloorIsExactForEveryRemainderOfThePageTables) {
  MemoryNeeds needs = small_needs();
  for (size_t more = 0; more < 1100; ++more) {
    needs.fixed_bytes = 1000 + more;
    const size_t floor = plan_memory(needs, 0).floor_bytes;
    ASSERT_GE(without_process(floor), 3610 + more);
    ASSERT_LT(without_process(floor - 1), 3610 + more);
  }
}

TEST(MemoryPlan, PageTablesOfTheWholeBudgetArePartOfIt) {
  EXPECT_EQ(process_memory_bytes(size_t{512} << 30) - process_memory_bytes(0), size_t{1} << 30);
}

TEST(MemoryPlan, TheFloorFitsAndAByteLessDoesNot) {
  for (const MemoryNeeds& needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    const size_t floor = plan_memory(needs, 0).floor_bytes;
    const MemoryPlan plan = plan_memory(needs, floor);
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(plan.arrangement, (ModelArrangement{0, 6, 16}));
    EXPECT_EQ(plan.floor_bytes, floor);
    EXPECT_FALSE(plan_memory(needs, floor - 1).fits());
  }
}

TEST(MemoryPlan, BelowTheFloorThePlanIsThatOfTheFloor) {
  const MemoryNeeds needs = like_kimi_linear();
  const size_t floor = plan_memory(needs, 0).floor_bytes;
  const MemoryPlan at_floor = plan_memory(needs, floor);
  for (const size_t budget : {size_t{0}, size_t{1}, floor / 2, floor - 1}) {
    const MemoryPlan plan = plan_memory(needs, budget);
    EXPECT_EQ(plan.budget_bytes, budget);
    EXPECT_FALSE(plan.fits());
    EXPECT_EQ(plan.arrangement, at_floor.arrangement);
    EXPECT_EQ(sum_of_pieces(plan), floor);
  }
}

TEST(MemoryPlan, WhatOpeningTakesForAMomentRaisesTheFloor) {
  MemoryNeeds needs = small_needs();
  needs.opening_peak_bytes = 50000;
  const size_t floor = plan_memory(needs, 0).floor_bytes;
  EXPECT_GE(without_process(floor), 50000u);
  EXPECT_LT(without_process(floor - 1), 50000u);
}

TEST(MemoryPlan, ThePiecesAlwaysMakeUpTheBudget) {
  for (const MemoryNeeds& needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    for (const size_t budget : budgets_of(needs)) {
      const MemoryPlan plan = plan_memory(needs, budget);
      ASSERT_TRUE(plan.fits());
      ASSERT_EQ(sum_of_pieces(plan), budget);
      ASSERT_EQ(plan.fixed_bytes, process_memory_bytes(budget) + needs.fixed_bytes + needs.session_bytes +
                                      plan.scratch_bytes + needs.model.expert_cache_fixed_bytes);
      ASSERT_GE(plan.arrangement.expert_slots, needs.model.expert_slots_min);
      ASSERT_LE(plan.arrangement.expert_slots, needs.model.expert_slots_max);
    }
  }
}

TEST(MemoryPlan, SnapshotsTakeAtMostAnEighthOfWhatIsAboveTheFloorAndDoNotRaiseIt) {
  for (MemoryNeeds needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    const size_t floor = plan_memory(needs, 0).floor_bytes;
    for (const size_t below : {size_t{0}, floor - 1, floor, floor + 7}) {
      EXPECT_EQ(snapshot_allowance_bytes(needs, below), 0u);
    }
    EXPECT_EQ(snapshot_allowance_bytes(needs, floor + 8000), 1000u);
    for (const size_t budget : budgets_of(needs)) {
      needs.snapshot_bytes = 0;
      const MemoryPlan without = plan_memory(needs, budget);
      needs.snapshot_bytes = snapshot_allowance_bytes(needs, budget);
      const MemoryPlan plan = plan_memory(needs, budget);
      ASSERT_EQ(plan.floor_bytes, floor);
      ASSERT_EQ(plan.snapshot_bytes, needs.snapshot_bytes);
      ASSERT_EQ(sum_of_pieces(plan), budget);
      ASSERT_GE(plan.bytes_per_token, without.bytes_per_token);
    }
  }
}

TEST(MemoryPlan, MoreMemoryIsNeverWorse) {
  for (const MemoryNeeds& needs : {like_kimi_linear(), like_kimi_k3()}) {
    MemoryPlan before = plan_memory(needs, plan_memory(needs, 0).floor_bytes);
    for (const size_t budget : budgets_of(needs)) {
      const MemoryPlan plan = plan_memory(needs, budget);
      ASSERT_LE(plan.bytes_per_token, before.bytes_per_token) << budget;
      ASSERT_GE(plan.arrangement.pinned_groups, before.arrangement.pinned_groups) << budget;
      ASSERT_GE(plan.arrangement.chunk_tokens, before.arrangement.chunk_tokens) << budget;
      const auto useful = [](const MemoryPlan& p) {
        return p.pinned_bytes + p.arrangement.expert_slots * p.slot_bytes;
      };
      // A group that is pinned takes its bytes from slots, which are whole.
      ASSERT_GE(useful(plan) + plan.slot_bytes, useful(before)) << budget;
      before = plan;
    }
    EXPECT_EQ(before.bytes_per_token, static_cast<double>(needs.model.row_read_bytes));
    EXPECT_EQ(before.arrangement, (ModelArrangement{needs.model.pin_order.size(), needs.model.expert_slots_max, 4096}));
  }
}

TEST(MemoryPlan, MoreMemoryNeverMakesATokenReadMoreHoweverOddTheModel) {
  for (const size_t group_bytes : {1, 9, 11, 35, 5000}) {
    for (const size_t experts : {5, 6, 8, 50}) {
      MemoryNeeds needs = small_needs();
      for (TrunkGroup& group : needs.model.pin_order) group.memory_bytes = group.read_bytes = group_bytes;
      needs.experts = experts;
      needs.model.expert_slots_max = 2 * experts;
      const size_t floor = plan_memory(needs, 0).floor_bytes;
      double before = plan_memory(needs, floor).bytes_per_token;
      for (size_t budget = floor; budget < floor + 4 * group_bytes + 7000; budget += 1 + budget % 3) {
        const MemoryPlan plan = plan_memory(needs, budget);
        ASSERT_LE(plan.bytes_per_token, before) << group_bytes << " " << experts << " " << budget - floor;
        ASSERT_EQ(sum_of_pieces(plan), budget);
        before = plan.bytes_per_token;
      }
    }
  }
}

TEST(MemoryPlan, TrunkComesBeforeSlots) {
  const MemoryNeeds needs = like_kimi_k3();
  const size_t floor = plan_memory(needs, 0).floor_bytes;
  for (size_t pinned = 1; pinned < 50; ++pinned) {
    const size_t budget = budget_with(without_process(floor) + pinned * 1100 * kMega);
    EXPECT_EQ(plan_memory(needs, budget).arrangement.pinned_groups, pinned);
  }
}

TEST(MemoryPlan, PinnedGroupsAreTheBeginningOfThePinOrder) {
  MemoryNeeds needs = small_needs();
  needs.model.pin_order[0] = {false, 9000, 9000};  // The first does not fit, although the others would.
  const size_t least = 3610;
  const MemoryPlan plan = plan_memory(needs, budget_with(least + 8999));
  EXPECT_EQ(plan.arrangement.pinned_groups, 0u);
  EXPECT_EQ(plan.pinned_bytes, 0u);
  const MemoryPlan more = plan_memory(needs, budget_with(least + 9000));
  EXPECT_EQ(more.arrangement.pinned_groups, 1u);
  EXPECT_EQ(more.pinned_bytes, 9000u);
  EXPECT_EQ(more.ring_bytes, 2000u);
  EXPECT_EQ(more.streamed_bytes, 2900u + 4900 + 4900);
}

TEST(MemoryPlan, WhenEverythingIsPinnedThereIsNoRing) {
  const MemoryNeeds needs = small_needs();
  const size_t all = 1000 + 200 + 300 + 50 + 60 + 18000;
  const MemoryPlan plan = plan_memory(needs, budget_with(all));
  EXPECT_EQ(plan.arrangement.pinned_groups, 4u);
  EXPECT_EQ(plan.ring_bytes, 0u);
  EXPECT_EQ(plan.pinned_bytes, 18000u);
  EXPECT_EQ(plan.streamed_bytes, 0u);
  EXPECT_EQ(plan_memory(needs, budget_with(all) - 1).arrangement.pinned_groups, 3u);
}

TEST(MemoryPlan, ATrunkThatIsSmallerThanTheRingIsPinnedAtTheFloor) {
  MemoryNeeds needs = small_needs();
  needs.model.ring_bytes = 20000;
  const MemoryPlan plan = plan_memory(needs, 0);
  EXPECT_GE(without_process(plan.floor_bytes), 1610u + 18000);
  EXPECT_EQ(plan.arrangement.pinned_groups, 4u);
  EXPECT_EQ(plan.ring_bytes, 0u);
}

TEST(MemoryPlan, AFixedNumberOfPinnedLayersIsKept) {
  MemoryNeeds needs = small_needs();
  const struct {
    size_t layers, groups, trunk_bytes;
  } cases[] = {{0, 0, 2000}, {1, 1, 7000}, {2, 3, 15000}, {3, 4, 18000}};
  for (const auto& [layers, groups, bytes] : cases) {
    needs.pinned_layers_fixed = layers;
    const MemoryPlan least = plan_memory(needs, 0);
    EXPECT_EQ(least.arrangement.pinned_groups, groups);
    EXPECT_EQ(least.ring_bytes + least.pinned_bytes, bytes);
    EXPECT_EQ(least.arrangement.expert_slots, 6u);
    const MemoryPlan plenty = plan_memory(needs, budget_with(40000));
    EXPECT_EQ(plenty.arrangement.pinned_groups, groups);
    EXPECT_EQ(plenty.arrangement.expert_slots, 100u);
  }
}

TEST(MemoryPlan, AModelWithoutExpertsHasNoSlots) {
  MemoryNeeds needs = small_needs();
  needs.model.expert_slot_bytes = needs.model.expert_slots_min = needs.model.expert_slots_max = 0;
  needs.model.expert_read_bytes = needs.moe_layers = needs.experts = needs.experts_per_token = 0;
  const MemoryPlan least = plan_memory(needs, 0);
  EXPECT_EQ(least.arrangement.expert_slots, 0u);
  EXPECT_EQ(least.bytes_per_token, 17600 + 7);
  const MemoryPlan plenty = plan_memory(needs, budget_with(1 << 20));
  EXPECT_EQ(plenty.arrangement.expert_slots, 0u);
  EXPECT_EQ(plenty.bytes_per_token, 7);
  EXPECT_EQ(plan_prefill(needs, plenty, 4096).read_bytes, 4096 * 7);
}

TEST(MemoryPlan, ATrunkOfOneGroupIsStreamedOrPinned) {
  MemoryNeeds needs = small_needs();
  needs.model.pin_order = {{false, 5000, 5000}};
  const size_t least = plan_memory(needs, 0).floor_bytes;
  EXPECT_EQ(plan_memory(needs, least).arrangement.pinned_groups, 0u);
  // The ring makes room.
  EXPECT_EQ(plan_memory(needs, budget_with(without_process(least) + 3000)).arrangement.pinned_groups, 1u);
  EXPECT_EQ(plan_memory(needs, least + 2990).arrangement.pinned_groups, 0u);
}

TEST(MemoryPlan, BytesPerTokenAreExactAtBothEnds) {
  const MemoryNeeds needs = like_kimi_linear();
  const double trunk = 27.0 * 70e6 + 755e6;
  EXPECT_EQ(plan_memory(needs, 0).bytes_per_token, trunk + 8192 + 26 * 8 * 14200000.0);
  EXPECT_EQ(plan_memory(needs, size_t{200} * kGiga).bytes_per_token, 8192);
}

TEST(MemoryPlan, LongerChunksAreKeptOnlyOfWhatNothingElseCanUse) {
  const MemoryNeeds needs = small_needs();
  const size_t everything = 1000 + 200 + 300 + 50 + 1000 + 18000;
  const auto chunk = [&](size_t bytes) { return plan_memory(needs, budget_with(bytes)).arrangement.chunk_tokens; };
  EXPECT_EQ(chunk(everything - 1), 16u);
  EXPECT_EQ(chunk(everything + 899), 16u);
  EXPECT_EQ(chunk(everything + 900), 64u);
  EXPECT_EQ(chunk(everything + 4499), 64u);
  EXPECT_EQ(chunk(everything + 4500), 256u);
  const MemoryPlan plan = plan_memory(needs, budget_with(everything + 1000));
  EXPECT_EQ(plan.scratch_bytes, 1200u);
  EXPECT_EQ(plan.spare_bytes, 100u);
}

/// Everything that an arrangement takes of what a plan divides.
size_t taken_bytes(const MemoryNeeds& needs, const ModelArrangement& arrangement) {
  size_t bytes = arrangement.pinned_groups < needs.model.pin_order.size() ? needs.model.ring_bytes : 0;
  for (size_t i = 0; i < arrangement.pinned_groups; ++i) bytes += needs.model.pin_order[i].memory_bytes;
  for (const ChunkChoice& chunk : needs.chunks) {
    if (chunk.tokens == arrangement.chunk_tokens) bytes += chunk.scratch_bytes;
  }
  return bytes + arrangement.expert_slots * needs.model.expert_slot_bytes;
}

size_t divided_bytes(const MemoryPlan& plan) {
  return plan.scratch_bytes + plan.ring_bytes + plan.pinned_bytes + plan.arrangement.expert_slots * plan.slot_bytes +
         plan.spare_bytes;
}

TEST(PrefillPlan, NeverTakesMoreThanThePlanHas) {
  for (const MemoryNeeds& needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    const auto budgets = budgets_of(needs);
    for (size_t i = 0; i < budgets.size(); i += 11) {
      const MemoryPlan plan = plan_memory(needs, budgets[i]);
      for (const size_t tokens : {1, 17, 300, 4096, 100000}) {
        const PrefillPlan prefill = plan_prefill(needs, plan, tokens);
        ASSERT_LE(taken_bytes(needs, prefill.arrangement), divided_bytes(plan)) << budgets[i] << " " << tokens;
        ASSERT_GE(prefill.arrangement.expert_slots, needs.model.expert_slots_min);
        ASSERT_LE(prefill.arrangement.expert_slots, plan.arrangement.expert_slots);
        ASSERT_LE(prefill.arrangement.pinned_groups, plan.arrangement.pinned_groups);
        ASSERT_GE(prefill.arrangement.chunk_tokens, plan.arrangement.chunk_tokens);
      }
    }
  }
}

TEST(PrefillPlan, GivesUpNothingWithoutALongerChunk) {
  const MemoryNeeds needs = like_kimi_k3();
  const auto budgets = budgets_of(needs);
  for (size_t i = 0; i < budgets.size(); i += 11) {
    const MemoryPlan plan = plan_memory(needs, budgets[i]);
    const PrefillPlan prefill = plan_prefill(needs, plan, 4096);
    if (prefill.arrangement.chunk_tokens > plan.arrangement.chunk_tokens) continue;
    ASSERT_EQ(prefill.arrangement, plan.arrangement);
    ASSERT_EQ(prefill.lent_bytes, 0u);
  }
}

TEST(PrefillPlan, APromptOfOneSmallChunkChangesNothing) {
  for (const MemoryNeeds& needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    const MemoryPlan plan = plan_memory(needs, 2 * plan_memory(needs, 0).floor_bytes);
    for (const size_t tokens : {0, 1, 16}) EXPECT_EQ(plan_prefill(needs, plan, tokens).arrangement, plan.arrangement);
  }
}

TEST(PrefillPlan, ALongPromptPassesInOneChunkWhenTheMemoryAboveTheFloorAllows) {
  const MemoryNeeds needs = like_kimi_k3();
  const size_t floor = plan_memory(needs, 0).floor_bytes;
  // Room for the chunk of 4096 comes from pinned layers: at this budget there are few slots.
  const MemoryPlan plan = plan_memory(needs, floor + 3 * kGiga);
  EXPECT_GE(plan.arrangement.pinned_groups, 2u);
  const PrefillPlan prefill = plan_prefill(needs, plan, 4096);
  EXPECT_EQ(prefill.arrangement.chunk_tokens, 4096u);
  EXPECT_LT(prefill.arrangement.pinned_groups, plan.arrangement.pinned_groups);
  EXPECT_GT(prefill.lent_bytes, 2 * kGiga);
  // Each expert and each layer once.
  const double all = 82432 * 17.6e6 + 93 * 1.1e9 + 2.35e9 + 4096 * 20480.0;
  EXPECT_LE(prefill.read_bytes, all);
  EXPECT_GT(prefill.read_bytes, .9 * all);
}

TEST(PrefillPlan, APromptShorterThanAChunkTakesNoMoreThanTheChunkThatHoldsIt) {
  const MemoryNeeds needs = like_kimi_k3();
  const MemoryPlan plan = plan_memory(needs, size_t{64} * kGiga);
  EXPECT_EQ(plan_prefill(needs, plan, 60).arrangement.chunk_tokens, 64u);
  EXPECT_EQ(plan_prefill(needs, plan, 64).arrangement.chunk_tokens, 64u);
  EXPECT_EQ(plan_prefill(needs, plan, 65).arrangement.chunk_tokens, 256u);
}

TEST(PrefillPlan, APromptLongerThanTheLongestChunkGoesInSeveral) {
  const MemoryNeeds needs = like_kimi_k3();
  const MemoryPlan plan = plan_memory(needs, size_t{64} * kGiga);
  const PrefillPlan once = plan_prefill(needs, plan, 4096);
  const PrefillPlan thrice = plan_prefill(needs, plan, 3 * 4096);
  EXPECT_EQ(thrice.arrangement.chunk_tokens, 4096u);
  EXPECT_GT(thrice.read_bytes, 2.5 * once.read_bytes);
  EXPECT_LT(thrice.read_bytes, 3.1 * once.read_bytes);
}

TEST(PrefillPlan, LendsNothingAtTheFloor) {
  for (const MemoryNeeds& needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    const MemoryPlan plan = plan_memory(needs, plan_memory(needs, 0).floor_bytes);
    EXPECT_EQ(plan_prefill(needs, plan, 4096).arrangement, plan.arrangement);
  }
}

TEST(PrefillPlan, LendsOnlyWhatPays) {
  MemoryNeeds needs = small_needs();
  // A chunk that costs nearly all slots, for a prompt that a second small pass would finish: what comes back cold is
  // more than what is saved.
  needs.model.pin_order.clear();
  needs.experts_per_token = 1;
  needs.chunks = {{16, 300}, {64, 1240}};
  const MemoryPlan plan = plan_memory(needs, budget_with(1000 + 200 + 300 + 50 + 1000));
  ASSERT_EQ(plan.arrangement.expert_slots, 100u);
  EXPECT_EQ(plan_prefill(needs, plan, 17).arrangement, plan.arrangement);
}

TEST(PrefillPlan, SpareMemoryIsUsedBeforeSlots) {
  MemoryNeeds needs = small_needs();
  needs.pinned_layers_fixed = 0;
  needs.chunks = {{16, 300}, {64, 1200}};
  const size_t all_slots = 1000 + 200 + 300 + 50 + 2000 + 1000;
  MemoryPlan plan = plan_memory(needs, budget_with(all_slots + 899));
  ASSERT_EQ(plan.spare_bytes, 899u);
  const PrefillPlan prefill = plan_prefill(needs, plan, 64);
  EXPECT_EQ(prefill.arrangement, (ModelArrangement{0, 99, 64}));
  EXPECT_EQ(prefill.lent_bytes, 10u);
}

TEST(PrefillPlan, AnExplicitChunkIsTheOnlyOne) {
  MemoryNeeds needs = like_kimi_k3();
  needs.chunks = {{100, 70 * kMega}};
  for (const size_t budget : {plan_memory(needs, 0).floor_bytes, size_t{64} * kGiga, size_t{3000} * kGiga}) {
    const MemoryPlan plan = plan_memory(needs, budget);
    EXPECT_EQ(plan.arrangement.chunk_tokens, 100u);
    EXPECT_EQ(plan_prefill(needs, plan, 4096).arrangement, plan.arrangement);
  }
}

TEST(PrefillPlan, AFixedNumberOfPinnedLayersIsNotLent) {
  MemoryNeeds needs = like_kimi_k3();
  needs.pinned_layers_fixed = 3;
  const MemoryPlan plan = plan_memory(needs, plan_memory(needs, 0).floor_bytes + kGiga);
  EXPECT_EQ(plan_prefill(needs, plan, 4096).arrangement.pinned_groups, plan.arrangement.pinned_groups);
}

TEST(PrefillPlan, WhenNothingIsReadALongerChunkStillPays) {
  const MemoryNeeds needs = like_kimi_linear();
  // All experts and layers are resident, and not a byte is left for a longer chunk: the chunk borrows.
  MemoryPlan plan = plan_memory(needs, 200 * kGiga);
  const size_t left = plan.spare_bytes + plan.scratch_bytes - needs.chunks.front().scratch_bytes;
  plan = plan_memory(needs, budget_with(without_process(plan.budget_bytes) - left));
  ASSERT_EQ(plan.arrangement.expert_slots, 6656u);
  ASSERT_EQ(plan.arrangement.chunk_tokens, 16u);
  EXPECT_GE(plan_prefill(needs, plan, 4096).arrangement.chunk_tokens, 256u);
}

TEST(PrefillPlan, MoreMemoryDoesNotMakeAPromptReadMore) {
  for (const MemoryNeeds& needs : {like_kimi_linear(), like_kimi_k3()}) {
    for (const size_t tokens : {64, 1000, 4096, 20000}) {
      double least = std::numeric_limits<double>::infinity();
      const auto budgets = budgets_of(needs);
      for (size_t i = 0; i < budgets.size(); i += 7) {
        const MemoryPlan plan = plan_memory(needs, budgets[i]);
        const double read = plan_prefill(needs, plan, tokens).read_bytes;
        // What comes back cold weighs against lending, and differs a little from budget to budget.
        ASSERT_LE(read, 1.03 * least) << budgets[i] << " " << tokens;
        least = std::min(least, read);
      }
    }
  }
}

TEST(HitShare, GrowsWithTheSlotsFromNothingToAll) {
  for (MemoryNeeds needs : {small_needs(), like_kimi_linear(), like_kimi_k3()}) {
    for (const bool is_random : {false, true}) {
      needs.has_random_routing = is_random;
      for (size_t slots = 0; slots <= needs.model.expert_slots_min; ++slots) {
        EXPECT_EQ(expected_hit_share(needs, slots), 0);
      }
      double before = 0;
      for (size_t slots = 0; slots <= needs.model.expert_slots_max; ++slots) {
        const double share = expected_hit_share(needs, slots);
        ASSERT_GE(share, before) << slots;
        ASSERT_LE(share, 1);
        before = share;
      }
      EXPECT_EQ(before, 1);
      EXPECT_EQ(expected_hit_share(needs, needs.model.expert_slots_max + 1), 1);
    }
  }
}

TEST(HitShare, NoSlotIsWorthMoreThanOneBefore) {
  MemoryNeeds needs = like_kimi_linear();
  // From every expert used by every token to more working sets than were measured.
  for (const size_t experts : {8, 9, 16, 40, 127, 128, 129, 256, 1000}) {
    needs.experts = experts;
    needs.model.expert_slots_max = 26 * experts;
    double last_gain = 1;
    for (size_t slots = 6; slots + 1 < needs.model.expert_slots_max; ++slots) {
      const double gain = expected_hit_share(needs, slots + 1) - expected_hit_share(needs, slots);
      ASSERT_LE(gain, last_gain + 1e-9) << experts << " " << slots;
      ASSERT_GE(gain, 0);
      last_gain = gain;
    }
    EXPECT_NEAR(expected_hit_share(needs, needs.model.expert_slots_max - 1), 1, .01);
  }
}

TEST(HitShare, RandomRoutingHitsByChance) {
  MemoryNeeds needs = like_kimi_k3();
  needs.has_random_routing = true;
  EXPECT_NEAR(expected_hit_share(needs, 41216), .5, 1e-4);
}

TEST(HitShare, AModelWithFewerExpertsThanTheFewestSlotsHitsOnlyWithAll) {
  MemoryNeeds needs = small_needs();
  needs.experts = 2;
  needs.experts_per_token = 1;
  needs.model.expert_slots_max = needs.model.expert_slots_min = 4;
  EXPECT_EQ(expected_hit_share(needs, 3), 0);
  EXPECT_EQ(expected_hit_share(needs, 4), 1);
}

TEST(HitShare, IsWhatWasMeasuredAtWholeWorkingSets) {
  const MemoryNeeds needs = like_kimi_linear();
  EXPECT_NEAR(expected_hit_share(needs, 208), .364, .01);
  EXPECT_NEAR(expected_hit_share(needs, 4 * 208), .617, .01);
  EXPECT_NEAR(expected_hit_share(needs, 16 * 208), .911, .01);
}

TEST(Units, BytesAreShownInTheLargestUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16384.0 PiB");
}

}  // namespace
}  // namespace headrace
