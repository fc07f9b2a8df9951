#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/budget.h"
#include "base/result.h"
#include "weights/expert_id.h"

namespace headrace {

/// The records that a policy keeps statistics of.
struct RecordGrid {
  size_t layer_count = 0;
  size_t expert_count = 0;
};

/// Says what a record in the cache is worth. Hears of every pass over a layer and remembers all records, resident or
/// not: a count that restarts when its record is evicted knows nothing. Decides what is read again, and never a result
/// (P1). One thread.
///
/// A worth has two factors, so that nobody has to rate all records for every layer: the rate of the record, which
/// changes only when its own layer is visited, and the weight of its layer, which may change with every visit.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  /// The layer of `pass` runs now. Called once for each pass, before its victims are chosen.
  virtual void visit(const LayerPass& pass) = 0;
  /// Rates from `begin` on of the records of `layer`, to `rates`. Finite, not negative.
  virtual void rate(uint32_t layer, size_t begin, std::span<float> rates) const = 0;
  /// What rates of `layer` are multiplied with; above 0.
  virtual float layer_weight(uint32_t layer) const = 0;

 protected:
  EvictionPolicy() = default;
};

}  // namespace headrace
