#pragma once

#include "weights/eviction/policy.h"

namespace headrace {

/// Least recently used first, pass by pass. Decoding runs through the layers in a circle, so a cache below one token's
/// records evicts each just before it is wanted; it is here to be compared with.
size_t lru_policy_memory_bytes(const RecordGrid& grid);
Result<std::unique_ptr<EvictionPolicy>> create_lru_policy(const RecordGrid& grid, Budget& budget);

}  // namespace headrace
