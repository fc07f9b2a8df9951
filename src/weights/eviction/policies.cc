#include "weights/eviction/policies.h"

#include <algorithm>
#include <string>

#include "weights/eviction/lru.h"
#include "weights/eviction/phase.h"

namespace headrace {
namespace {

constexpr EvictionPolicyKind kPolicies[] = {
    {"phase", phase_policy_memory_bytes, create_phase_policy},
    {"lru", lru_policy_memory_bytes, create_lru_policy},
};

}  // namespace

std::span<const EvictionPolicyKind> eviction_policies() {
  return kPolicies;
}

Result<const EvictionPolicyKind*> find_eviction_policy(std::string_view name) {
  const auto* found = std::ranges::find(kPolicies, name, [](const EvictionPolicyKind& kind) { return kind.name; });
  if (found != std::end(kPolicies)) return found;
  std::string names;
  for (const EvictionPolicyKind& kind : kPolicies) names += std::string(names.empty() ? "" : ", ") + kind.name;
  return error(Code::kArgument, "there is no cache policy \"%.*s\"; there are: %s", static_cast<int>(name.size()),
               name.data(), names.c_str());
}

}  // namespace headrace
