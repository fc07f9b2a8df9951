#include "weights/expert_cache.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/ensure.h"
#include "weights/eviction/eviction_table.h"
#include "weights/expert_check.h"
#include "weights/expert_slots.h"

namespace headrace {
namespace {

/// Reads ahead of a sweep, in records: twice what keeps the drive busy, so that half of them can be started at once.
/// Too many would evict what other layers are going to want.
constexpr size_t kSweepAheadMin = 8;

constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();

enum class SlotState : uint8_t {
  kEmpty,
  kReading,   ///< For an expert that the pass wants.
  kReady,     ///< In the eviction table, unless it is leased or promised.
  kOrphaned,  ///< Its read was given up and has not ended.
};

struct Slot {
  SlotState state = SlotState::kEmpty;
  bool is_promised = false;  ///< Ready, and the pass still wants it.
  uint32_t lease_count = 0;
  ExpertId id;
  uint32_t next_empty = kNoSlot;
};

enum class WantState : uint8_t { kResident, kUnread, kReading, kHandedOut };

/// An expert of the pass.
struct Want {
  uint32_t expert = 0;
  WantState state = WantState::kUnread;
};

/// What is left to do of the announced pass.
struct Pass {
  uint32_t layer = 0;
  ExpertOrder order = ExpertOrder::kAsTheyLand;
  size_t pending_count = 0;
  size_t unread_count = 0;
  size_t first_unread = 0;    ///< No want before it is unread.
  size_t first_resident = 0;  ///< No want before it is resident.
  size_t first_pending = 0;   ///< All wants before it were handed out.
};

RecordGrid grid_of(const ExpertCatalog& catalog) {
  return {catalog.layout().layer_count, catalog.layout().expert_count};
}

ExpertSlots::Geometry geometry_of(const ExpertCatalog& catalog) {
  return {catalog.slot_bytes(), catalog.slot_alignment()};
}

}  // namespace

struct ExpertCache::State {
  State(const ExpertCatalog& used_catalog, ReadQueue& used_queue, Budget& used_budget, EvictionTable table)
      : catalog(used_catalog),
        queue(used_queue),
        budget(used_budget),
        evictable(std::move(table)),
        memory(geometry_of(used_catalog), used_queue, used_budget) {}

  /// Bytes of the lists of a pass.
  static size_t lists_bytes(const ExpertCatalog& catalog);
  void make_lists();
  Status check_slot_count(size_t slot_count) const;
  Status resize(size_t slot_count);
  void set_slot_count(size_t slot_count, size_t kept_count, Reservation list);

  bool is_known(ExpertId id) const {
    return id.layer < catalog.layout().layer_count && id.expert < catalog.layout().expert_count;
  }
  /// The slot that holds the expert, or is being filled with it.
  uint32_t& slot_number(ExpertId id) const { return slot_numbers.row(id.layer)[id.expert]; }
  ExpertId id_of(const Want& want) const { return {pass.layer, want.expert}; }
  void locate(uint32_t slot, ExpertId id, std::span<const std::byte*> tensors);

  void begin(const LayerPass& announced, ExpertOrder order);
  void give_up_pass();
  void wait_for_orphans();
  void reap_orphans();
  void make_empty(uint32_t slot);
  void evict(ExpertId id);
  bool sacrifice_promised();

  size_t reads_ahead_max() const;
  void start_reads();
  size_t make_empty_slots(size_t count);
  void start_read(Want& want, uint32_t want_index);
  Status make_progress();
  Result<size_t> ready_ascending();
  Result<size_t> ready_first();
  Status finish_read(size_t position, Result<ReadResult> result);

  const ExpertCatalog& catalog;
  ReadQueue& queue;
  Budget& budget;
  EvictionTable evictable;  ///< Records that are ready, not leased and not promised.
  ExpertSlots memory;
  Reservation slots_memory, lists_memory;
  std::vector<Slot> slots;
  uint32_t first_empty = kNoSlot;
  size_t empty_count = 0;
  Matrix<uint32_t> slot_numbers;  ///< Per layer and expert; kNoSlot when it has none.

