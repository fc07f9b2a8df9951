#include "engine/snapshot_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace headrace {
namespace {

using Places = std::vector<SnapshotPlace>;

/// A state of three numbers that stand for the tokens taken in.
class CountingState : public SequenceState {
 public:
  size_t position() const override { return position_; }
  size_t capacity_tokens() const override { return 1000; }
  size_t memory_bytes() const override { return 0; }
  void reset() override { move_to(0); }
  uint64_t part_bytes(StatePart part, size_t) const override { return part == StatePart::kRecurrent ? 12 : 0; }
  Status visit(StatePart part, size_t, PieceVisitor visitor) override {
    if (part == StatePart::kPositional) return {};
    TRY(visitor(std::as_writable_bytes(std::span(numbers_).first(2))));
    return visitor(std::as_writable_bytes(std::span(numbers_).subspan(2)));
  }
  void set_position(size_t tokens) override { position_ = tokens; }
  void copy_from(const SequenceState&) override {}

  void move_to(size_t tokens) {
    position_ = tokens;
    numbers_.assign(3, static_cast<float>(tokens));
  }
  bool is_whole() const { return numbers_ == std::vector<float>(3, static_cast<float>(position_)); }

 private:
  size_t position_ = 0;
  std::vector<float> numbers_ = {0, 0, 0};
};

constexpr size_t kVocabulary = 4;

struct Store {
  Budget budget{1 << 20};
  SnapshotStore snapshots;
  CountingState state;

  explicit Store(size_t slots) {
    EXPECT_TRUE(snapshots.grow(budget, slots, SnapshotStore::slot_bytes(state, kVocabulary)));
  }
  void keep(size_t position, bool with_logits = false, bool is_marked = false) {
    state.move_to(position);
    const std::vector<float> logits(kVocabulary, static_cast<float>(position));
    snapshots.keep(state, with_logits ? std::span(logits) : std::span<const float>(), is_marked);
  }
  /// All positions, from the last one down.
  std::vector<size_t> positions() const {
    std::vector<size_t> positions;
    for (size_t at = snapshots.last_position(SIZE_MAX - 1); at > 0; at = snapshots.last_position(at - 1)) {
      positions.push_back(at);
    }
    return positions;
  }
};

TEST(SnapshotStore, GoesBackToTheLastSnapshotAtOrBeforeAToken) {
  Store store(3);
  for (const size_t position : {10, 20, 30}) store.keep(position);
  EXPECT_EQ(store.snapshots.last_position(9), 0u);
  EXPECT_EQ(store.snapshots.last_position(10), 10u);
  EXPECT_EQ(store.snapshots.last_position(29), 20u);
  EXPECT_EQ(store.snapshots.last_position(1000), 30u);
  std::vector<float> logits(kVocabulary);
  EXPECT_FALSE(store.snapshots.restore(20, store.state, logits));
  EXPECT_EQ(store.state.position(), 20u);
  EXPECT_TRUE(store.state.is_whole());
}

TEST(SnapshotStore, KeepsLogitsThatWereKnownAlsoWhenTheyCameLater) {
  Store store(2);
  store.keep(5, true);
  store.keep(7);
  std::vector<float> logits(kVocabulary);
  EXPECT_TRUE(store.snapshots.restore(5, store.state, logits));
  EXPECT_EQ(logits, std::vector<float>(kVocabulary, 5));
  store.keep(7, true);
  EXPECT_EQ(store.snapshots.kept_count(), 2u);
  EXPECT_TRUE(store.snapshots.restore(7, store.state, logits));
  EXPECT_EQ(logits, std::vector<float>(kVocabulary, 7));
}

TEST(SnapshotStore, NothingIsKeptWithoutSlotsOrOfTheEmptySequence) {
  Store none(0);
  none.keep(10);
  EXPECT_EQ(none.snapshots.last_position(100), 0u);
  Store some(1);
  some.keep(0);
  EXPECT_EQ(some.snapshots.kept_count(), 0u);
}

TEST(SnapshotStore, ForgetsWhatLiesAfterAToken) {
  Store store(4);
  for (const size_t position : {10, 20, 30}) store.keep(position);
  store.snapshots.forget_after(20);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{20, 10}));
  store.snapshots.forget_after(0);
  EXPECT_EQ(store.snapshots.kept_count(), 0u);
}

