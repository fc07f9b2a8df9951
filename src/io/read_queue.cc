#include "io/read_queue.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/ensure.h"
#include "io/alignment.h"
#include "io/read_backend.h"
#include "io/read_progress.h"
#include "io/read_table.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Adds the time of a scope to a sum.
class TimeAdded {
 public:
  explicit TimeAdded(double& sum_s) : sum_s_(sum_s) {}
  ~TimeAdded() { sum_s_ += seconds_since(begin_); }
  TimeAdded(const TimeAdded&) = delete;
  TimeAdded& operator=(const TimeAdded&) = delete;

 private:
  double& sum_s_;
  const Clock::time_point begin_ = Clock::now();
};

/// The options with the defaults put in.
ReadQueueOptions filled(ReadQueueOptions options) {
  if (options.depth == 0) options.depth = ReadQueue::kDefaultDepth;
  if (options.piece_bytes == 0) options.piece_bytes = ReadQueue::kDefaultPieceBytes;
  return options;
}

/// What may be in flight: a depth that was asked for counts transfers alone.
size_t choose_in_flight_bytes_max(const ReadQueueOptions& asked) {
  return asked.depth == 0 ? ReadQueue::kDefaultInFlightBytes : SIZE_MAX;
}

Status check(const ReadQueueOptions& options) {
  if (options.depth > ReadQueue::kDepthMax) {
    return error(Code::kArgument, "%zu reads in flight; at most %zu", options.depth, ReadQueue::kDepthMax);
  }
  const size_t piece = options.piece_bytes;
  if (piece < ReadQueue::kPieceBytesMin || piece > ReadQueue::kPieceBytesMax || piece % kBlockBytesMax != 0) {
    return error(Code::kArgument, "reads in pieces of %zu bytes; a multiple of %zu from %zu to %zu", piece,
                 kBlockBytesMax, ReadQueue::kPieceBytesMin, ReadQueue::kPieceBytesMax);
  }
  return {};
}

void check_part(const ReadPart& part) {
  ENSURE(part.file && part.needed_bytes <= part.out.size());
  const size_t block_bytes = part.file->block_bytes();
  ENSURE(block_bytes <= kBlockBytesMax && part.offset % block_bytes == 0 && part.out.size() % block_bytes == 0);
  ENSURE(reinterpret_cast<uintptr_t>(part.out.data()) % block_bytes == 0);
}

}  // namespace

struct ReadQueue::State {
  /// A piece of a read on its way.
  struct Flight {
    QueuedRead* read = nullptr;
    ReadProgress progress;
    bool is_speculative = false;  ///< As it was when it was issued.
  };

  State(std::unique_ptr<ReadBackend> used_backend, const ReadQueueOptions& options, size_t in_flight_max,
        Reservation reserved)
      : backend(std::move(used_backend)),
        piece_bytes(options.piece_bytes),
        in_flight_bytes_max(in_flight_max),
        reservation(std::move(reserved)),
        flights(options.depth),
        free_places(options.depth) {
    for (size_t i = 0; i < free_places.size(); ++i) free_places[i] = free_places.size() - 1 - i;
  }

  size_t in_flight_count() const { return flights.size() - free_places.size(); }

  /// Issues what there is room for.
  void issue_waiting();
  /// The read that goes next; null when none may.
  QueuedRead* next_read();
  void issue_piece(QueuedRead& read);
  void issue_attempt(size_t place);

  void collect();
  /// Blocks until something has arrived; at least one transfer is in flight.
  void wait_for_arrival();
  void pump();
  void arrive(size_t place, Result<size_t> outcome);
  void count_bytes(const Flight& flight, uint64_t bytes);
  void fail(QueuedRead& read, Error error);
  void land(size_t place);
  void promote(QueuedRead& read, ReadPriority priority);
  Result<ReadResult> take(QueuedRead& read);

  std::unique_ptr<ReadBackend> backend;
  const size_t piece_bytes;
  const size_t in_flight_bytes_max;  ///< Nothing more is issued once so much is in flight.
  const Reservation reservation;
  ReadTable table;
  std::vector<Flight> flights;  ///< By place of the back end.
  std::vector<size_t> free_places;
  size_t speculative_in_flight = 0;
  size_t in_flight_bytes = 0;
  Clock::time_point busy_since;
  ReadQueueCounters counters;
};

QueuedRead* ReadQueue::State::next_read() {
  if (QueuedRead* read = table.first(ReadPriority::kDemand)) return read;
  if (QueuedRead* read = table.first(ReadPriority::kTrunk)) return read;
  return speculative_in_flight == 0 ? table.first(ReadPriority::kSpeculative) : nullptr;
}

void ReadQueue::State::issue_waiting() {
  while (!free_places.empty() && in_flight_bytes < in_flight_bytes_max) {
    QueuedRead* read = next_read();
    if (!read) return;
    issue_piece(*read);
  }
}

