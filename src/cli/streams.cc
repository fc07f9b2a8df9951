#include "cli/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cli/exit_status.h"

namespace headrace::cli {
namespace {

std::string reason(int number) {
  return std::generic_category().message(number);
}

/// Returns 0, or the number of the system's error.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

std::string read_all(int descriptor, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw StreamError(fmt::format("{}: {}", name, reason(errno)));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kTextBytesMax) {
      throw StreamError(fmt::format("{}: longer than {} MiB", name, kTextBytesMax >> 20));
    }
  }
}

}  // namespace

void write_stdout(std::string_view bytes) {
  const int failure = write_all(STDOUT_FILENO, bytes);
  if (failure == EPIPE) throw ReaderGone();
  if (failure != 0) throw StreamError(fmt::format("standard output: {}", reason(failure)));
}

void write_stderr(std::string_view bytes) {
  // Nobody is left to tell when this fails.
  static_cast<void>(write_all(STDERR_FILENO, bytes));
}

void tell(std::string_view text) {
  write_stderr(fmt::format("headrace: {}\n", text));
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

std::string read_text(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input");
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw StreamError(fmt::format("{}: {}", path, reason(errno)));
  struct Closer {
    int descriptor;
    ~Closer() { close(descriptor); }
  } const closer{descriptor};
  return read_all(descriptor, path);
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  struct stat status {};
  const bool is_direct = stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const std::string target = is_direct ? path : fmt::format("{}.tmp-{}", path, getpid());
  const int flags = is_direct ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  descriptor_ = open(target.c_str(), flags, 0666);
  if (descriptor_ < 0) throw StreamError(fmt::format("{}: {}", target, reason(errno)));
  if (!is_direct) temporary_path_ = target;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  const int failure = write_all(descriptor_, bytes);
  if (failure == EPIPE) throw ReaderGone();
  if (failure != 0) throw StreamError(fmt::format("{}: {}", path_, reason(failure)));
}

void AtomicFile::commit() {
  if (temporary_path_.empty()) return;
  if (fsync(descriptor_) != 0) throw StreamError(fmt::format("{}: {}", path_, reason(errno)));
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw StreamError(fmt::format("{}: {}", path_, reason(errno)));
  }
  temporary_path_.clear();
}

}  // namespace headrace::cli
