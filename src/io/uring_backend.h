#pragma once

#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "io/place_line.h"
#include "io/read_backend.h"

namespace headrace {

/// The calls of the system that may be refused, so that tests can refuse them. All return what liburing's do: a
/// negative error number on failure.
struct UringCalls {
  int (*init)(unsigned entries, io_uring* ring, io_uring_params* params);
  int (*submit)(io_uring* ring);
  int (*register_files_sparse)(io_uring* ring, unsigned count);
  int (*update_files)(io_uring* ring, unsigned first, const int* descriptors, unsigned count);
  int (*register_buffers_sparse)(io_uring* ring, unsigned count);
  int (*update_buffers)(io_uring* ring, unsigned first, const iovec* buffers, const __u64* tags, unsigned count);
};

/// Transfers by the kernel itself, through io_uring. Files without a handle are read at once when they are issued.
/// Registers files as they come; a file that was closed stays open for the kernel until its place is needed or the back
/// end goes.
class UringBackend final : public ReadBackend {
 public:
  /// kUnsupported with the system's reason where there is no io_uring (old kernels, containers that forbid it).
  static Result<std::unique_ptr<ReadBackend>> create(size_t depth, const Log& log,
                                                     const UringCalls& calls = kUringCalls);
  ~UringBackend() override;
  UringBackend(const UringBackend&) = delete;
  UringBackend& operator=(const UringBackend&) = delete;

  const char* name() const override { return "io_uring"; }
  void issue(size_t place, const Transfer& transfer) override;
  void collect(Sink sink) override;
  void wait(Sink sink) override;
  /// Pins the memory in chunks. Where that is refused (limits of locked memory), says so once and goes on without.
  void register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;

  /// Chunks that are registered now.
  size_t registered_chunk_count() const;

 private:
  static constexpr size_t kFilesMax = 1024;
  static constexpr size_t kChunksMax = 1024;
  static constexpr uint64_t kNoSerial = UINT64_MAX;

  struct Slot {
    Transfer transfer;
    Result<size_t> outcome = size_t{0};  ///< Of a transfer that was over at once.
  };

  UringBackend(size_t depth, const Log& log, const UringCalls& calls)
      : calls_(calls), log_(log), slots_(depth), over_at_once_(depth) {}
  Status start();
  void read_at_once(size_t place);
  void prepare(io_uring_sqe* sqe, const Transfer& transfer, const FileHandle& handle);
  bool submit();
  /// Where the kernel's table has the file; nothing where it has no table.
  std::optional<int> registered_place_of(const FileHandle& handle);
  /// The chunk that holds all of `memory`.
  std::optional<int> chunk_of(std::span<const std::byte> memory) const;
  void register_chunk(std::span<std::byte> chunk);
  bool put_chunk(size_t index, std::span<std::byte> chunk);
  void say_that_memory_is_refused(int result);

  const UringCalls& calls_;
  const Log log_;
  io_uring ring_ = {};
  bool has_ring_ = false;
  /// The kernel took no more transfers: from now on they are read at once.
  bool is_given_up_ = false;
  std::vector<Slot> slots_;
  PlaceLine over_at_once_;

  bool has_file_table_ = false;
  std::array<uint64_t, kFilesMax> file_serials_;
  bool has_chunk_table_ = false;
  bool was_memory_refused_ = false;
  std::array<std::span<std::byte>, kChunksMax> chunks_;
};

}  // namespace headrace
