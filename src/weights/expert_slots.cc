#include "weights/expert_slots.h"

#include <algorithm>
#include <utility>

#include "base/ensure.h"

namespace headrace {

size_t ExpertSlots::slot_memory_bytes(const Geometry& geometry) {
  // A chunk holds at least one slot, and the list of chunks doubles when it grows.
  return BlockMemory::budgeted_bytes(geometry.slot_bytes, geometry.alignment) + 2 * sizeof(Chunk);
}

ExpertSlots::~ExpertSlots() {
  drop_from(0);
}

std::byte* ExpertSlots::data(size_t slot) const {
  const auto after = std::ranges::upper_bound(chunks_, slot, {}, &Chunk::first_slot);
  ENSURE(after != chunks_.begin());
  const Chunk& chunk = *std::prev(after);
  ENSURE(slot < chunk.end());
  return chunk.memory.bytes().data() + (slot - chunk.first_slot) * geometry_.slot_bytes;
}

size_t ExpertSlots::kept_count(size_t count) const {
  size_t kept = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.end() <= count) kept = chunk.end();
  }
  return kept;
}

void ExpertSlots::drop_last() {
  queue_.unregister_memory(chunks_.back().memory.bytes());
  chunks_.pop_back();
}

void ExpertSlots::drop_from(size_t slot) {
  while (!chunks_.empty() && chunks_.back().end() > slot) drop_last();
}

Status ExpertSlots::add_chunk(size_t slot_count) {
  Chunk chunk{.first_slot = count(), .slot_count = slot_count};
  chunk.memory =
      TRY(BlockMemory::allocate(budget_, slot_count * geometry_.slot_bytes, geometry_.alignment, "expert slots"));
  queue_.register_memory(chunk.memory.bytes());
  chunks_.push_back(std::move(chunk));
  return {};
}

Status ExpertSlots::resize(size_t wanted) {
  const size_t kept = kept_count(wanted);
  drop_from(kept);
  const size_t slots_per_chunk = std::max<size_t>(ReadQueue::kRegisteredChunkBytesMax / geometry_.slot_bytes, 1);
  while (count() < wanted) {
    Status status = add_chunk(std::min(slots_per_chunk, wanted - count()));
    if (status) continue;
    drop_from(kept);
    return status;
  }
  return {};
}

}  // namespace headrace
