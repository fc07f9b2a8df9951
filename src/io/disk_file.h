#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "io/file.h"
#include "io/system_calls.h"

namespace headrace {

/// A regular file of a file system, open for reading. `open_file` is the way to get one; this header lets tests choose
/// the system calls.
class DiskFile final : public ReadableFile {
 public:
  static Result<std::unique_ptr<ReadableFile>> open(const std::string& path, ReadMode mode,
                                                    const SystemCalls& calls = kSystemCalls);
  ~DiskFile() override;
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  /// Stays what it was when the file was opened, also when direct reads turn out to be refused later.
  size_t block_bytes() const override { return block_bytes_; }
  bool is_direct() const override { return reading_.load(std::memory_order_relaxed) == Reading::kDirect; }

  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override;
  std::optional<FileHandle> handle() const override { return FileHandle{fd_, serial_}; }
  Result<size_t> finish_read(uint64_t offset, std::span<std::byte> out, int64_t result) override;

 private:
  enum class Reading : uint8_t { kBuffered, kDirect, kBufferedAndDropped };

  DiskFile(std::string path, int fd, const SystemCalls& calls);
  Status check_regular();
  void start_direct_reads();
  bool reads_directly_in(size_t block_bytes) const;
  void give_up_direct_reads();
  Error read_error(uint64_t offset, size_t size, int error_number) const;
  void drop_pages_of(uint64_t offset, size_t size) const;

  const std::string path_;
  const int fd_;
  const uint64_t serial_;
  const SystemCalls& calls_;
  uint64_t size_bytes_ = 0;
  size_t block_bytes_ = 1;
  /// Readers may see a change late: the kernel then refuses once more, and they change it again.
  std::atomic<Reading> reading_ = Reading::kBuffered;
};

}  // namespace headrace
