#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/budget.h"
#include "base/result.h"
#include "weights/extent.h"

namespace headrace {

/// A large new file that is written once from its first byte to its last, at the speed of the drive: past the page
/// cache where the file system allows it, by a thread of its own while the next bytes are made. Where it does not
/// allow it, few pages are ever dirty: each part is sent to the drive at once and dropped when it is there. One thread.
class OutputFile {
 public:
  /// Bytes of one write.
  static constexpr size_t kPartBytes = 8 << 20;

  /// Creates `path`, which must not be there, with room for `size_bytes`. kIo with the system's reason.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path, uint64_t size_bytes, Budget& budget);
  /// Waits for the write at work. A file that was not finished stays as it is.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Room for the next bytes, at least one; `advance` says how many were put there. Not past the size of the file.
  std::span<std::byte> room();
  Status advance(size_t bytes);
  Status write(std::span<const std::byte> bytes);
  /// Everything is on the drive when this returns. All bytes must be there.
  Status finish();

 private:
  OutputFile(std::string path, int descriptor, uint64_t size_bytes)
      : path_(std::move(path)), descriptor_(descriptor), size_bytes_(size_bytes) {}
  Status set_up(Budget& budget);
  Status hand_over();
  void work();
  Status write_part(std::span<const std::byte> part, uint64_t offset);
  void send_to_drive(uint64_t offset, uint64_t bytes);

  const std::string path_;
  const int descriptor_;
  const uint64_t size_bytes_;
  bool is_direct_ = false;
  BlockMemory parts_[2];
  size_t filling_ = 0;       // The part that the caller fills; the other is being written, or free.
  size_t filled_bytes_ = 0;  // Of it.
  uint64_t offset_ = 0;      // Of its first byte in the file.

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex: what the writer has to do, and how it fared.
  struct Job {
    std::span<const std::byte> part;
    uint64_t offset = 0;
  };
  std::optional<Job> job_;
  Status failure_;
  bool is_over_ = false;
  std::jthread writer_;  // Last: joined before all else goes.
};

}  // namespace headrace
