#include "engine/plan_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

size_t pinned_layers(const MemoryNeeds& needs, const MemoryPlan& plan) {
  size_t count = 0;
  for (size_t i = 0; i < plan.arrangement.pinned_groups; ++i) count += needs.model.pin_order[i].is_head ? 0 : 1;
  return count;
}

size_t layers(const MemoryNeeds& needs) {
  size_t count = 0;
  for (const TrunkGroup& group : needs.model.pin_order) count += group.is_head ? 0 : 1;
  return count;
}

}  // namespace

std::string plan_json(const PlannedModel& planned, double drive_gb_s) {
  const MemoryNeeds& needs = planned.needs;
  const MemoryPlan& plan = planned.plan;
  const PrefillPlan prefill = plan_prefill(needs, plan, needs.context_tokens);
  const bool is_limited_by_drive = drive_gb_s > 0 && plan.bytes_per_token > 0;
  const Json json = {
      {"name", planned.info.name},
      {"budget_bytes", plan.budget_bytes},
      {"floor_bytes", plan.floor_bytes},
      {"fits", plan.fits()},
      {"fixed_bytes", plan.fixed_bytes},
      {"process_bytes", plan.process_bytes},
      {"session_bytes", plan.session_bytes},
      {"scratch_bytes", plan.scratch_bytes},
      {"ring_bytes", plan.ring_bytes},
      {"pinned_bytes", plan.pinned_bytes},
      {"pinned_layers", pinned_layers(needs, plan)},
      {"streamed_layers", layers(needs) - pinned_layers(needs, plan)},
      {"slots", plan.arrangement.expert_slots},
      {"slot_bytes", plan.slot_bytes},
      {"all_slots", needs.model.expert_slots_max},
      {"spare_bytes", plan.spare_bytes},
      {"chunk_tokens", plan.arrangement.chunk_tokens},
      {"ctx", plan.context_tokens},
      {"bytes_per_token", std::llround(plan.bytes_per_token)},
      {"streamed_bytes", plan.streamed_bytes},
      {"expected_hit_share", expected_hit_share(needs, plan.arrangement.expert_slots)},
      {"prefill_tokens", needs.context_tokens},
      {"prefill_chunk_tokens", prefill.arrangement.chunk_tokens},
      {"prefill_lent_bytes", prefill.lent_bytes},
      {"prefill_bytes", std::llround(prefill.read_bytes)},
      {"expected_tok_s", is_limited_by_drive ? Json(drive_gb_s * 1e9 / plan.bytes_per_token) : Json(nullptr)},
      {"threads", planned.thread_count},
      {"isa", planned.isa},
  };
  // Names come from files of a model: bytes that are no UTF-8 must not throw.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string plan_json(Engine& engine) {
  return plan_json(engine.planned(), 0);
}

}  // namespace headrace
