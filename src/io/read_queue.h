#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/budget.h"
#include "base/log.h"
#include "base/result.h"
#include "io/read_request.h"

namespace headrace {

class ReadBackend;

/// How a queue reads.
enum class ReadBackendKind : uint8_t {
  kAutomatic,  ///< io_uring where the kernel allows it, threads elsewhere.
  kUring,
  kThreads,
};

struct ReadQueueOptions {
  ReadBackendKind backend = ReadBackendKind::kAutomatic;
  /// Transfers in flight, 1 to kDepthMax. 0: up to kDefaultDepth, until kDefaultInFlightBytes are on their way.
  size_t depth = 0;
  size_t piece_bytes = 0;  ///< Longest transfer, kPieceBytesMin to kPieceBytesMax; 0: the default.
};

/// Counters since the queue was made. Measured, never estimated.
struct ReadQueueCounters {
  std::array<uint64_t, kReadPurposeCount> bytes_read{};  ///< Delivered by the system, whole blocks.
  uint64_t bytes_speculative = 0;         ///< Of these: by reads that were speculative when they were issued.
  uint64_t bytes_speculative_wasted = 0;  ///< ... and were cancelled or failed before anybody wanted them.
  double busy_s = 0;  ///< With at least one transfer in flight: issued, and its end not yet seen by the owner.
  double wait_s = 0;  ///< Inside wait, wait_any and drain.
  size_t in_flight_bytes_peak = 0;
  uint64_t orphaned_count = 0;
};

/// Reads in flight on one drive: demand before trunk before speculation, deep enough to keep the drive busy and no
/// deeper. One thread at a time, the owner, calls everything; transfers go on while it computes, and what waits for
/// room is issued whenever the owner calls in (`pump` for that alone).
///
/// A read has one or more parts. It is `waiting` until its first transfer is issued, then `in flight`, then `ended`.
/// An ended read is forgotten by the call that takes its result.
class ReadQueue {
 public:
  static constexpr size_t kDepthMax = 256;
  static constexpr size_t kPartsMax = 8;
  /// Reads known at once: submitted, and neither taken nor cancelled for good.
  static constexpr size_t kReadsMax = 512;
  static constexpr size_t kPieceBytesMin = size_t{64} << 10;
  static constexpr size_t kPieceBytesMax = size_t{1} << 30;
  // Two or three long transfers keep a drive busy, short ones must be more; what is deeper delays the next demand
  // (docs/notes/2026-11-29-read-queue.md).
  static constexpr size_t kDefaultDepth = 8;
  static constexpr size_t kDefaultInFlightBytes = size_t{24} << 20;
  static constexpr size_t kDefaultPieceBytes = size_t{8} << 20;
  /// Speculative reads are issued in pieces of at most this, one at a time.
  static constexpr size_t kSpeculativePieceBytes = size_t{2} << 20;
  /// Memory is registered in chunks of at most this, so that shrinking can unregister them.
  static constexpr size_t kRegisteredChunkBytesMax = size_t{256} << 20;

  /// An explicit back end that does not work here is kUnsupported, with the system's reason; a depth or a piece
  /// out of range is kArgument. Says once, through `log`, when registering memory is refused. Memory of the queue comes
  /// from `budget`.
  static Result<std::unique_ptr<ReadQueue>> create(const ReadQueueOptions& options, Budget& budget, const Log& log);
  /// The same over a back end of the caller's, which does up to `options.depth` transfers at once; for tests.
  static Result<std::unique_ptr<ReadQueue>> create_over(std::unique_ptr<ReadBackend> backend,
                                                        const ReadQueueOptions& options, Budget& budget);
  /// What `create` takes of the budget at most.
  static size_t memory_bytes(const ReadQueueOptions& options);
  /// Waits for every transfer in flight; nothing is written to anybody's memory afterwards.
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  /// Queues a read of 1 to kPartsMax parts; memory and files stay until it has ended. Bounded: kReadsMax reads are
  /// known at once, more are a bug of the caller.
  ReadId submit(std::span<const ReadPart> parts, ReadPriority priority, ReadPurpose purpose);
  /// Raises the priority of a read that has not ended.
  void promote(ReadId id, ReadPriority priority);
  /// Gives a read up. True: nothing is in flight, the memory is the caller's at once, and the id is forgotten. False:
  /// a transfer cannot be taken back: the memory stays the queue's until `has_ended(id)`, which the caller then
  /// confirms by `take` (its outcome does not matter: kCancelled). Nothing more of the read is issued.
  bool cancel(ReadId id);
  /// Whether the read has ended, by what is known without blocking (collects what has arrived).
  bool has_ended(ReadId id);
  /// Result of an ended read. kIo and kFormat as `read_at_least`, with file and offset.
  Result<ReadResult> take(ReadId id);
  /// Promotes to demand, blocks until the read has ended, and takes its result.
  Result<ReadResult> wait(ReadId id);
  /// Blocks until one of `ids` has ended, and gives its place among them (the first, if several have). Not empty.
  size_t wait_any(std::span<const ReadId> ids);
  /// Collects what has arrived and issues what there is room for. Never blocks.
  void pump();
  /// Blocks until nothing is in flight and nothing waits, orphans included.
  void drain();

  /// Tells the back end of memory that many reads go to, so that the kernel need not map it for each. Optional: reads
  /// to other memory work as well. Unregister before the memory is freed, with no read to it unfinished.
  void register_memory(std::span<std::byte> memory);
  void unregister_memory(std::span<std::byte> memory);

  /// "io_uring" or "threads".
  const char* backend_name() const;
  size_t depth() const;
  ReadQueueCounters counters() const;

 private:
  struct State;
  explicit ReadQueue(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace
