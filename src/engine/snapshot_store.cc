#include "engine/snapshot_store.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ensure.h"

namespace headrace {
namespace {

/// Of the newest: those that an edited or repeated turn goes back to.
constexpr size_t kNewestKept = 2;

size_t recurrent_bytes(const SequenceState& state) {
  return static_cast<size_t>(state.part_bytes(StatePart::kRecurrent, 0));
}

/// Copies between a state and its bytes, in one direction or the other.
template <class Copy>
void visit_recurrent(SequenceState& state, std::span<std::byte> stored, Copy&& copy) {
  size_t done = 0;
  const Status status = state.visit(StatePart::kRecurrent, state.position(), [&](std::span<std::byte> piece) -> Status {
    copy(piece, stored.subspan(done, piece.size()));
    done += piece.size();
    return {};
  });
  ENSURE(status && done == recurrent_bytes(state));
}

}  // namespace

size_t least_useful_snapshot(std::span<const SnapshotPlace> kept) {
  ENSURE(!kept.empty());
  const size_t candidates = kept.size() > kNewestKept ? kept.size() - kNewestKept : 1;
  const auto gap_without = [&](size_t i) -> uint64_t {
    const size_t before = i == 0 ? 0 : kept[i - 1].position;
    const size_t after = i + 1 < kept.size() ? kept[i + 1].position : kept[i].position;
    return after - before;
  };
  const auto age = [&](size_t i) -> uint64_t { return kept.back().position - kept[i].position; };
  size_t best = 0;
  for (size_t i = 1; i < candidates; ++i) {
    const bool is_freer = kept[best].is_marked && !kept[i].is_marked;
    const bool is_closer =
        kept[best].is_marked == kept[i].is_marked && gap_without(i) * age(best) < gap_without(best) * age(i);
    if (is_freer || is_closer) best = i;
  }
  if (!kept[best].is_marked) return best;
  for (size_t i = candidates; i < kept.size(); ++i) {
    if (!kept[i].is_marked) return i;
  }
  return best;
}

size_t SnapshotStore::slot_bytes(const SequenceState& state, size_t vocabulary_size) {
  return AlignedMemory::budgeted_bytes(recurrent_bytes(state) + vocabulary_size * sizeof(float));
}

Status SnapshotStore::grow(Budget& budget, size_t count, size_t slot_bytes) {
  ENSURE(count <= kSlotsMax);
  slots_.reserve(kSlotsMax);
  const size_t before = slots_.size();
  while (slots_.size() < count) {
    auto memory = AlignedMemory::allocate(budget, slot_bytes, "snapshots");
    if (!memory) {
      slots_.resize(before);
      return memory.take_error();
    }
    slots_.push_back({.memory = memory.take_value()});
  }
  return {};
}

void SnapshotStore::shrink(size_t count) {
  if (count >= slots_.size()) return;
  while (kept_count_ > count) give_up_one();
  slots_.resize(count);
}

/// Puts the slot of the least useful snapshot behind those in use.
void SnapshotStore::give_up_one() {
  std::array<SnapshotPlace, kSlotsMax> places;
  std::ranges::transform(kept(), places.begin(), [](const Slot& slot) { return slot.place; });
  const size_t index = least_useful_snapshot(std::span(places).first(kept_count_));
  const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(index);
  std::rotate(first, first + 1, slots_.begin() + static_cast<std::ptrdiff_t>(kept_count_));
  --kept_count_;
}

/// Of the first in use at or after `position`.
size_t SnapshotStore::index_of(size_t position) const {
  const auto found =
      std::ranges::lower_bound(kept(), position, {}, [](const Slot& slot) { return slot.place.position; });
  return static_cast<size_t>(found - kept().begin());
}

bool SnapshotStore::is_full_of_marked() const {
  return kept_count_ == slots_.size() &&
         std::ranges::all_of(kept(), [](const Slot& slot) { return slot.place.is_marked; });
}

/// Copies a state that is not there yet.
SnapshotStore::Slot& SnapshotStore::add(SequenceState& state) {
  if (kept_count_ == slots_.size()) give_up_one();
  const auto place = slots_.begin() + static_cast<std::ptrdiff_t>(index_of(state.position()));
  const auto last = slots_.begin() + static_cast<std::ptrdiff_t>(kept_count_);
  std::rotate(place, last, last + 1);
  ++kept_count_;
  visit_recurrent(state, place->memory.bytes(),
                  [](auto piece, auto stored) { std::memcpy(stored.data(), piece.data(), piece.size()); });
  place->place = {state.position(), false};
  place->has_logits = false;
  return *place;
}

void SnapshotStore::keep(SequenceState& state, std::span<const float> logits, bool is_marked) {
  const size_t position = state.position();
  if (slots_.empty() || position == 0) return;
  const size_t found = index_of(position);
  const bool is_there = found < kept_count_ && slots_[found].place.position == position;
  if (!is_there && !is_marked && is_full_of_marked()) return;
  Slot& slot = is_there ? slots_[found] : add(state);
  slot.place.is_marked = slot.place.is_marked || is_marked;
  if (logits.empty()) return;
  std::memcpy(slot.memory.data() + recurrent_bytes(state), logits.data(), logits.size_bytes());
  slot.has_logits = true;
}

size_t SnapshotStore::last_position(size_t tokens) const {
  const size_t index = index_of(tokens + 1);
  return index == 0 ? 0 : slots_[index - 1].place.position;
}

bool SnapshotStore::restore(size_t position, SequenceState& state, std::span<float> logits) const {
  const size_t index = index_of(position);
  ENSURE(index < kept_count_ && slots_[index].place.position == position);
  const Slot& slot = slots_[index];
  visit_recurrent(state, slot.memory.bytes(),
                  [](auto piece, auto stored) { std::memcpy(piece.data(), stored.data(), piece.size()); });
  state.set_position(position);
  if (!slot.has_logits) return false;
  std::memcpy(logits.data(), slot.memory.data() + recurrent_bytes(state), logits.size_bytes());
  return true;
}

void SnapshotStore::forget_after(size_t tokens) {
  kept_count_ = index_of(tokens + 1);
}

}  // namespace headrace
