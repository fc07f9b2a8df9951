#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "weights/eviction/policy.h"

namespace headrace {

/// A kind of policy: a file of this folder, and a row of the table.
struct EvictionPolicyKind {
  const char* name;
  /// What `create` takes of the budget, exactly.
  size_t (*memory_bytes)(const RecordGrid& grid);
  /// kBudget when the memory is refused.
  Result<std::unique_ptr<EvictionPolicy>> (*create)(const RecordGrid& grid, Budget& budget);
};

/// Every kind there is; the first is the default.
std::span<const EvictionPolicyKind> eviction_policies();
inline const EvictionPolicyKind& default_eviction_policy() {
  return eviction_policies().front();
}

/// The kind of that name. kArgument lists those there are.
Result<const EvictionPolicyKind*> find_eviction_policy(std::string_view name);

}  // namespace headrace
