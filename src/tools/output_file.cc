#include "tools/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {
namespace {

/// Direct writes of file systems and drives of today start and end at multiples of this.
constexpr size_t kBlockBytes = 4096;

Error failed(const char* what, const std::string& path, int error_number) {
  return error(Code::kIo, "%s %s: %s", what, path.c_str(), std::generic_category().message(error_number).c_str());
}

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path, uint64_t size_bytes, Budget& budget) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return failed("create", path, errno);
  std::unique_ptr<OutputFile> file(new OutputFile(path, descriptor, size_bytes));
  TRY(file->set_up(budget));
  return file;
}

Status OutputFile::set_up(Budget& budget) {
  // Space is taken now: a drive that is too full says so before it was written to, and the file lies in one piece.
  if (size_bytes_ > 0 && ::fallocate(descriptor_, 0, 0, static_cast<off_t>(size_bytes_)) != 0 && errno != EOPNOTSUPP) {
    return failed("make room for", path_, errno);
  }
  is_direct_ = ::fcntl(descriptor_, F_SETFL, O_DIRECT) == 0;
  for (BlockMemory& part : parts_) {
    part = TRY(BlockMemory::allocate(budget, kPartBytes, kBlockBytes, "writing"));
  }
  // The library reports a refused thread by an exception only; caught at once.
  try {
    writer_ = std::jthread([this] { work(); });
  } catch (const std::system_error& failure) {
    return error(Code::kIo, "a thread for writing cannot be started: %s", failure.what());
  }
  return {};
}

OutputFile::~OutputFile() {
  if (writer_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    writer_.join();
  }
  ::close(descriptor_);
}

std::span<std::byte> OutputFile::room() {
  const uint64_t left = size_bytes_ - offset_ - filled_bytes_;
  const std::span<std::byte> part = parts_[filling_].bytes().first(kPartBytes).subspan(filled_bytes_);
  return part.first(static_cast<size_t>(std::min<uint64_t>(part.size(), left)));
}

Status OutputFile::advance(size_t bytes) {
  ENSURE(bytes <= room().size());
  filled_bytes_ += bytes;
  return filled_bytes_ == kPartBytes ? hand_over() : Status();
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> place = room();
    ENSURE(!place.empty());
    const size_t size = std::min(place.size(), bytes.size());
    std::memcpy(place.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    TRY(advance(size));
  }
  return {};
}

/// Gives the filled part to the writer when it is through with the other, which is filled next.
Status OutputFile::hand_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  if (!failure_) return failure_;
  if (filled_bytes_ == 0) return {};
  const std::span<std::byte> part = parts_[filling_].bytes();
  // The last block is written whole and cut off afterwards.
  const size_t whole_bytes = static_cast<size_t>(align_up(filled_bytes_, kBlockBytes));
  std::memset(part.data() + filled_bytes_, 0, whole_bytes - filled_bytes_);
  job_ = Job{part.first(is_direct_ ? whole_bytes : filled_bytes_), offset_};
  offset_ += filled_bytes_;
  filled_bytes_ = 0;
  filling_ = 1 - filling_;
  lock.unlock();
  changed_.notify_all();
  return {};
}

Status OutputFile::finish() {
  TRY(hand_over());
  ENSURE(offset_ == size_bytes_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
    if (!failure_) return failure_;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) != 0) return failed("cut", path_, errno);
  if (::fsync(descriptor_) != 0) return failed("write", path_, errno);
  if (!is_direct_) ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

void OutputFile::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return job_ || is_over_; });
      if (!job_) return;
      job = *job_;
    }
    Status status = write_part(job.part, job.offset);
    {
      const std::lock_guard lock(mutex_);
      if (!status) failure_ = std::move(status);
      job_.reset();
    }
    changed_.notify_all();
  }
}

Status OutputFile::write_part(std::span<const std::byte> part, uint64_t offset) {
  const ByteRange range{offset, part.size()};
  while (!part.empty()) {
    const ssize_t size = ::pwrite(descriptor_, part.data(), part.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EINVAL && is_direct_) {  // The file system takes the flag, but not the write.
      ::fcntl(descriptor_, F_SETFL, 0);
      is_direct_ = false;
      continue;
    }
    if (size < 0) return failed("write", path_, errno);
    if (size == 0) return error(Code::kIo, "write %s: the system takes no more", path_.c_str());
    part = part.subspan(static_cast<size_t>(size));
    offset += static_cast<uint64_t>(size);
  }
  if (!is_direct_) send_to_drive(range.offset, range.size);
  return {};
}

/// Starts the writing of a part, then waits for the one before it and forgets its pages. Refusals cost memory only.
void OutputFile::send_to_drive(uint64_t offset, uint64_t bytes) {
  ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  if (offset < kPartBytes) return;
  const auto before = static_cast<off_t>(offset - kPartBytes);
  ::sync_file_range(descriptor_, before, kPartBytes,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ::posix_fadvise(descriptor_, before, kPartBytes, POSIX_FADV_DONTNEED);
}

}  // namespace headrace
