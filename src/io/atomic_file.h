#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace headrace {

/// The calls of the kernel that writing needs, so that tests can make each of them fail. They return what the call of
/// the same name does, with the reason in errno.
struct WriteCalls {
  /// As mkostemp: replaces the XXXXXX at the end of `path`.
  int (*create)(char* path);
  ssize_t (*write)(int fd, const void* bytes, size_t size);
  int (*sync)(int fd);
  int (*rename)(const char* from, const char* to);
};

/// The real ones.
extern const WriteCalls kWriteCalls;

/// A file that is there as a whole or not at all: it is written under a name of its own beside `path`, and takes that
/// name when everything is on the drive. Until then, and whenever anything fails before, what was at `path` stays, and
/// nothing else remains. Only its owner can read it. Few of its pages are ever in memory: each part goes to the drive
/// before the next one but one. One thread.
class AtomicFile {
 public:
  /// Bytes after which what was written goes to the drive.
  static constexpr size_t kPartBytes = size_t{4} << 20;

  /// kArgument when something that is no regular file is at `path`; kIo with the system's reason. A link to a
  /// file is followed.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path, const WriteCalls& calls = kWriteCalls);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. kIo with the system's reason: a full drive, for one.
  Status write(std::span<const std::byte> bytes);
  /// Everything is on the drive, under `path`, when this returns. If only the folder's entry cannot be sent to the
  /// drive, that is an error, but the new file is already there.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int descriptor, const WriteCalls& calls)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)), descriptor_(descriptor), calls_(calls) {}
  Status close_file();
  Status sync_folder() const;
  void send_to_drive();

  const std::string path_;
  std::string temporary_path_;  // Empty when there is none any more.
  int descriptor_;              // -1 when it is closed.
  const WriteCalls& calls_;
  uint64_t written_bytes_ = 0;
  uint64_t sent_bytes_ = 0;  // Whose writing was started.
};

}  // namespace headrace
