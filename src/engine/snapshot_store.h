#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "models/model.h"

namespace headrace {

/// What the choice between snapshots looks at.
struct SnapshotPlace {
  size_t position = 0;     ///< Tokens that its state has taken in.
  bool is_marked = false;  ///< The caller wants to come back to it.
};

/// Pure: which of `kept` (ascending positions, at least one) to give up when there is no room for another. What is
/// marked stays while anything else can go, and then the newest two; of the others it is the one whose neighbours are
/// closest to each other for its age, so that those that are left are spaced, wider the older they are.
size_t least_useful_snapshot(std::span<const SnapshotPlace> kept);

/// Copies of the recurrent part of a session's state at earlier tokens, so that it can go back to them: what it keeps
/// of each token need only be forgotten, but a recurrent state cannot be run backwards. With each, the logits of the
/// token that follows, where they were known. Memory is taken when slots are added; keeping and going back take none.
/// Used by the thread that has the engine's turn.
class SnapshotStore {
 public:
  static constexpr size_t kSlotsMax = 64;

  SnapshotStore() = default;
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  /// What a slot takes of the budget.
  static size_t slot_bytes(const SequenceState& state, size_t vocabulary_size);

  size_t slot_count() const { return slots_.size(); }
  /// Slots in use.
  size_t kept_count() const { return kept_count_; }
  /// Adds slots until there are `count`. kBudget leaves what was there before.
  Status grow(Budget& budget, size_t count, size_t slot_bytes);
  /// Gives slots back until there are `count`, the least useful snapshots first.
  void shrink(size_t count);

  /// Keeps the state as it is; in the place of the least useful snapshot when all slots are in use. `logits` are those
  /// of the token that follows, or empty. Nothing happens without slots, for the empty sequence, and when all slots
  /// hold marked snapshots and this is to be none.
  void keep(SequenceState& state, std::span<const float> logits, bool is_marked);
  /// Position of the last snapshot at or before `tokens`; 0: there is none.
  size_t last_position(size_t tokens) const;
  /// Puts the snapshot at `position`, which is one, into `state`, and its logits, if there are any, into `logits`; true
  /// when there were.
  bool restore(size_t position, SequenceState& state, std::span<float> logits) const;
  /// Forgets what lies after `tokens`: it is not of this sequence any more.
  void forget_after(size_t tokens);

 private:
  struct Slot {
    SnapshotPlace place;
    bool has_logits = false;
    AlignedMemory memory;  // The recurrent part, then the logits.
  };

  size_t index_of(size_t position) const;
  void give_up_one();
  bool is_full_of_marked() const;
  Slot& add(SequenceState& state);
  std::span<Slot> kept() { return std::span(slots_).first(kept_count_); }
  std::span<const Slot> kept() const { return std::span(slots_).first(kept_count_); }

  std::vector<Slot> slots_;  // Those in use first, ascending.
  size_t kept_count_ = 0;
};

}  // namespace headrace
