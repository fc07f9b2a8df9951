#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace headrace {

/// A chunk of a prompt that may pass through the layers together, and what its intermediate results take.
struct ChunkChoice {
  size_t tokens = 0;
  size_t scratch_bytes = 0;
};

/// What a plan is made of, in bytes unless the name says otherwise.
struct MemoryNeeds {
  size_t fixed_bytes = 0;         ///< Tokenizer, directory, small tensors, queue: what is taken before the plan.
  size_t opening_peak_bytes = 0;  ///< Largest use while that was read.
  size_t session_bytes = 0;
  /// Snapshots that sessions asked for. Not part of the floor: below `snapshot_allowance_bytes`.
  size_t snapshot_bytes = 0;
  size_t context_tokens = 0;
  ModelNeeds model;
  std::vector<ChunkChoice> chunks;            ///< Ascending, at least one.
  std::optional<size_t> pinned_layers_fixed;  ///< Layers to pin, no more and no fewer; else what fits.

  // What is read for a token.
  size_t moe_layers = 0;
  size_t experts = 0;               ///< Of a layer.
  size_t experts_per_token = 0;     ///< Of a layer.
  bool has_random_routing = false;  ///< Of random weights: no expert is likelier for having been used.
};

/// How a budget is divided while tokens are generated.
struct MemoryPlan {
  size_t budget_bytes = 0;
  size_t floor_bytes = 0;  ///< Least budget for this context.
  size_t context_tokens = 0;

  size_t process_bytes = 0;  ///< "Process and kernel".
  size_t session_bytes = 0;
  size_t scratch_bytes = 0;
  size_t snapshot_bytes = 0;
  size_t fixed_bytes = 0;  ///< The four above, MemoryNeeds::fixed_bytes, and the expert cache without its slots.
  size_t ring_bytes = 0;   ///< 0 when everything is pinned.
  size_t pinned_bytes = 0;
  size_t slot_bytes = 0;
  size_t spare_bytes = 0;  ///< Of the budget, when nothing more is of use.
  ModelArrangement arrangement;

  uint64_t streamed_bytes = 0;  ///< Trunk that every token reads.
  /// Expected for a generated token once the cache is warm: streamed trunk, the head, and the experts that are likely
  /// to miss. Exact at both ends, without hits and without misses.
  double bytes_per_token = 0;

  bool fits() const { return budget_bytes >= floor_bytes; }
};

/// How a prompt is read: what is lent to the chunk, and what that saves.
struct PrefillPlan {
  ModelArrangement arrangement;
  size_t lent_bytes = 0;  ///< By pinned trunk and expert slots.
  double read_bytes = 0;  ///< Expected for the prompt.
};

/// The line "process and kernel" of a budget: code, stacks, heap of small objects, and the page tables of all the rest.
/// Stated, because it cannot be counted while planning; with the demo model at its floor the whole process, weights
/// included, peaks at 13 MiB resident (x86-64, 1 to 64 threads).
size_t process_memory_bytes(size_t budget_bytes);

/// Pure: fixed parts with the smallest chunk, ring, fewest slots; what is left is divided between pinned trunk, in the
/// pin order, and more slots, so that a token reads the least. Longer chunks are there for good only when all that
/// could be pinned and cached is. Always a plan: below the floor it is that of the floor. More budget never means more
/// bytes per token.
MemoryPlan plan_memory(const MemoryNeeds& needs, size_t budget_bytes);

/// Pure: the chunk with which prompt and what follows read the fewest bytes, within the memory of `plan`. A long prompt
/// in one chunk reads each expert once, in eight chunks eight times; but slots and pinned layers lent to its
/// intermediate results come back cold. Memory that the plan has no use for is taken first.
PrefillPlan plan_prefill(const MemoryNeeds& needs, const MemoryPlan& plan, size_t prompt_tokens);

/// Pure: most that snapshots may take: an eighth of what a budget has above the floor. None at the floor, where every
/// byte is needed; never so much that going back quickly makes everything else slow.
size_t snapshot_allowance_bytes(const MemoryNeeds& needs, size_t budget_bytes);

/// Share of uses that hit, expected of a cache of `slots` records.
double expected_hit_share(const MemoryNeeds& needs, size_t slots);

}  // namespace headrace
