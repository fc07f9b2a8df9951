#include "engine/memory_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/ensure.h"

namespace headrace {
namespace {

/// Code, stacks, heap, rings of the kernel.
constexpr size_t kProcessBytes = size_t{24} << 20;
/// Page tables take 8 bytes for each 4 KiB.
constexpr size_t kBytesPerPageTableByte = 512;
/// What a byte from the drive costs, in bytes from memory: 5 GB/s against 40. Only so that prompts whose weights are
/// all resident are not read in the smallest of chunks.
constexpr double kMemoryBytesPerDriveByte = 8;
/// Snapshots may take one byte of this many above the floor. One of Kimi K3 takes 444 MiB: the first is there from 4.8
/// GB on, and makes a token read 0.3 % more.
constexpr size_t kSnapshotShare = 8;

/// Hit share of the "phase" policy against slots in working sets, measured on a routing trace of Kimi-Linear (32
/// working sets in all; docs/notes on the cache policies). Concave, as its use below wants it.
struct HitPoint {
  double working_sets;
  double hit_share;
};
constexpr std::array kHitPoints = {HitPoint{0, 0},     HitPoint{0.25, .143}, HitPoint{0.5, .247}, HitPoint{0.75, .314},
                                   HitPoint{1, .364},  HitPoint{1.25, .403}, HitPoint{1.5, .436}, HitPoint{2, .484},
                                   HitPoint{3, .564},  HitPoint{4, .617},    HitPoint{6, .696},   HitPoint{8, .758},
                                   HitPoint{12, .851}, HitPoint{16, .911}};

/// The measured share; beyond the last point it stays.
double measured_hit_share(double working_sets) {
  for (size_t i = 1; i < kHitPoints.size(); ++i) {
    const HitPoint& below = kHitPoints[i - 1];
    const HitPoint& above = kHitPoints[i];
    if (working_sets > above.working_sets) continue;
    const double part = (working_sets - below.working_sets) / (above.working_sets - below.working_sets);
    return below.hit_share + part * (above.hit_share - below.hit_share);
  }
  return kHitPoints.back().hit_share;
}

size_t working_set(const MemoryNeeds& needs) {
  return needs.moe_layers * needs.experts_per_token;
}

size_t group_count(const MemoryNeeds& needs) {
  return needs.model.pin_order.size();
}

/// Memory of the trunk with the first `pinned` groups pinned: theirs, and the ring of the others.
size_t trunk_bytes(const MemoryNeeds& needs, size_t pinned) {
  size_t bytes = pinned < group_count(needs) ? needs.model.ring_bytes : 0;
  for (size_t i = 0; i < pinned; ++i) bytes += needs.model.pin_order[i].memory_bytes;
  return bytes;
}

uint64_t streamed_bytes(const MemoryNeeds& needs, size_t pinned) {
  uint64_t bytes = 0;
  for (size_t i = pinned; i < group_count(needs); ++i) bytes += needs.model.pin_order[i].read_bytes;
  return bytes;
}

/// The fewest groups of the pin order that hold `layers` layers.
size_t groups_with_layers(const MemoryNeeds& needs, size_t layers) {
  const auto& order = needs.model.pin_order;
  size_t count = 0;
  for (; count < order.size() && layers > 0; ++count) {
    if (!order[count].is_head) --layers;
  }
  return count;
}

/// Least memory that the trunk can do with.
size_t least_trunk_bytes(const MemoryNeeds& needs) {
  if (needs.pinned_layers_fixed) return trunk_bytes(needs, groups_with_layers(needs, *needs.pinned_layers_fixed));
  return std::min(trunk_bytes(needs, 0), trunk_bytes(needs, group_count(needs)));
}

size_t least_slots_bytes(const MemoryNeeds& needs) {
  return needs.model.expert_slots_min * needs.model.expert_slot_bytes;
}

/// Everything that must be there, but the process.
size_t least_bytes(const MemoryNeeds& needs) {
  return needs.fixed_bytes + needs.session_bytes + needs.chunks.front().scratch_bytes +
         needs.model.expert_cache_fixed_bytes + least_slots_bytes(needs) + least_trunk_bytes(needs);
}

/// The least b with bytes + process_memory_bytes(b) <= b.
size_t floor_of(size_t bytes) {
  const size_t needed = bytes + kProcessBytes;
  return needed + (needed - 1) / (kBytesPerPageTableByte - 1);
}

/// Experts of a layer that `tokens` tokens use together, if each chooses independently: somewhat more than real text.
double union_of(const MemoryNeeds& needs, size_t tokens) {
  if (needs.experts == 0) return 0;
  const double share = static_cast<double>(needs.experts_per_token) / static_cast<double>(needs.experts);
  return static_cast<double>(needs.experts) * (1 - std::pow(1 - share, static_cast<double>(tokens)));
}

size_t slots_that_fit(const MemoryNeeds& needs, size_t bytes) {
  if (needs.model.expert_slot_bytes == 0) return 0;
  return std::min(needs.model.expert_slots_max, bytes / needs.model.expert_slot_bytes);
}

double token_read_bytes(const MemoryNeeds& needs, size_t pinned, size_t slots) {
  const double misses = static_cast<double>(working_set(needs)) * (1 - expected_hit_share(needs, slots));
  return static_cast<double>(streamed_bytes(needs, pinned) + needs.model.row_read_bytes) +
         misses * static_cast<double>(needs.model.expert_read_bytes);
}

/// Pinned groups and slots.
struct Division {
  size_t pinned = 0;
  size_t slots = 0;
  double bytes_per_token = std::numeric_limits<double>::infinity();
};

/// The division of `bytes` with which a token reads the least, by looking at every one. More bytes allow all that fewer
/// allowed, so they never make a token read more. Of equals, the one that pins more.
Division best_division(const MemoryNeeds& needs, size_t bytes) {
  Division best;
  for (size_t pinned = 0; pinned <= group_count(needs); ++pinned) {
    if (needs.pinned_layers_fixed && pinned != groups_with_layers(needs, *needs.pinned_layers_fixed)) continue;
    const size_t trunk = trunk_bytes(needs, pinned);
    if (trunk > bytes || bytes - trunk < least_slots_bytes(needs)) continue;
    const size_t slots = slots_that_fit(needs, bytes - trunk);
    const double cost = token_read_bytes(needs, pinned, slots);
    if (cost <= best.bytes_per_token) best = {pinned, slots, cost};
  }
  ENSURE(std::isfinite(best.bytes_per_token));  // The floor holds the least division.
  return best;
}

/// When nothing else could use it, what is left serves longer chunks all the time.
ChunkChoice lasting_chunk(const MemoryNeeds& needs, const Division& division, size_t spare_bytes) {
  const bool is_all_there = division.slots == needs.model.expert_slots_max &&
                            (needs.pinned_layers_fixed.has_value() || division.pinned == group_count(needs));
  ChunkChoice chosen = needs.chunks.front();
  for (const ChunkChoice& chunk : needs.chunks) {
    if (is_all_there && chunk.scratch_bytes <= needs.chunks.front().scratch_bytes + spare_bytes) chosen = chunk;
  }
  return chosen;
}

/// What a prompt costs.
struct PromptCost {
  double read_bytes = 0;    ///< From the drive.
  double weight_bytes = 0;  ///< That the processor takes in.