void ReadQueue::State::issue_piece(QueuedRead& read) {
  const bool is_speculative = read.priority == ReadPriority::kSpeculative;
  const ReadPart piece = read.take_piece(is_speculative ? std::min(piece_bytes, kSpeculativePieceBytes) : piece_bytes);
  if (!read.has_more()) table.leave_line(read);
  if (in_flight_count() == 0) busy_since = Clock::now();
  const size_t place = free_places.back();
  free_places.pop_back();
  flights[place] = {&read, ReadProgress(piece), is_speculative};
  ++read.transfers_in_flight;
  speculative_in_flight += is_speculative ? 1 : 0;
  in_flight_bytes += piece.out.size();
  counters.in_flight_bytes_peak = std::max(counters.in_flight_bytes_peak, in_flight_bytes);
  issue_attempt(place);
}

void ReadQueue::State::issue_attempt(size_t place) {
  const ReadProgress& progress = flights[place].progress;
  const ReadProgress::Attempt attempt = progress.next();
  backend->issue(place, {progress.part().file, attempt.offset, attempt.out});
}

void ReadQueue::State::arrive(size_t place, Result<size_t> outcome) {
  Flight& flight = flights[place];
  QueuedRead& read = *flight.read;
  if (!outcome) {
    fail(read, outcome.take_error());
  } else {
    const uint64_t before = flight.progress.outcome().transferred_bytes;
    Status status = flight.progress.advance(outcome.value());
    count_bytes(flight, flight.progress.outcome().transferred_bytes - before);
    if (!status) fail(read, status.take_error());
  }
  // Nobody wants the rest of a read that failed or was given up.
  if (!flight.progress.is_complete() && !read.error && !read.is_cancelled) return issue_attempt(place);
  land(place);
}

void ReadQueue::State::count_bytes(const Flight& flight, uint64_t bytes) {
  QueuedRead& read = *flight.read;
  read.transferred_bytes += bytes;
  counters.bytes_read[static_cast<size_t>(read.purpose)] += bytes;
  if (!flight.is_speculative) return;
  read.speculative_bytes += bytes;
  counters.bytes_speculative += bytes;
}

void ReadQueue::State::fail(QueuedRead& read, Error error) {
  table.leave_line(read);
  if (!read.error) read.error = std::move(error);
}

void ReadQueue::State::land(size_t place) {
  Flight& flight = flights[place];
  QueuedRead& read = *flight.read;
  --read.transfers_in_flight;
  speculative_in_flight -= flight.is_speculative ? 1 : 0;
  in_flight_bytes -= flight.progress.part().out.size();
  free_places.push_back(place);
  flight.read = nullptr;
  if (in_flight_count() == 0) counters.busy_s += seconds_since(busy_since);
  const bool is_in_vain = read.is_cancelled || read.error;
  if (read.has_ended() && is_in_vain && read.priority == ReadPriority::kSpeculative) {
    counters.bytes_speculative_wasted += std::exchange(read.speculative_bytes, 0);
  }
}

void ReadQueue::State::collect() {
  backend->collect([this](size_t place, Result<size_t> outcome) { arrive(place, std::move(outcome)); });
}

void ReadQueue::State::wait_for_arrival() {
  ENSURE(in_flight_count() > 0);
  backend->wait([this](size_t place, Result<size_t> outcome) { arrive(place, std::move(outcome)); });
}

void ReadQueue::State::pump() {
  collect();
  issue_waiting();
}

void ReadQueue::State::promote(QueuedRead& read, ReadPriority priority) {
  if (priority >= read.priority || read.is_cancelled) return;
  const bool was_in_line = read.is_in_line;
  table.leave_line(read);
  read.priority = priority;
  if (was_in_line) table.enter_line(read);
}

Result<ReadResult> ReadQueue::State::take(QueuedRead& read) {
  ENSURE(read.has_ended());
  const ReadResult result{read.transferred_bytes};
  const bool was_cancelled = read.is_cancelled;
  std::optional<Error> error = std::move(read.error);
  table.remove(read);
  if (error) return std::move(*error);
  if (was_cancelled) return headrace::error(Code::kCancelled, "the read was given up");
  return result;
}

Result<std::unique_ptr<ReadQueue>> ReadQueue::create(const ReadQueueOptions& options, Budget& budget, const Log& log) {
  const ReadQueueOptions used = filled(options);
  TRY(check(used));
  Reservation reservation = TRY(budget.reserve(memory_bytes(used), "read queue"));
  std::unique_ptr<ReadBackend> backend = TRY(make_read_backend(used.backend, used.depth, log));
  auto state =
      std::make_unique<State>(std::move(backend), used, choose_in_flight_bytes_max(options), std::move(reservation));
  return std::unique_ptr<ReadQueue>(new ReadQueue(std::move(state)));
}

