#include "engine/memory_plan.h"

#include <algorithm>

namespace headrace {

size_t memory_floor_bytes(const MemoryNeeds& needs) {
  return needs.fixed_bytes + needs.session_bytes + needs.trunk_bytes + needs.slots_fixed_bytes +
         needs.slots_min * needs.slot_bytes;
}

Result<MemoryPlan> plan_memory(const MemoryNeeds& needs, size_t budget_bytes) {
  MemoryPlan plan;
  plan.budget_bytes = budget_bytes;
  plan.floor_bytes = memory_floor_bytes(needs);
  if (budget_bytes < plan.floor_bytes) {
    return error(Code::kBudget, "%zu bytes are below the floor of %zu", budget_bytes, plan.floor_bytes);
  }
  plan.fixed_bytes = needs.fixed_bytes + needs.session_bytes + needs.slots_fixed_bytes;
  plan.pinned_bytes = needs.trunk_bytes;
  plan.slot_bytes = needs.slot_bytes;
  if (needs.slot_bytes > 0) {
    const size_t more_slots = (budget_bytes - plan.floor_bytes) / needs.slot_bytes;
    plan.slots = std::min(needs.slots_max, needs.slots_min + more_slots);
  }
  return plan;
}

}  // namespace headrace
