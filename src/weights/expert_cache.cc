#include "weights/expert_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "base/ensure.h"
#include "weights/elements.h"
#include "weights/extent.h"

namespace headrace {
namespace {

enum class SlotState : uint8_t { kEmpty, kReading, kReady };

constexpr uint32_t kNotAnnounced = std::numeric_limits<uint32_t>::max();

struct Slot {
  SlotState state = SlotState::kEmpty;
  ExpertId id;
  uint32_t lease_count = 0;
  /// Place in the announcement, until the expert is acquired.
  uint32_t announced = kNotAnnounced;
  uint64_t last_use = 0;
};

/// Whether `a` is the better one to give up of two slots that nobody holds.
bool better_victim(const Slot& a, const Slot& b) {
  if (a.state == SlotState::kEmpty || b.state == SlotState::kEmpty) {
    return a.state == SlotState::kEmpty && b.state != SlotState::kEmpty;
  }
  const bool a_announced = a.announced != kNotAnnounced;
  const bool b_announced = b.announced != kNotAnnounced;
  if (a_announced != b_announced) return b_announced;
  // Of those that are wanted again soon, the last one hurts least.
  if (a_announced) return a.announced > b.announced;
  return a.last_use < b.last_use;
}

/// An E8M0 scale that is not a number.
constexpr int kNanScale = 255;

}  // namespace

struct ExpertCache::State {
  const Checkpoint& checkpoint;
  const ExpertCatalog& catalog;

  BlockMemory memory;
  Reservation slots_memory;
  std::vector<Slot> slots;
  Matrix<uint64_t> tensor_offsets;  ///< Per slot.
  Matrix<uint32_t> slot_numbers;    ///< Per layer and expert: its slot + 1, 0 when it has none.

  ExpertCatalog::PlacedRecord placed;
  ExpertCacheCounters counters;
  uint64_t use_count = 0;

  std::byte* slot_data(size_t slot) const { return memory.bytes().data() + slot * catalog.slot_bytes(); }
  bool is_known(ExpertId id) const {
    return id.layer < catalog.layout().layer_count && id.expert < catalog.layout().expert_count;
  }
  uint32_t& number_of(ExpertId id) const { return slot_numbers.row(id.layer)[id.expert]; }

