#pragma once

#include "weights/eviction/policy.h"

namespace headrace {

/// How often a record was used lately, over how soon its layer runs again.
///
/// Routing has a strong memory of one token and a long, flat one of hundreds, so two averages are kept of each record:
/// with half-lives of 1 and of 200 tokens. With d the layers until its own runs next (all of them for the layer that
/// runs now), a record is worth (0.2 fast + 0.8 slow) / sqrt(d). What was just read and is worth little is so the next
/// to go, and no room is set apart for it.
///
/// A chunk of n tokens counts as n tokens that each used an expert by the share of those that chose it. Counted as one
/// token that used them all, a prompt would make all experts of a layer equal, just before decoding begins.
size_t phase_policy_memory_bytes(const RecordGrid& grid);
Result<std::unique_ptr<EvictionPolicy>> create_phase_policy(const RecordGrid& grid, Budget& budget);

}  // namespace headrace
