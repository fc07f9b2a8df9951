#include "weights/eviction/eviction_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ensure.h"

namespace headrace {
namespace {

// Rates that are compared at once, without a branch between them.
constexpr size_t kGroup = 32;

size_t padded_columns(const RecordGrid& grid) {
  return (grid.expert_count + kGroup - 1) / kGroup * kGroup;
}

bool is_worth_less(const Victim& a, const Victim& b) {
  return a.worth < b.worth;
}

bool any_below(const float* rates, float limit) {
  int found = 0;
  for (size_t i = 0; i < kGroup; ++i) found |= rates[i] < limit ? 1 : 0;
  return found != 0;
}

/// The best victims seen so far, a heap with the one to be displaced on top. Of many candidates for a few places nearly
/// all are turned away by one comparison.
class Selection {
 public:
  explicit Selection(std::span<Victim> room) : room_(room) {}

  bool is_full() const { return count_ == room_.size(); }
  /// Only what is worth less than this can still be a victim. Not of equal worth: before a model has run for a while
  /// most records are worth nothing at all.
  float limit() const { return is_full() ? room_.front().worth : std::numeric_limits<float>::infinity(); }
  void offer(const Victim& victim) {
    if (!is_full()) {
      room_[count_++] = victim;
      std::ranges::push_heap(room_.first(count_), is_worth_less);
    } else if (victim.worth < room_.front().worth) {
      std::ranges::pop_heap(room_, is_worth_less);
      room_.back() = victim;
      std::ranges::push_heap(room_, is_worth_less);
    }
  }
  std::span<const Victim> finish() {
    std::ranges::sort_heap(room_.first(count_), is_worth_less);
    return room_.first(count_);
  }

 private:
  const std::span<Victim> room_;
  size_t count_ = 0;
};

void offer_layer(uint32_t layer, std::span<const float> rates, float weight, Selection& selection) {
  for (size_t begin = 0; begin < rates.size(); begin += kGroup) {
    if (!any_below(rates.data() + begin, selection.limit() / weight)) continue;
    for (size_t i = begin; i < begin + kGroup; ++i) {
      if (rates[i] != std::numeric_limits<float>::infinity()) {
        selection.offer({rates[i] * weight, {layer, static_cast<uint32_t>(i)}});
      }
    }
  }
}

}  // namespace

EvictionTable::EvictionTable(std::unique_ptr<EvictionPolicy> policy, Matrix<float> rates, size_t expert_count)
    : policy_(std::move(policy)), rates_(std::move(rates)), expert_count_(expert_count) {
  for (size_t layer = 0; layer < rates_.rows(); ++layer) std::ranges::fill(rates_.row(layer), kAbsent);
}

size_t EvictionTable::memory_bytes(const EvictionPolicyKind& kind, const RecordGrid& grid) {
  return kind.memory_bytes(grid) + Matrix<float>::memory_bytes(grid.layer_count, padded_columns(grid));
}

Result<EvictionTable> EvictionTable::create(const EvictionPolicyKind& kind, const RecordGrid& grid, Budget& budget) {
  auto policy = TRY(kind.create(grid, budget));
  auto rates = TRY(Matrix<float>::allocate(budget, grid.layer_count, padded_columns(grid), "cache policy"));
  return EvictionTable(std::move(policy), std::move(rates), grid.expert_count);
}

void EvictionTable::visit(const LayerPass& pass) {
  policy_->visit(pass);
  current_layer_ = pass.layer;
  const std::span<float> row = rates_.row(pass.layer);
  std::array<float, kGroup> rates{};
  for (size_t begin = 0; begin < expert_count_; begin += kGroup) {
    const size_t count = std::min(kGroup, expert_count_ - begin);
    policy_->rate(pass.layer, begin, std::span(rates).first(count));
    for (size_t i = 0; i < count; ++i) {
      if (row[begin + i] != kAbsent) row[begin + i] = rates[i];
    }
  }
}

void EvictionTable::add(ExpertId id) {
  float& rate = rates_.row(id.layer)[id.expert];
  if (rate != kAbsent) return;
  policy_->rate(id.layer, id.expert, {&rate, 1});
  ++size_;
}

void EvictionTable::remove(ExpertId id) {
  float& rate = rates_.row(id.layer)[id.expert];
  if (rate == kAbsent) return;
  rate = kAbsent;
  --size_;
}

std::span<const Victim> EvictionTable::take(std::span<Victim> room) {
  ENSURE(!room.empty());
  Selection selection(room);
  const size_t layers = rates_.rows();
  // Backwards from the layer that runs now: those that have just run have the weakest claim under `phase`, and the
  // sooner the limit is low, the fewer are looked at twice.
  for (size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<uint32_t>((current_layer_ + layers - i) % layers);
    offer_layer(layer, rates_.row(layer), policy_->layer_weight(layer), selection);
  }
  const std::span<const Victim> taken = selection.finish();
  for (const Victim& victim : taken) remove(victim.id);
  return taken;
}

}  // namespace headrace
