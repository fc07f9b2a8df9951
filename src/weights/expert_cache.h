#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/expert_catalog.h"

namespace headrace {

/// Counters since the cache was made.
struct ExpertCacheCounters {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t bytes_read = 0;  ///< From the drive, widening included.
  double wait_s = 0;        ///< Spent waiting for reads.
};

class ExpertCache;

/// Keeps one expert resident while it is used. Move-only; gives the slot back to the cache when destroyed.
class ExpertLease {
 public:
  ExpertLease(ExpertLease&& other) noexcept;
  ExpertLease& operator=(ExpertLease&& other) noexcept;
  ~ExpertLease();

  /// Matrix `index` of the expert, in the order of the catalog.
  WeightView matrix(size_t index) const;

 private:
  friend class ExpertCache;
  ExpertLease(ExpertCache* cache, size_t slot) : cache_(cache), slot_(slot) {}
  ExpertCache* cache_ = nullptr;
  size_t slot_ = 0;
};

/// A bounded cache of expert records in slots of RAM. One thread acquires; leases may be read from any thread and are
/// dropped on the acquiring one. At most slot_count() leases live at once.
class ExpertCache {
 public:
  /// Fewest slots a cache works with, where there are as many records.
  static constexpr size_t kSlotsMin = 6;

  /// At most what a cache takes of the budget: `fixed_memory_bytes` plus `slot_memory_bytes` for each slot.
  static size_t fixed_memory_bytes(const ExpertCatalog& catalog);
  static size_t slot_memory_bytes(const ExpertCatalog& catalog);

  /// kBudget when there are too few slots, or their memory is refused. The catalog stays where it is.
  static Result<std::unique_ptr<ExpertCache>> create(const Checkpoint& checkpoint, const ExpertCatalog& catalog,
                                                     size_t slot_count, Budget& budget);
  ~ExpertCache();

  /// Says which experts the next `acquire` calls want, in that order, so that reads can start early and none of them is
  /// evicted for another. `ids` ascend and belong to one layer; replaces the announcement before it.
  void announce(std::span<const ExpertId> ids);

  /// The expert, read if it is not resident. kIo or kFormat name the file and the expert; a scale that is not a number
  /// is kFormat. A failed read leaves an empty slot. kBudget when every slot is leased.
  Result<ExpertLease> acquire(ExpertId id);

  bool is_resident(ExpertId id) const;
  size_t slot_count() const;
  ExpertCacheCounters counters() const;

 private:
  friend class ExpertLease;
  struct State;
  explicit ExpertCache(std::unique_ptr<State> state);
  void give_back(size_t slot);

  std::unique_ptr<State> state_;
};

}  // namespace headrace