  Result<size_t> find_victim() const;
  Status fill(size_t slot, ExpertId id);
  Status read_record(size_t slot, ExpertId id);
  Status check_record(size_t slot) const;
  Status check_tensor(size_t slot, size_t tensor) const;
  WeightView view(size_t slot, size_t matrix) const;
};

ExpertCache::ExpertCache(std::unique_ptr<State> state) : state_(std::move(state)) {}

ExpertCache::~ExpertCache() {
  for (const Slot& slot : state_->slots) ENSURE(slot.lease_count == 0);
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::create(const Checkpoint& checkpoint, const ExpertCatalog& catalog,
                                                         size_t slot_count, Budget& budget) {
  const ExpertCatalog::Layout& layout = catalog.layout();
  const size_t slots_min = std::min(kSlotsMin, layout.layer_count * layout.expert_count);
  if (slot_count < slots_min) {
    return error(Code::kBudget, "room for %zu experts, but %zu are the least: %zu bytes", slot_count, slots_min,
                 slots_min * catalog.slot_bytes());
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(slot_count, catalog.slot_bytes(), &bytes)) {
    return error(Code::kBudget, "%zu slots of %zu bytes do not fit any memory", slot_count, catalog.slot_bytes());
  }
  auto state = std::unique_ptr<State>(new State{.checkpoint = checkpoint, .catalog = catalog});
  state->memory = TRY(BlockMemory::allocate(budget, bytes, catalog.slot_alignment_, "expert slots"));
  state->slots_memory = TRY(budget.reserve(slot_count * sizeof(Slot), "list of expert slots"));
  state->slots.resize(slot_count);
  state->tensor_offsets =
      TRY(Matrix<uint64_t>::allocate(budget, slot_count, catalog.tensors_.size(), "list of expert slots"));
  state->slot_numbers =
      TRY(Matrix<uint32_t>::allocate(budget, layout.layer_count, layout.expert_count, "list of experts"));
  return std::unique_ptr<ExpertCache>(new ExpertCache(std::move(state)));
}

size_t ExpertCache::fixed_memory_bytes(const ExpertCatalog& catalog) {
  const ExpertCatalog::Layout& layout = catalog.layout();
  return BlockMemory::budgeted_bytes(0, catalog.slot_alignment_) + AlignedMemory::kAlignment +
         Matrix<uint32_t>::memory_bytes(layout.layer_count, layout.expert_count);
}

size_t ExpertCache::slot_memory_bytes(const ExpertCatalog& catalog) {
  return catalog.slot_bytes() + sizeof(Slot) + Matrix<uint64_t>::row_bytes(catalog.tensors_.size());
}

void ExpertCache::announce(std::span<const ExpertId> ids) {
  for (Slot& slot : state_->slots) slot.announced = kNotAnnounced;
  for (size_t i = 0; i < ids.size(); ++i) {
    ENSURE(state_->is_known(ids[i]));
    const uint32_t number = state_->number_of(ids[i]);
    if (number > 0) state_->slots[number - 1].announced = static_cast<uint32_t>(i);
  }
}

Result<ExpertLease> ExpertCache::acquire(ExpertId id) {
  State& state = *state_;
  ENSURE(state.is_known(id));
  uint32_t& number = state.number_of(id);
  if (number > 0) {
    ++state.counters.hits;
  } else {
    const size_t victim = TRY(state.find_victim());
    ++state.counters.misses;
    TRY(state.fill(victim, id));
    number = static_cast<uint32_t>(victim + 1);
  }
  Slot& slot = state.slots[number - 1];
  slot.announced = kNotAnnounced;
  slot.last_use = ++state.use_count;
  ++slot.lease_count;
  return ExpertLease(this, number - 1);
}

Result<size_t> ExpertCache::State::find_victim() const {
  const Slot* best = nullptr;
  for (const Slot& slot : slots) {
    if (slot.lease_count == 0 && (!best || better_victim(slot, *best))) best = &slot;
  }
  if (best) return static_cast<size_t>(best - slots.data());
  return error(Code::kBudget, "all %zu slots of the expert cache are in use at once", slots.size());
}

Status ExpertCache::State::fill(size_t index, ExpertId id) {
  Slot& slot = slots[index];
  if (slot.state == SlotState::kReady) number_of(slot.id) = 0;
  slot = {.state = SlotState::kReading, .id = id};
  const auto start = std::chrono::steady_clock::now();
  Status status = read_record(index, id);
  counters.wait_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (status) status = check_record(index);
  if (!status) {
    slot = {};
    return with_context(status.take_error(), "expert %u of expert layer %u", id.expert, id.layer);
  }
  slot.state = SlotState::kReady;
  return {};
}

Status ExpertCache::State::read_record(size_t index, ExpertId id) {
  catalog.place(id, placed);
  for (const ExpertCatalog::PlacedRead& read : placed.reads) {
    ReadableFile& file = checkpoint.file(read.file_index);
    const std::span<std::byte> out(slot_data(index) + read.slot_offset, static_cast<size_t>(read.range.size));
    const uint64_t end = std::min(read.range.end(), file.size_bytes());
    const ReadOutcome outcome =
        TRY(read_at_least(file, read.range.offset, out, static_cast<size_t>(end - read.range.offset)));
    counters.bytes_read += outcome.transferred_bytes;
  }
  std::ranges::copy(placed.tensor_offsets, tensor_offsets.row(index).begin());
  return {};
}

/// A checkpoint has no checksums: numbers that are none are the damage that can be seen (P4).
Status ExpertCache::State::check_record(size_t index) const {
  for (size_t i = 0; i < catalog.tensors_.size(); ++i) {
    Status status = check_tensor(index, i);
    if (status) continue;
    const ReadableFile& file = checkpoint.file(catalog.file_index(slots[index].id, i));
    return with_context(status.take_error(), "%s: %s of matrix %zu", file.path().c_str(),
                        catalog.tensors_[i].is_scales ? "scales" : "weights", catalog.tensors_[i].matrix);
  }
  return {};
}

Status ExpertCache::State::check_tensor(size_t index, size_t tensor_index) const {
  const ExpertCatalog::Tensor& tensor = catalog.tensors_[tensor_index];
  const ExpertMatrixShape& shape = catalog.layout().matrices[tensor.matrix];
  const std::byte* data = slot_data(index) + tensor_offsets.row(index)[tensor_index];
  if (tensor.is_scales) {
    const void* found = std::memchr(data, kNanScale, tensor.bytes);
    if (!found) return {};
    return error(Code::kFormat, "scale %td is not a number", static_cast<const std::byte*>(found) - data);
  }
  // With block scales every code of the weights is a number.
  if (format_scale_row_bytes(shape.format, shape.cols) > 0) return {};
  return check_finite(shape.format, data, shape.rows * shape.cols);
}

WeightView ExpertCache::State::view(size_t slot, size_t matrix) const {
  const ExpertMatrixShape& shape = catalog.layout().matrices[matrix];
  WeightView view{.format = shape.format, .rows = shape.rows, .cols = shape.cols};
  for (size_t i = 0; i < catalog.tensors_.size(); ++i) {
    const ExpertCatalog::Tensor& tensor = catalog.tensors_[i];
    if (tensor.matrix != matrix) continue;
    const std::byte* data = slot_data(slot) + tensor_offsets.row(slot)[i];
    if (tensor.is_scales) {
      view.scales = data;
      view.scale_row_bytes = tensor.bytes / shape.rows;
    } else {
      view.data = data;
      view.row_bytes = tensor.bytes / shape.rows;
    }
  }
  return view;
}

void ExpertCache::give_back(size_t slot) {
  ENSURE(state_->slots[slot].lease_count > 0);
  --state_->slots[slot].lease_count;
}

bool ExpertCache::is_resident(ExpertId id) const {
  return state_->number_of(id) > 0;
}
size_t ExpertCache::slot_count() const {
  return state_->slots.size();
}
ExpertCacheCounters ExpertCache::counters() const {
  return state_->counters;
}

ExpertLease::ExpertLease(ExpertLease&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)), slot_(other.slot_) {}

ExpertLease& ExpertLease::operator=(ExpertLease&& other) noexcept {
  if (this == &other) return *this;
  if (cache_) cache_->give_back(slot_);
  cache_ = std::exchange(other.cache_, nullptr);
  slot_ = other.slot_;
  return *this;
}

ExpertLease::~ExpertLease() {
  if (cache_) cache_->give_back(slot_);
}

WeightView ExpertLease::matrix(size_t index) const {
  return cache_->state_->view(slot_, index);
}

}  // namespace headrace