TEST(SnapshotStore, AMiddleOneFindsItsPlace) {
  Store store(4);
  for (const size_t position : {10, 30, 20}) store.keep(position);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{30, 20, 10}));
}

TEST(SnapshotStore, TheNewestTwoAndSpacedOnesStay) {
  Store store(5);
  for (size_t position = 1; position <= 64; ++position) store.keep(position);
  const std::vector<size_t> kept = store.positions();
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_EQ(kept[0], 64u);
  EXPECT_EQ(kept[1], 63u);
  for (size_t i = 3; i < kept.size(); ++i) EXPECT_GT(kept[i - 1] - kept[i], kept[i - 2] - kept[i - 1]) << kept[i];
  EXPECT_LT(kept.back(), 56u);
  std::vector<float> logits(kVocabulary);
  for (const size_t position : kept) {
    store.snapshots.restore(position, store.state, logits);
    EXPECT_TRUE(store.state.is_whole()) << position;
  }
}

TEST(SnapshotStore, WhatIsMarkedStaysWhileAnythingElseCanGo) {
  Store store(2);
  store.keep(3, false, true);
  for (size_t position = 10; position < 20; ++position) store.keep(position);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{19, 3}));
  store.keep(20, false, true);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{20, 3}));
  store.keep(21, false, true);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{21, 20}));
}

TEST(SnapshotStore, OnlyAMarkedOneTakesThePlaceOfMarkedOnes) {
  Store store(2);
  store.keep(3, false, true);
  store.keep(8, false, true);
  store.keep(10);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{8, 3}));
  store.keep(8, true);
  std::vector<float> logits(kVocabulary);
  EXPECT_TRUE(store.snapshots.restore(8, store.state, logits));
  store.keep(12, false, true);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{12, 8}));
}

TEST(SnapshotStore, TheLeastUsefulOneIsTheOneWithTheClosestNeighboursForItsAge) {
  EXPECT_EQ(least_useful_snapshot(Places{{7}}), 0u);
  EXPECT_EQ(least_useful_snapshot(Places{{7}, {9}}), 0u);
  EXPECT_EQ(least_useful_snapshot(Places{{100}, {101}, {200}, {300}, {301}}), 1u);  // 100/200 against 101/201.
  EXPECT_EQ(least_useful_snapshot(Places{{100}, {200}, {210}, {400}, {401}}), 1u);  // 200/301, 110/201, 200/191.
  EXPECT_EQ(least_useful_snapshot(Places{{100}, {200, true}, {210}, {400}, {401}}), 0u);
  EXPECT_EQ(least_useful_snapshot(Places{{100, true}, {200, true}, {300}, {301}}), 2u);
  EXPECT_EQ(least_useful_snapshot(Places{{100, true}, {200, true}, {300, true}}), 0u);
}

TEST(SnapshotStore, TakesAndGivesBackMemoryWithItsSlots) {
  Store store(3);
  const size_t slot = SnapshotStore::slot_bytes(store.state, kVocabulary);
  EXPECT_EQ(store.budget.used_bytes(), 3 * slot);
  for (const size_t position : {10, 20, 30}) store.keep(position);
  store.snapshots.shrink(1);
  EXPECT_EQ(store.budget.used_bytes(), slot);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{30}));
  store.snapshots.shrink(0);
  EXPECT_EQ(store.budget.used_bytes(), 0u);
}

TEST(SnapshotStore, RefusedMemoryLeavesWhatWasThere) {
  Store store(2);
  store.keep(10);
  ASSERT_TRUE(store.budget.set_limit(store.budget.used_bytes() + SnapshotStore::slot_bytes(store.state, kVocabulary)));
  const Status refused = store.snapshots.grow(store.budget, 4, SnapshotStore::slot_bytes(store.state, kVocabulary));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_EQ(store.snapshots.slot_count(), 2u);
  EXPECT_EQ(store.positions(), (std::vector<size_t>{10}));
}

}  // namespace
}  // namespace headrace
