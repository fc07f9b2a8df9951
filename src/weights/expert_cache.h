#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/budget.h"
#include "base/result.h"
#include "formats/format.h"
#include "io/read_queue.h"
#include "weights/eviction/policies.h"
#include "weights/expert_catalog.h"

namespace headrace {

/// Counters since the cache was made. An expert counts when it is handed out. (Bytes and waiting are the queue's.)
struct ExpertCacheCounters {
  uint64_t hits = 0;  ///< Resident when its pass was announced, and still when it was handed out.
  uint64_t misses = 0;
};

class ExpertCache;

/// Keeps one expert resident while it is used. Move-only; gives the slot back to the cache when destroyed.
class ExpertLease {
 public:
  ExpertLease(ExpertLease&& other) noexcept;
  ExpertLease& operator=(ExpertLease&& other) noexcept;
  ~ExpertLease();

  ExpertId id() const { return id_; }
  /// Matrix `index` of the expert, in the order of the catalog.
  WeightView matrix(size_t index) const;

 private:
  friend class ExpertCache;
  ExpertLease(ExpertCache& cache, size_t slot, ExpertId id) : cache_(&cache), slot_(slot), id_(id) {}
  ExpertCache* cache_ = nullptr;
  size_t slot_ = 0;
  ExpertId id_;
  std::array<const std::byte*, ReadQueue::kPartsMax> tensors_{};  // Their starts, in the order of the catalog.
};

/// In which order a pass wants its experts.
enum class ExpertOrder : uint8_t {
  kAsTheyLand,  ///< Those that are resident first, then each as it arrives.
  kAscending,   ///< By id, with a bounded number of reads ahead.
};

struct ExpertCacheOptions {
  size_t slot_count = 0;
  const EvictionPolicyKind* policy = &default_eviction_policy();
};

/// A bounded cache of expert records in slots of RAM, filled by reads that go on while the caller computes. One thread,
/// the owner of the queue, calls everything; leases may be read from any thread and are dropped on the owner's.
///
/// A pass of some tokens over a layer is announced with all its experts, which `next` then hands out one by one. Reads
/// start at once, into slots that are empty and into those of the records that the policy gives up. What the pass still
/// wants is not given up, unless nothing else is left. A slot whose read was abandoned is used again when that read has
/// ended, and not before.
class ExpertCache {
 public:
  /// Fewest slots a cache works with, where there are as many records; enough for any pass whose leases are returned
  /// one by one.
  static constexpr size_t kSlotsMin = 6;
  /// Most reads of a cache that the queue knows at once, abandoned ones included.
  static constexpr size_t kReadsMax = 64;

  /// At most what a cache takes of the budget: `fixed_memory_bytes` plus `slot_memory_bytes` for each slot, through
  /// every `resize`.
  static size_t fixed_memory_bytes(const ExpertCatalog& catalog,
                                   const EvictionPolicyKind& policy = default_eviction_policy());
  static size_t slot_memory_bytes(const ExpertCatalog& catalog);

  /// kBudget when there are too few slots, or their memory is refused. Catalog and queue outlive the cache and stay
  /// where they are.
  static Result<std::unique_ptr<ExpertCache>> create(const ExpertCatalog& catalog, ReadQueue& queue,
                                                     const ExpertCacheOptions& options, Budget& budget);
  /// Waits for its reads in flight.
  ~ExpertCache();

  /// Begins a pass and starts its reads. What the pass before has not handed out is given up.
  void announce(const LayerPass& pass, ExpertOrder order);
  /// Experts of the pass that have not been handed out.
  size_t pending_count() const;
  /// The next expert of the pass; there is one. kIo or kFormat name the file and the expert, a number that is none is
  /// kFormat; kBudget when every slot is leased. An error ends the pass: its other reads are given up, their slots and
  /// that of the expert are empty, and whoever wants it reads it again.
  Result<ExpertLease> next();

  /// Starts reads that have room now, and lets the queue go on with those that wait. Never blocks; for callers that
  /// compute for long between two experts.
  void pump();

  /// Changes the number of slots; between passes, with no lease out. What the pass before has not handed out is given
  /// up. When shrinking, memory goes back to the system in chunks from the end, at most 256 MiB each, and the records
  /// in it are lost whatever they are worth; so are those of the chunk that is cut. Errors as `create`; a cache that
  /// could not grow is as it was, one that could not shrink may have fewer slots than wanted.
  Status resize(size_t slot_count);

  /// Whether a pass that wants the expert would find it.
  bool is_resident(ExpertId id) const;
  size_t slot_count() const;
  ExpertCacheCounters counters() const;

 private:
  friend class ExpertLease;
  struct State;
  explicit ExpertCache(std::unique_ptr<State> state);
  ExpertLease hand_out(size_t want_index);
  void give_back(size_t slot);

  std::unique_ptr<State> state_;
};

}  // namespace headrace