  Pass pass;
  std::vector<Want> wants;
  /// Reads of the pass whose results have not been taken, and the want of each.
  std::vector<ReadId> reading;
  std::vector<uint32_t> reading_wants;
  /// Reads that were given up and cannot be taken back, and the slot of each.
  std::vector<ReadId> orphans;
  std::vector<uint32_t> orphan_slots;
  std::vector<Victim> victims;
  ExpertCatalog::PlacedRecord placed;
  ExpertCacheCounters counters;
};

ExpertCache::ExpertCache(std::unique_ptr<State> state) : state_(std::move(state)) {}

ExpertCache::~ExpertCache() {
  for (const Slot& slot : state_->slots) ENSURE(slot.lease_count == 0);
  state_->give_up_pass();
  state_->wait_for_orphans();
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::create(const ExpertCatalog& catalog, ReadQueue& queue,
                                                         const ExpertCacheOptions& options, Budget& budget) {
  ENSURE(catalog.tensors().size() <= ReadQueue::kPartsMax);
  EvictionTable table = TRY(EvictionTable::create(*options.policy, grid_of(catalog), budget));
  auto state = std::make_unique<State>(catalog, queue, budget, std::move(table));
  const ExpertCatalog::Layout& layout = catalog.layout();
  state->slot_numbers =
      TRY(Matrix<uint32_t>::allocate(budget, layout.layer_count, layout.expert_count, "list of experts"));
  for (size_t layer = 0; layer < layout.layer_count; ++layer) {
    std::ranges::fill(state->slot_numbers.row(layer), kNoSlot);
  }
  state->lists_memory = TRY(budget.reserve(State::lists_bytes(catalog), "list of experts"));
  state->make_lists();
  TRY(state->resize(options.slot_count));
  return std::unique_ptr<ExpertCache>(new ExpertCache(std::move(state)));
}

size_t ExpertCache::fixed_memory_bytes(const ExpertCatalog& catalog, const EvictionPolicyKind& policy) {
  const RecordGrid grid = grid_of(catalog);
  return EvictionTable::memory_bytes(policy, grid) +
         Matrix<uint32_t>::memory_bytes(grid.layer_count, grid.expert_count) + State::lists_bytes(catalog);
}

size_t ExpertCache::slot_memory_bytes(const ExpertCatalog& catalog) {
  // While slots are resized, the old list stands beside the new one.
  return ExpertSlots::slot_memory_bytes(geometry_of(catalog)) + 2 * sizeof(Slot);
}

size_t ExpertCache::State::lists_bytes(const ExpertCatalog& catalog) {
  return catalog.layout().expert_count * sizeof(Want) +
         kReadsMax * (2 * (sizeof(ReadId) + sizeof(uint32_t)) + sizeof(Victim));
}

void ExpertCache::State::make_lists() {
  wants.reserve(catalog.layout().expert_count);
  for (std::vector<ReadId>* reads : {&reading, &orphans}) reads->reserve(kReadsMax);
  for (std::vector<uint32_t>* numbers : {&reading_wants, &orphan_slots}) numbers->reserve(kReadsMax);
  victims.resize(kReadsMax);
}

Status ExpertCache::State::check_slot_count(size_t slot_count) const {
  const ExpertCatalog::Layout& layout = catalog.layout();
  const size_t slots_min = std::min(kSlotsMin, layout.layer_count * layout.expert_count);
  if (slot_count < slots_min) {
    return error(Code::kBudget, "room for %zu experts, but %zu are the least: %zu bytes", slot_count, slots_min,
                 slots_min * catalog.slot_bytes());
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(slot_count, slot_memory_bytes(catalog), &bytes) || slot_count >= kNoSlot) {
    return error(Code::kBudget, "%zu slots of %zu bytes do not fit any memory", slot_count, catalog.slot_bytes());
  }
  return {};
}

Status ExpertCache::resize(size_t slot_count) {
  for (const Slot& slot : state_->slots) ENSURE(slot.lease_count == 0);
  TRY(state_->check_slot_count(slot_count));
  state_->give_up_pass();
  state_->wait_for_orphans();
  return state_->resize(slot_count);
}

Status ExpertCache::State::resize(size_t slot_count) {
  TRY(check_slot_count(slot_count));
  const size_t kept_count = memory.kept_count(slot_count);
  Reservation list = TRY(budget.reserve(slot_count * sizeof(Slot), "list of expert slots"));
  Status status = memory.resize(slot_count);
  if (!status && memory.count() == slots.size()) return status;
  set_slot_count(memory.count(), kept_count, std::move(list));
  return status;
}

void ExpertCache::State::set_slot_count(size_t slot_count, size_t kept_count, Reservation list) {
  for (size_t i = kept_count; i < slots.size(); ++i) {
    if (slots[i].state == SlotState::kReady) evict(slots[i].id);
  }
  std::vector<Slot> resized(slot_count);
  std::copy_n(slots.begin(), std::min(kept_count, slots.size()), resized.begin());
  slots = std::move(resized);
  slots_memory = std::move(list);
  first_empty = kNoSlot;
  empty_count = 0;
  // Backwards, so that the first slots are filled first.
  for (size_t i = slots.size(); i-- > 0;) {
    if (slots[i].state == SlotState::kEmpty) make_empty(static_cast<uint32_t>(i));
  }
}

void ExpertCache::State::make_empty(uint32_t slot) {
  slots[slot] = {.next_empty = first_empty};
  first_empty = slot;
  ++empty_count;
}

/// Takes the record, which nobody holds, out of its slot.
void ExpertCache::State::evict(ExpertId id) {
  evictable.remove(id);
  make_empty(std::exchange(slot_number(id), kNoSlot));
}

void ExpertCache::announce(const LayerPass& pass, ExpertOrder order) {
  state_->give_up_pass();
  state_->begin(pass, order);
  state_->start_reads();
}

void ExpertCache::State::begin(const LayerPass& announced, ExpertOrder order) {
  ENSURE(announced.uses.size() <= catalog.layout().expert_count);
  evictable.visit(announced);
  pass = {.layer = announced.layer, .order = order, .pending_count = announced.uses.size()};
  wants.clear();
  for (const ExpertUse& use : announced.uses) {
    const ExpertId id{announced.layer, use.expert};
    ENSURE(is_known(id) && (wants.empty() || wants.back().expert < use.expert));
    const uint32_t number = slot_number(id);
    wants.push_back({use.expert, number == kNoSlot ? WantState::kUnread : WantState::kResident});
    if (number == kNoSlot) {
      ++pass.unread_count;
    } else {
      slots[number].is_promised = true;
      evictable.remove(id);
    }
  }
}

/// Nothing of the pass is wanted any more.
void ExpertCache::State::give_up_pass() {
  for (const Want& want : wants) {
    if (want.state != WantState::kResident) continue;
    Slot& slot = slots[slot_number(id_of(want))];
    slot.is_promised = false;
    if (slot.lease_count == 0) evictable.add(slot.id);
  }
  for (size_t i = 0; i < reading.size(); ++i) {
    const uint32_t number = std::exchange(slot_number(id_of(wants[reading_wants[i]])), kNoSlot);
    if (queue.cancel(reading[i])) {
      make_empty(number);
      continue;
    }
    slots[number].state = SlotState::kOrphaned;
    orphans.push_back(reading[i]);
    orphan_slots.push_back(number);
  }
  reading.clear();
  reading_wants.clear();
  wants.clear();
  pass = {};
}

void ExpertCache::State::reap_orphans() {
  for (size_t i = orphans.size(); i-- > 0;) {
    if (!queue.has_ended(orphans[i])) continue;
    static_cast<void>(queue.take(orphans[i]));  // Nobody wants it, so its failure fails nothing.
    make_empty(orphan_slots[i]);
    orphans[i] = orphans.back();
    orphan_slots[i] = orphan_slots.back();
    orphans.pop_back();
    orphan_slots.pop_back();
  }
}

void ExpertCache::State::wait_for_orphans() {
  while (!orphans.empty()) {
    queue.wait_any(orphans);
    reap_orphans();
  }
}

size_t ExpertCache::State::reads_ahead_max() const {
  if (pass.order == ExpertOrder::kAsTheyLand) return kReadsMax;
  return std::clamp(2 * queue.depth(), kSweepAheadMin, kReadsMax);
}

/// Starts reads, in ascending order, for as many experts as there are slots to be had; half of what is allowed at once,
/// since each choice of victims goes through all records.
void ExpertCache::State::start_reads() {
  if (pass.unread_count == 0) return;
  reap_orphans();
  const size_t ahead_max = reads_ahead_max();
  const size_t known_count = reading.size() + orphans.size();
  if (reading.size() > ahead_max / 2 || known_count >= ahead_max) return;
  const size_t count = make_empty_slots(std::min(ahead_max - known_count, pass.unread_count));
  for (size_t i = 0; i < count; ++i) {
    while (wants[pass.first_unread].state != WantState::kUnread) ++pass.first_unread;
    start_read(wants[pass.first_unread], static_cast<uint32_t>(pass.first_unread));
  }
}

/// How many slots, up to `count`, are empty after the policy has given up what it can.
size_t ExpertCache::State::make_empty_slots(size_t count) {
  if (empty_count < count && evictable.size() > 0) {
    for (const Victim& victim : evictable.take(std::span(victims).first(count - empty_count))) evict(victim.id);
  }
  return std::min(count, empty_count);
}

void ExpertCache::State::start_read(Want& want, uint32_t want_index) {
  const uint32_t number = first_empty;
  first_empty = slots[number].next_empty;
  --empty_count;
  const ExpertId id = id_of(want);
  catalog.place(id, placed);
  std::array<ReadPart, ReadQueue::kPartsMax> parts;
  size_t part_count = 0;
  for (const ExpertCatalog::PlacedRead& read : placed.reads) {
    ReadableFile& file = catalog.file(read.file_index);
    const std::span<std::byte> out(memory.data(number) + read.slot_offset, static_cast<size_t>(read.range.size));
    const uint64_t end = std::min(read.range.end(), file.size_bytes());
    parts[part_count++] = {&file, read.range.offset, out, static_cast<size_t>(end - read.range.offset)};
  }
  const ReadId read = queue.submit(std::span(parts).first(part_count), ReadPriority::kDemand, ReadPurpose::kExperts);
  slots[number] = {.state = SlotState::kReading, .id = id};
  slot_number(id) = number;
  reading.push_back(read);
  reading_wants.push_back(want_index);
  want.state = WantState::kReading;
  --pass.unread_count;
}

size_t ExpertCache::pending_count() const {
  return state_->pass.pending_count;
}

Result<ExpertLease> ExpertCache::next() {
  State& state = *state_;
  ENSURE(state.pass.pending_count > 0);
  state.start_reads();
  Result<size_t> ready = state.pass.order == ExpertOrder::kAscending ? state.ready_ascending() : state.ready_first();
  if (ready) return hand_out(ready.value());
  state.give_up_pass();
  return ready.take_error();
}

void ExpertCache::pump() {
  if (state_->pass.unread_count > 0) state_->start_reads();
  state_->queue.pump();
}

/// The want that is next in ascending order, once it is there.
Result<size_t> ExpertCache::State::ready_ascending() {
  while (wants[pass.first_pending].state == WantState::kHandedOut) ++pass.first_pending;
  const size_t index = pass.first_pending;
  const Want& want = wants[index];
  if (want.state == WantState::kResident) return index;
  // Reads start in ascending order, so none can be ahead of one that has not started.
  if (want.state == WantState::kUnread) TRY(make_progress());
  ENSURE(want.state == WantState::kReading);
  const auto position = static_cast<size_t>(std::ranges::find(reading_wants, index) - reading_wants.begin());
  TRY(finish_read(position, queue.wait(reading[position])));
  return index;
}

/// A want that is there: the first resident one, else the first to arrive.
Result<size_t> ExpertCache::State::ready_first() {
  const auto is_resident = [](const Want& want) { return want.state == WantState::kResident; };
  const auto resident =
      std::find_if(wants.begin() + static_cast<ptrdiff_t>(pass.first_resident), wants.end(), is_resident);
  pass.first_resident = static_cast<size_t>(resident - wants.begin());
  if (resident != wants.end()) return pass.first_resident;
  if (reading.empty()) TRY(make_progress());
  const size_t position = queue.wait_any(reading);
  const size_t index = reading_wants[position];
  TRY(finish_read(position, queue.take(reading[position])));
  return index;
}

/// No read of the pass is on its way: starts at least one, whatever that takes.
Status ExpertCache::State::make_progress() {
  ENSURE(reading.empty());
  for (;;) {
    start_reads();
    if (!reading.empty()) return {};
    if (!orphans.empty()) {
      queue.wait_any(orphans);
    } else if (!sacrifice_promised()) {
      return error(Code::kBudget, "all %zu slots of the expert cache are in use at once", slots.size());
    }
  }
}

/// Gives up a resident expert that the pass still wants: the last, since it is the last to be missed. False when there
/// is none.
bool ExpertCache::State::sacrifice_promised() {
  for (size_t i = wants.size(); i-- > 0;) {
    Want& want = wants[i];
    if (want.state != WantState::kResident || slots[slot_number(id_of(want))].lease_count > 0) continue;
    evict(id_of(want));
    want.state = WantState::kUnread;
    ++pass.unread_count;
    pass.first_unread = std::min(pass.first_unread, i);
    return true;
  }
  return false;
}

/// Takes a read that has ended off the list and checks its record.
Status ExpertCache::State::finish_read(size_t position, Result<ReadResult> result) {
  const ExpertId id = id_of(wants[reading_wants[position]]);
  reading[position] = reading.back();
  reading.pop_back();
  reading_wants[position] = reading_wants.back();
  reading_wants.pop_back();
  const uint32_t number = slot_number(id);
  Status status;
  if (result) {
    std::array<const std::byte*, ReadQueue::kPartsMax> tensors;
    locate(number, id, tensors);
    status = check_expert(catalog, id, std::span(tensors).first(catalog.tensors().size()));
  } else {
    status = result.take_error();
  }
  if (status) {
    slots[number].state = SlotState::kReady;
    return {};
  }
  evict(id);
  return with_context(status.take_error(), "expert %u of expert layer %u", id.expert, id.layer);
}

/// Where the tensors of a record in a slot start.
void ExpertCache::State::locate(uint32_t slot, ExpertId id, std::span<const std::byte*> tensors) {
  catalog.place(id, placed);
  for (size_t i = 0; i < placed.tensor_offsets.size(); ++i) {
    tensors[i] = memory.data(slot) + placed.tensor_offsets[i];
  }
}

ExpertLease ExpertCache::hand_out(size_t want_index) {
  State& state = *state_;
  Want& want = state.wants[want_index];
  const bool is_hit = want.state == WantState::kResident;
  state.counters.hits += is_hit ? 1 : 0;
  state.counters.misses += is_hit ? 0 : 1;
  want.state = WantState::kHandedOut;
  --state.pass.pending_count;
  const ExpertId id = state.id_of(want);
  const uint32_t number = state.slot_number(id);
  state.slots[number].is_promised = false;
  ++state.slots[number].lease_count;
  ExpertLease lease(*this, number, id);
  state.locate(number, id, lease.tensors_);
  return lease;
}

void ExpertCache::give_back(size_t number) {
  Slot& slot = state_->slots[number];
  ENSURE(slot.lease_count > 0 && slot.state == SlotState::kReady);
  --slot.lease_count;
  if (slot.lease_count == 0 && !slot.is_promised) state_->evictable.add(slot.id);
}

bool ExpertCache::is_resident(ExpertId id) const {
  const uint32_t number = state_->slot_number(id);
  return number != kNoSlot && state_->slots[number].state == SlotState::kReady;
}
size_t ExpertCache::slot_count() const {
  return state_->slots.size();
}
ExpertCacheCounters ExpertCache::counters() const {
  return state_->counters;
}

ExpertLease::ExpertLease(ExpertLease&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)), slot_(other.slot_), id_(other.id_), tensors_(other.tensors_) {}

ExpertLease& ExpertLease::operator=(ExpertLease&& other) noexcept {
  if (this == &other) return *this;
  if (cache_) cache_->give_back(slot_);
  cache_ = std::exchange(other.cache_, nullptr);
  slot_ = other.slot_;
  id_ = other.id_;
  tensors_ = other.tensors_;
  return *this;
}

ExpertLease::~ExpertLease() {
  if (cache_) cache_->give_back(slot_);
}

WeightView ExpertLease::matrix(size_t index) const {
  const ExpertCatalog& catalog = cache_->state_->catalog;
  const ExpertMatrixShape& shape = catalog.layout().matrices[index];
  WeightView view{.format = shape.format, .rows = shape.rows, .cols = shape.cols};
  for (size_t i = 0; i < catalog.tensors().size(); ++i) {
    const ExpertCatalog::Tensor& tensor = catalog.tensors()[i];
    if (tensor.matrix != index) continue;
    if (tensor.is_scales) {
      view.scales = tensors_[i];
      view.scale_row_bytes = tensor.bytes / shape.rows;
    } else {
      view.data = tensors_[i];
      view.row_bytes = tensor.bytes / shape.rows;
    }
  }
  return view;
}

}  // namespace headrace
