#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "formats/format.h"
#include "weights/checkpoint.h"

namespace headrace {

/// One routed expert: `layer` counts the layers with experts from 0, `expert` its experts.
struct ExpertId {
  uint32_t layer = 0;
  uint32_t expert = 0;
  bool operator==(const ExpertId&) const = default;
};

/// One matrix of an expert, the same for all experts of a model.
struct ExpertMatrixShape {
  Format format = Format::kBf16;
  size_t rows = 0;
  size_t cols = 0;
};

/// Where the bytes of every expert lie. Built once at load; read-only afterwards, from any thread.
class ExpertCatalog {
 public:
  /// Names the tensor of matrix `matrix` of an expert: its weights, or its block scales.
  struct TensorNames {
    std::string data;
    std::string scales;  ///< Empty where the format has none.
  };
  using Namer = std::function<TensorNames(ExpertId id, size_t matrix)>;

  struct Layout {
    size_t layer_count = 0;
    size_t expert_count = 0;
    std::vector<ExpertMatrixShape> matrices;
  };

  /// Claims and checks (types, shapes) the tensors of all experts. Keeps a reference to `checkpoint`, which stays where
  /// it is.
  static Result<ExpertCatalog> build(Checkpoint& checkpoint, Budget& budget, Layout layout, const Namer& namer);

  const Layout& layout() const { return layout_; }
  /// Bytes of a slot: the largest record with its extents widened to blocks, in whole pages.
  size_t slot_bytes() const { return slot_bytes_; }
  /// Bytes of one record as stored, without widening.
  size_t record_bytes() const { return record_bytes_; }

  /// A read of whole blocks: `range` of file `file_index` to `slot_offset` in the slot. Areas do not overlap.
  struct PlacedRead {
    uint32_t file_index = 0;
    ByteRange range;
    size_t slot_offset = 0;
  };
  /// A record placed in a slot: its reads, and where each tensor then starts (data and scales of each matrix in turn).
  struct PlacedRecord {
    std::vector<PlacedRead> reads;
    std::vector<size_t> tensor_offsets;
  };
  /// Pure: coalesces the extents of `id` and places each so that its address and its file offset agree modulo the
  /// block.
  /// Extents whose blocks touch or overlap become one read. Its last block may reach past the end of the file.
  void place(ExpertId id, PlacedRecord& record) const;

 private:
  friend class ExpertCache;
  /// A tensor of a record: data or scales of a matrix.
  struct Tensor {
    size_t matrix = 0;
    bool is_scales = false;
    size_t bytes = 0;
  };
  void set_tensors();
  Status claim_record(Checkpoint& checkpoint, ExpertId id, const Namer& namer);
  void measure_slots();
  uint32_t file_index(ExpertId id, size_t tensor) const;
  size_t record_index(ExpertId id) const { return id.layer * layout_.expert_count + id.expert; }

  Layout layout_;
  std::vector<Tensor> tensors_;
  const Checkpoint* checkpoint_ = nullptr;
  size_t slot_alignment_ = AlignedMemory::kAlignment;
  size_t slot_bytes_ = 0;
  size_t record_bytes_ = 0;
  /// Per tensor of every expert: file index in the upper 16 bits, offset in the lower 48.
  Matrix<uint64_t> places_;
};

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
