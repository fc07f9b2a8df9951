#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace headrace {
namespace {

/// A signal that arrives again and again is somebody's bug, but must not become a loop of ours.
constexpr int kInterruptionsMax = 1000;
/// Bytes of one call of write: what fits its result everywhere.
constexpr size_t kWriteBytesMax = size_t{64} << 20;

Error failed(const char* what, const std::string& path, int error_number) {
  return error(Code::kIo, "%s %s: %s", what, path.c_str(), std::generic_category().message(error_number).c_str());
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// What a link at `path` leads to, so that the link stays and its file is replaced.
Result<std::string> behind_links(const std::string& path) {
  if (path.empty()) return error(Code::kArgument, "a path is empty");
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return path;  // Nothing there; a folder that is missing shows when the file is made.
    return failed("write", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return error(Code::kArgument, "write %s: there is something else than a file", path.c_str());
  }
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return failed("write", path, errno);
  const std::unique_ptr<char, decltype(&std::free)> owner(resolved, &std::free);
  return std::string(resolved);
}

}  // namespace

const WriteCalls kWriteCalls = {
    .create = [](char* path) { return ::mkostemp(path, O_CLOEXEC); },
    .write = ::write,
    .sync = ::fsync,
    .rename = ::rename,
};

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, const WriteCalls& calls) {
  const std::string real_path = TRY(behind_links(path));
  std::string temporary_path = real_path + ".tmp-XXXXXX";
  const int descriptor = calls.create(temporary_path.data());
  if (descriptor < 0) return failed("write", path, errno);
  return std::unique_ptr<AtomicFile>(new AtomicFile(real_path, std::move(temporary_path), descriptor, calls));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  for (int interruptions = 0; !bytes.empty();) {
    const size_t wanted = std::min(bytes.size(), kWriteBytesMax);
    const ssize_t size = calls_.write(descriptor_, bytes.data(), wanted);
    if (size < 0 && errno == EINTR && ++interruptions < kInterruptionsMax) continue;
    if (size < 0) return failed("write", path_, errno);
    if (size == 0) return error(Code::kIo, "write %s: the system takes no more", path_.c_str());
    bytes = bytes.subspan(static_cast<size_t>(size));
    written_bytes_ += static_cast<uint64_t>(size);
    if (written_bytes_ - sent_bytes_ >= kPartBytes) send_to_drive();
  }
  return {};
}

/// Starts the writing of the last part, then waits for the one before it and forgets its pages. Refusals cost memory
/// only.
void AtomicFile::send_to_drive() {
  const auto begin = static_cast<off_t>(sent_bytes_);
  ::sync_file_range(descriptor_, begin, static_cast<off_t>(written_bytes_ - sent_bytes_), SYNC_FILE_RANGE_WRITE);
  if (begin > 0) {
    ::sync_file_range(descriptor_, 0, begin,
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    ::posix_fadvise(descriptor_, 0, begin, POSIX_FADV_DONTNEED);
  }
  sent_bytes_ = written_bytes_;
}

Status AtomicFile::commit() {
  if (calls_.sync(descriptor_) != 0) return failed("write", path_, errno);
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  TRY(close_file());
  if (calls_.rename(temporary_path_.c_str(), path_.c_str()) != 0) return failed("write", path_, errno);
  temporary_path_.clear();
  return sync_folder();
}

/// Some file systems of networks tell of a full drive only here.
Status AtomicFile::close_file() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 && errno != EINTR) return failed("write", path_, errno);
  return {};
}

/// The new name is on the drive, too. Where folders cannot be synchronised the file system has its own ways.
Status AtomicFile::sync_folder() const {
  const std::string folder = folder_of(path_);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const int result = calls_.sync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (result != 0 && error_number != EINVAL && error_number != ENOTSUP) return failed("write", folder, error_number);
  return {};
}

}  // namespace headrace
