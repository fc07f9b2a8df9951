#pragma once

#include <cstddef>
#include <vector>

#include "base/budget.h"
#include "base/result.h"
#include "io/read_queue.h"
#include "weights/extent.h"

namespace headrace {

/// The memory of the slots of an expert cache, in chunks of whole slots, so that a part of it can be given back. Each
/// chunk is registered with the queue that reads to it. One thread, the owner of the queue.
class ExpertSlots {
 public:
  /// Slots start at multiples of `alignment` and are multiples of it long.
  struct Geometry {
    size_t slot_bytes = 0;
    size_t alignment = 0;
  };

  /// At most what a slot takes of the budget, however the memory was resized.
  static size_t slot_memory_bytes(const Geometry& geometry);

  /// Queue and budget outlive it.
  ExpertSlots(const Geometry& geometry, ReadQueue& queue, Budget& budget)
      : geometry_(geometry), queue_(queue), budget_(budget) {}
  ~ExpertSlots();
  ExpertSlots(const ExpertSlots&) = delete;
  ExpertSlots& operator=(const ExpertSlots&) = delete;

  size_t count() const { return chunks_.empty() ? 0 : chunks_.back().end(); }
  std::byte* data(size_t slot) const;

  /// How many of the first slots will keep place and content in `resize(count)`. More stay than go: those of a chunk
  /// that is cut are lost with it, less than a chunk.
  size_t kept_count(size_t count) const;
  /// Nothing may be reading to a slot that is not kept. kBudget when memory is refused: when growing, everything is as
  /// it was before; when shrinking, there are kept_count(count) slots.
  Status resize(size_t count);

 private:
  struct Chunk {
    BlockMemory memory;
    size_t first_slot = 0;
    size_t slot_count = 0;
    size_t end() const { return first_slot + slot_count; }
  };
  void drop_last();
  void drop_from(size_t slot);
  Status add_chunk(size_t slot_count);

  const Geometry geometry_;
  ReadQueue& queue_;
  Budget& budget_;
  std::vector<Chunk> chunks_;  // By first slot.
};

}  // namespace headrace