Result<std::unique_ptr<ReadQueue>> ReadQueue::create_over(std::unique_ptr<ReadBackend> backend,
                                                          const ReadQueueOptions& options, Budget& budget) {
  const ReadQueueOptions used = filled(options);
  TRY(check(used));
  Reservation reservation = TRY(budget.reserve(memory_bytes(used), "read queue"));
  auto state =
      std::make_unique<State>(std::move(backend), used, choose_in_flight_bytes_max(options), std::move(reservation));
  return std::unique_ptr<ReadQueue>(new ReadQueue(std::move(state)));
}

size_t ReadQueue::memory_bytes(const ReadQueueOptions& options) {
  return ReadTable::memory_bytes() + filled(options).depth * (sizeof(State::Flight) + kBytesPerTransfer);
}

ReadQueue::ReadQueue(std::unique_ptr<State> state) : state_(std::move(state)) {}

ReadQueue::~ReadQueue() {
  // Nothing more is issued: who waits for a short read's rest is gone.
  for (State::Flight& flight : state_->flights) {
    if (flight.read) flight.read->is_cancelled = true;
  }
  while (state_->in_flight_count() > 0) state_->wait_for_arrival();
}

ReadId ReadQueue::submit(std::span<const ReadPart> parts, ReadPriority priority, ReadPurpose purpose) {
  ENSURE(!parts.empty() && parts.size() <= kPartsMax);
  QueuedRead& read = state_->table.add();
  std::ranges::copy(parts, read.parts.begin());
  read.part_count = parts.size();
  read.priority = priority;
  read.purpose = purpose;
  for (const ReadPart& part : parts) {
    check_part(part);
    Status status = ReadProgress(part).check_size();
    if (!status && !read.error) read.error = status.take_error();
  }
  read.skip_finished_parts();
  if (read.has_more()) state_->table.enter_line(read);
  const ReadId id = read.id;
  state_->pump();
  return id;
}

void ReadQueue::promote(ReadId id, ReadPriority priority) {
  state_->promote(state_->table.find(id), priority);
  state_->pump();
}

bool ReadQueue::cancel(ReadId id) {
  State& state = *state_;
  QueuedRead& read = state.table.find(id);
  state.collect();
  state.table.leave_line(read);
  const bool is_first = !std::exchange(read.is_cancelled, true);
  if (read.transfers_in_flight > 0) {
    state.counters.orphaned_count += is_first ? 1 : 0;
    state.issue_waiting();
    return false;
  }
  if (read.priority == ReadPriority::kSpeculative) state.counters.bytes_speculative_wasted += read.speculative_bytes;
  state.table.remove(read);
  state.issue_waiting();
  return true;
}

bool ReadQueue::has_ended(ReadId id) {
  const QueuedRead& read = state_->table.find(id);
  state_->pump();
  return read.has_ended();
}

Result<ReadResult> ReadQueue::take(ReadId id) {
  return state_->take(state_->table.find(id));
}

Result<ReadResult> ReadQueue::wait(ReadId id) {
  const TimeAdded time(state_->counters.wait_s);
  QueuedRead& read = state_->table.find(id);
  state_->promote(read, ReadPriority::kDemand);
  state_->pump();
  while (!read.has_ended()) {
    state_->wait_for_arrival();
    state_->issue_waiting();
  }
  return state_->take(read);
}

size_t ReadQueue::wait_any(std::span<const ReadId> ids) {
  ENSURE(!ids.empty());
  const TimeAdded time(state_->counters.wait_s);
  state_->pump();
  for (;;) {
    const auto ended = std::ranges::find_if(ids, [&](ReadId id) { return state_->table.find(id).has_ended(); });
    if (ended != ids.end()) return static_cast<size_t>(ended - ids.begin());
    state_->wait_for_arrival();
    state_->issue_waiting();
  }
}

void ReadQueue::pump() {
  state_->pump();
}

void ReadQueue::drain() {
  const TimeAdded time(state_->counters.wait_s);
  state_->pump();
  while (state_->in_flight_count() > 0) {
    state_->wait_for_arrival();
    state_->issue_waiting();
  }
}

void ReadQueue::register_memory(std::span<std::byte> memory) {
  state_->backend->register_memory(memory);
}

void ReadQueue::unregister_memory(std::span<std::byte> memory) {
  state_->backend->unregister_memory(memory);
}

const char* ReadQueue::backend_name() const {
  return state_->backend->name();
}

size_t ReadQueue::depth() const {
  return state_->flights.size();
}

ReadQueueCounters ReadQueue::counters() const {
  ReadQueueCounters counters = state_->counters;
  if (state_->in_flight_count() > 0) counters.busy_s += seconds_since(state_->busy_since);
  return counters;
}

}  // namespace headrace
