#include "io/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {
namespace {

/// Interruptions of one read in a row before it counts as failed: a signal storm must not hang the reader.
constexpr int kInterruptionsMax = 1000;

/// Blocks tried where the kernel does not name one, smallest first.
constexpr size_t kBlocksTried[] = {512, 4096};

/// Page size that dropping rounds up to.
constexpr size_t kPageBytes = 4096;

/// Largest unit of the page cache. The kernel keeps a unit that is named in part only, so the one in which a read began
/// is named whole; the one in which it ended is left to the next read, which probably wants it.
constexpr size_t kCacheUnitBytesMax = size_t{2} << 20;

std::string reason_of(int error_number) {
  return std::generic_category().message(error_number);
}

bool is_possible_block(size_t bytes) {
  return bytes > 0 && bytes <= kBlockBytesMax && (bytes & (bytes - 1)) == 0;
}

/// The only state that files share: who sees a descriptor again must be able to tell that the file is another.
uint64_t next_serial() {
  static std::atomic<uint64_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

DiskFile::DiskFile(std::string path, int fd, const SystemCalls& calls)
    : path_(std::move(path)), fd_(fd), serial_(next_serial()), calls_(calls) {}

Result<std::unique_ptr<ReadableFile>> DiskFile::open(const std::string& path, ReadMode mode, const SystemCalls& calls) {
  if (path.find('\0') != std::string::npos)
    return error(Code::kArgument, "open %s: path with a zero byte", path.c_str());
  // Non-blocking, because opening a FIFO would wait for a writer. Regular files do not care.
  const int fd = calls.open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return error(Code::kIo, "open %s: %s", path.c_str(), reason_of(errno).c_str());
  std::unique_ptr<DiskFile> file(new DiskFile(path, fd, calls));
  TRY(file->check_regular());
  if (mode == ReadMode::kDirect) file->start_direct_reads();
  return std::unique_ptr<ReadableFile>(std::move(file));
}

DiskFile::~DiskFile() {
  ::close(fd_);
}

Status DiskFile::check_regular() {
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return error(Code::kIo, "stat %s: %s", path_.c_str(), reason_of(errno).c_str());
  if (!S_ISREG(status.st_mode)) return error(Code::kIo, "open %s: not a regular file", path_.c_str());
  size_bytes_ = static_cast<uint64_t>(status.st_size);
  return {};
}

void DiskFile::start_direct_reads() {
  reading_ = Reading::kBufferedAndDropped;
  const DirectBlockBytes named = calls_.direct_block_bytes(fd_);
  if (named && !is_possible_block(*named)) return;
  if (calls_.set_direct(fd_, true) != 0) return;
  if (named) {
    block_bytes_ = *named;
    reading_ = Reading::kDirect;
    return;
  }
  for (const size_t block_bytes : kBlocksTried) {
    if (!reads_directly_in(block_bytes)) continue;
    block_bytes_ = block_bytes;
    reading_ = Reading::kDirect;
    return;
  }
  calls_.set_direct(fd_, false);
}

bool DiskFile::reads_directly_in(size_t block_bytes) const {
  // Offset by one block from an aligned address, so that a larger alignment of memory shows as a refusal.
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  const std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::aligned_alloc(kBlockBytesMax, kBlockBytesMax)));
  if (!memory) return false;
  return calls_.pread(fd_, memory.get() + block_bytes, block_bytes, 0) >= 0;
}

void DiskFile::give_up_direct_reads() {
  calls_.set_direct(fd_, false);
  reading_ = Reading::kBufferedAndDropped;
}

void DiskFile::drop_pages_of(uint64_t offset, size_t size) const {
  const uint64_t begin = align_down(offset, kCacheUnitBytesMax);
  const uint64_t end = align_up(offset + size, kPageBytes);
  // Refusal costs memory of the page cache, never the read.
  calls_.drop_pages(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
}

Error DiskFile::read_error(uint64_t offset, size_t size, int error_number) const {
  return error(Code::kIo, "read %s @%llu, %zu bytes: %s", path_.c_str(), static_cast<unsigned long long>(offset), size,
               reason_of(error_number).c_str());
}

Result<size_t> DiskFile::finish_read(uint64_t offset, std::span<std::byte> out, int64_t result) {
  const Reading reading = reading_.load(std::memory_order_relaxed);
  if (result >= 0) {
    if (reading == Reading::kBufferedAndDropped) drop_pages_of(offset, static_cast<size_t>(result));
    return static_cast<size_t>(result);
  }
  const auto error_number = static_cast<int>(-result);
  // A refusal repeats itself and is dealt with there, also when another transfer has met it before this one.
  const bool is_passing = error_number == EINTR || error_number == EAGAIN || error_number == ECANCELED;
  if (is_passing || (error_number == EINVAL && reading != Reading::kBuffered)) return read_some(offset, out);
  return read_error(offset, out.size(), error_number);
}

Result<size_t> DiskFile::read_some(uint64_t offset, std::span<std::byte> out) {
  ENSURE(offset % block_bytes_ == 0 && out.size() % block_bytes_ == 0);
  ENSURE(reinterpret_cast<uintptr_t>(out.data()) % block_bytes_ == 0);
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - out.size()) return size_t{0};
  for (int interruptions = 0; interruptions < kInterruptionsMax;) {
    const Reading reading = reading_.load(std::memory_order_relaxed);
    const ssize_t size = calls_.pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (size >= 0) {
      if (reading == Reading::kBufferedAndDropped) drop_pages_of(offset, static_cast<size_t>(size));
      return static_cast<size_t>(size);
    }
    const int error_number = errno;
    if (error_number == EINVAL && reading == Reading::kDirect) {
      give_up_direct_reads();
    } else if (error_number == EINTR) {
      ++interruptions;
    } else {
      return read_error(offset, out.size(), error_number);
    }
  }
  return error(Code::kIo, "read %s @%llu, %zu bytes: interrupted %d times in a row", path_.c_str(),
               static_cast<unsigned long long>(offset), out.size(), kInterruptionsMax);
}

}  // namespace headrace
