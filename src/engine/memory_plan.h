#pragma once

#include <cstddef>

#include "base/result.h"

namespace headrace {

/// The line "process and kernel" of the plan: code, stacks, heap of small objects, page tables. A stated number,
/// because it cannot be counted while planning. With the demo model at its floor the whole process, weights included,
/// peaks at 13 MiB resident (x86-64, 1 to 64 threads).
inline constexpr size_t kProcessBytes = size_t{24} << 20;

/// What a plan is made of, in bytes unless the name says otherwise.
struct MemoryNeeds {
  size_t fixed_bytes = 0;  ///< Process, tokenizer, directory, scratch: what is taken before the plan.
  size_t session_bytes = 0;
  size_t trunk_bytes = 0;
  size_t slots_fixed_bytes = 0;  ///< Of the expert cache, whatever its size.
  size_t slot_bytes = 0;         ///< 0: a model without experts.
  size_t slots_min = 0;
  size_t slots_max = 0;
};

/// How the budget is divided.
struct MemoryPlan {
  size_t budget_bytes = 0;
  size_t floor_bytes = 0;   ///< Least budget for this context and chunk.
  size_t fixed_bytes = 0;   ///< Includes one session and the fixed part of the expert cache.
  size_t pinned_bytes = 0;  ///< Trunk, all of it.
  size_t slots = 0;
  size_t slot_bytes = 0;
  size_t chunk_tokens = 0;
  size_t context_tokens = 0;
};

/// Pure: all of the trunk is pinned, what is left goes to expert slots. kBudget when `budget_bytes` is below the floor.
Result<MemoryPlan> plan_memory(const MemoryNeeds& needs, size_t budget_bytes);

/// The least budget.
size_t memory_floor_bytes(const MemoryNeeds& needs);

}  // namespace headrace
