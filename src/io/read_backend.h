#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/result.h"
#include "io/file.h"
#include "io/read_queue.h"

namespace headrace {

/// One attempt to read bytes of a file. Whole blocks, as `ReadableFile::read_some` wants them.
struct Transfer {
  ReadableFile* file = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> out;
};

/// Does the transfers of a ReadQueue, so many at once, each named by a place below `depth`. Called by the owner of the
/// queue only. Destroyed with nothing in flight.
class ReadBackend {
 public:
  /// Gets the place of a transfer that is over, and what `read_some` would have returned. May issue the next.
  using Sink = FunctionRef<void(size_t place, Result<size_t> outcome)>;

  virtual ~ReadBackend() = default;

  virtual const char* name() const = 0;
  /// Starts a transfer at a place where none is in flight. Does not wait for the drive, if the file has a handle or
  /// others do the waiting.
  virtual void issue(size_t place, const Transfer& transfer) = 0;
  /// Hands over everything that has arrived. Never blocks.
  virtual void collect(Sink sink) = 0;
  /// The same, but blocks until there is something. At least one transfer is in flight.
  virtual void wait(Sink sink) = 0;

  /// Memory that many transfers go to. At most a hint.
  virtual void register_memory(std::span<std::byte> /*memory*/) {}
  virtual void unregister_memory(std::span<std::byte> /*memory*/) {}
};

/// What a back end costs at most for each transfer in flight: stacks of a thread, or entries of the ring and its
/// tables.
inline constexpr size_t kBytesPerTransfer = 32 * 1024;

/// What io_uring needs of the system.
struct UringCalls;
extern const UringCalls kUringCalls;

/// The back end of a kind, for `depth` transfers at once. An explicit kind that does not work here is kUnsupported,
/// with the system's reason.
Result<std::unique_ptr<ReadBackend>> make_read_backend(ReadBackendKind kind, size_t depth, const Log& log,
                                                       const UringCalls& calls = kUringCalls);

}  // namespace headrace