  double total() const { return read_bytes + weight_bytes / kMemoryBytesPerDriveByte; }
};

/// Of a prompt that finds an empty cache.
PromptCost prompt_cost(const MemoryNeeds& needs, const ModelArrangement& arrangement, size_t prompt_tokens) {
  const size_t chunk = std::min(arrangement.chunk_tokens, prompt_tokens);
  const double passes = std::ceil(static_cast<double>(prompt_tokens) / static_cast<double>(chunk));
  PromptCost cost;
  for (size_t i = 0; i < group_count(needs); ++i) {
    const TrunkGroup& group = needs.model.pin_order[i];
    const double bytes = static_cast<double>(group.read_bytes) * (group.is_head ? 1 : passes);  // One token's logits.
    cost.weight_bytes += bytes;
    if (i >= arrangement.pinned_groups) cost.read_bytes += bytes;
  }
  const auto experts_bytes = [&](size_t tokens) {
    return static_cast<double>(needs.moe_layers) * union_of(needs, tokens) *
           static_cast<double>(needs.model.expert_read_bytes);
  };
  const size_t all = needs.model.expert_slots_max;
  const double resident_share = all == 0 ? 1 : static_cast<double>(arrangement.expert_slots) / static_cast<double>(all);
  // What stays is read once in the whole prompt, the rest once in every pass.
  cost.read_bytes +=
      resident_share * experts_bytes(prompt_tokens) + (1 - resident_share) * passes * experts_bytes(chunk);
  cost.weight_bytes += passes * experts_bytes(chunk);
  cost.read_bytes += static_cast<double>(prompt_tokens) * static_cast<double>(needs.model.row_read_bytes);
  return cost;
}

/// What is read again once a prompt has given back what it was lent: all of the trunk, and of the experts those that
/// would have been used again.
double refill_bytes(const MemoryNeeds& needs, const ModelArrangement& from, const ModelArrangement& lent) {
  double bytes = 0;
  for (size_t i = lent.pinned_groups; i < from.pinned_groups; ++i) {
    bytes += static_cast<double>(needs.model.pin_order[i].read_bytes);
  }
  const size_t slots = from.expert_slots - lent.expert_slots;
  return bytes + static_cast<double>(slots) * static_cast<double>(needs.model.expert_read_bytes) *
                     expected_hit_share(needs, from.expert_slots);
}

}  // namespace

size_t snapshot_allowance_bytes(const MemoryNeeds& needs, size_t budget_bytes) {
  const size_t floor_bytes = floor_of(std::max(least_bytes(needs), needs.opening_peak_bytes));
  return (budget_bytes - std::min(budget_bytes, floor_bytes)) / kSnapshotShare;
}

size_t process_memory_bytes(size_t budget_bytes) {
  return kProcessBytes + budget_bytes / kBytesPerPageTableByte;
}

double expected_hit_share(const MemoryNeeds& needs, size_t slots) {
  const size_t all = needs.model.expert_slots_max;
  if (all == 0 || slots >= all) return 1;
  // The fewest slots are all taken by reads on their way.
  const size_t least = needs.model.expert_slots_min;
  if (slots <= least) return 0;
  const double share = static_cast<double>(slots - least) / static_cast<double>(all - least);
  if (needs.has_random_routing) return share;
  const double all_sets = static_cast<double>(all) / static_cast<double>(working_set(needs));
  const double sets = share * all_sets;
  // With all experts everything hits. The concave hull of that and of what was measured: a model with fewer experts
  // for its working set than the traced one gets there earlier, and no slot is worth more than one before it.
  double hit_share = measured_hit_share(sets);
  for (const HitPoint& point : kHitPoints) {
    if (point.working_sets > sets || point.working_sets >= all_sets) break;
    const double part = (sets - point.working_sets) / (all_sets - point.working_sets);
    hit_share = std::max(hit_share, point.hit_share + part * (1 - point.hit_share));
  }
  return hit_share;
}

MemoryPlan plan_memory(const MemoryNeeds& needs, size_t budget_bytes) {
  ENSURE(!needs.chunks.empty());
  MemoryPlan plan;
  plan.budget_bytes = budget_bytes;
  plan.context_tokens = needs.context_tokens;
  plan.floor_bytes = floor_of(std::max(least_bytes(needs), needs.opening_peak_bytes));
  const size_t divided_bytes = std::max(budget_bytes, plan.floor_bytes);
  plan.process_bytes = process_memory_bytes(divided_bytes);
  plan.session_bytes = needs.session_bytes;
  ENSURE(needs.snapshot_bytes <= snapshot_allowance_bytes(needs, divided_bytes));
  plan.snapshot_bytes = needs.snapshot_bytes;
  const size_t constant_bytes = plan.process_bytes + needs.fixed_bytes + plan.session_bytes + plan.snapshot_bytes +
                                needs.model.expert_cache_fixed_bytes;
  const size_t least_scratch_bytes = needs.chunks.front().scratch_bytes;
  const size_t trunk_and_slots = divided_bytes - constant_bytes - least_scratch_bytes;
  const Division division = best_division(needs, trunk_and_slots);
  const size_t trunk = trunk_bytes(needs, division.pinned);
  plan.ring_bytes = division.pinned < group_count(needs) ? needs.model.ring_bytes : 0;
  plan.pinned_bytes = trunk - plan.ring_bytes;
  plan.slot_bytes = needs.model.expert_slot_bytes;
  const size_t left_bytes = trunk_and_slots - trunk - division.slots * plan.slot_bytes;
  const ChunkChoice chunk = lasting_chunk(needs, division, left_bytes);
  plan.scratch_bytes = chunk.scratch_bytes;
  plan.fixed_bytes = constant_bytes + plan.scratch_bytes;
  plan.spare_bytes = left_bytes - (chunk.scratch_bytes - least_scratch_bytes);
  plan.arrangement = {division.pinned, division.slots, chunk.tokens};
  plan.streamed_bytes = streamed_bytes(needs, division.pinned);
  plan.bytes_per_token = division.bytes_per_token;
  return plan;
}

PrefillPlan plan_prefill(const MemoryNeeds& needs, const MemoryPlan& plan, size_t prompt_tokens) {
  prompt_tokens = std::max<size_t>(prompt_tokens, 1);
  const ModelArrangement& kept = plan.arrangement;
  const size_t kept_trunk = plan.ring_bytes + plan.pinned_bytes;
  const size_t bytes = plan.scratch_bytes + kept_trunk + kept.expert_slots * plan.slot_bytes + plan.spare_bytes;
  const PromptCost kept_cost = prompt_cost(needs, kept, prompt_tokens);
  PrefillPlan best{.arrangement = kept, .lent_bytes = 0, .read_bytes = kept_cost.read_bytes};
  if (kept.chunk_tokens >= prompt_tokens) return best;  // One pass is the fewest.
  double best_total = kept_cost.total();
  const size_t pinned_least = needs.pinned_layers_fixed ? kept.pinned_groups : 0;
  for (const ChunkChoice& chunk : needs.chunks) {
    if (chunk.tokens <= kept.chunk_tokens) continue;
    for (size_t pinned = pinned_least; pinned <= kept.pinned_groups; ++pinned) {
      const size_t taken = chunk.scratch_bytes + trunk_bytes(needs, pinned);
      if (taken > bytes || bytes - taken < least_slots_bytes(needs)) continue;
      const size_t slots = std::min(kept.expert_slots, slots_that_fit(needs, bytes - taken));
      const ModelArrangement arrangement{pinned, slots, chunk.tokens};
      const PromptCost cost = prompt_cost(needs, arrangement, prompt_tokens);
      const double total = cost.total() + refill_bytes(needs, kept, arrangement);
      if (total >= best_total) continue;
      best_total = total;
      const size_t lent_trunk = kept_trunk - std::min(kept_trunk, trunk_bytes(needs, pinned));
      best = {arrangement, lent_trunk + (kept.expert_slots - slots) * plan.slot_bytes, cost.read_bytes};
    }
    if (chunk.tokens >= prompt_tokens) break;
  }
  return best;
}

}  // namespace headrace
