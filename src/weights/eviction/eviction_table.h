#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "weights/eviction/policies.h"

namespace headrace {

/// A record to be evicted, and what it is worth.
struct Victim {
  float worth = 0;
  ExpertId id;
};

/// The records that may be evicted, rated by a policy. One thread.
///
/// Choosing goes through one float for each record of the model, in order: a scan of the slots instead gathers from all
/// over the statistics, and took ten times as long (docs/notes/2026-11-29-expert-cache.md).
class EvictionTable {
 public:
  /// What `create` takes of the budget, exactly.
  static size_t memory_bytes(const EvictionPolicyKind& kind, const RecordGrid& grid);
  /// With no record in it. kBudget when the memory is refused.
  static Result<EvictionTable> create(const EvictionPolicyKind& kind, const RecordGrid& grid, Budget& budget);

  /// Tells the policy of a pass. Once for each, before its victims are chosen.
  void visit(const LayerPass& pass);

  /// From now on the record may be evicted ...
  void add(ExpertId id);
  /// ... and from now on it may not. Both change nothing when it is so already.
  void remove(ExpertId id);
  bool contains(ExpertId id) const { return rates_.row(id.layer)[id.expert] != kAbsent; }
  size_t size() const { return size_; }

  /// Takes out the records that are worth least, as many as `room` (not empty) holds and the table has: in `room`, the
  /// least first. The same calls always take the same records.
  std::span<const Victim> take(std::span<Victim> room);

 private:
  static constexpr float kAbsent = std::numeric_limits<float>::infinity();
  EvictionTable(std::unique_ptr<EvictionPolicy> policy, Matrix<float> rates, size_t expert_count);

  std::unique_ptr<EvictionPolicy> policy_;
  /// Per layer and expert; kAbsent where the record may not be evicted, and in the columns that fill up a row.
  Matrix<float> rates_;
  size_t expert_count_;
  size_t size_ = 0;
  uint32_t current_layer_ = 0;
};

}  // namespace headrace
