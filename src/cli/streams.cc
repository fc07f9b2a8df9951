#include "cli/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/exit_status.h"
#include "cli/progress.h"
#include "cli/terminal_text.h"

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

/// The file that `path` leads to, so that writing replaces it and not a link to it.
std::string behind_links(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, failure);
  return failure || target.empty() ? path : target.string();
}

/// Permissions of a file that this process makes.
mode_t new_file_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

std::string read_all(int descriptor, const std::string& name, size_t bytes_max) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw StreamError(fmt::format("{}: {}", name, reason(errno)));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > bytes_max) throw UsageError(fmt::format("{}: longer than {} bytes", name, bytes_max));
  }
}

}  // namespace

void fill_closed_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest that is free, so this one; for input and output alike, as output to it shall fail.
    if (::open("/dev/null", O_RDONLY) < 0) return;
  }
}

void write_stdout(std::string_view bytes) {
  if (stdout_is_terminal()) erase_progress();
  const int failure = write_all(STDOUT_FILENO, bytes);
  if (failure == EPIPE) throw ReaderGone();
  if (failure != 0) throw StreamError(fmt::format("standard output: {}", reason(failure)));
}

void write_stderr(std::string_view bytes) {
  // Nobody is left to tell when this fails.
  static_cast<void>(write_all(STDERR_FILENO, bytes));
}

void tell(std::string_view text) {
  erase_progress();
  const std::string line = fmt::format("headrace: {}\n", text);
  write_stderr(stderr_is_terminal() ? terminal_text(line) : line);
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

std::string read_text(const std::string& path, size_t bytes_max) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", bytes_max);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw StreamError(fmt::format("{}: {}", path, reason(errno)));
  struct Closer {
    int descriptor;
    ~Closer() { close(descriptor); }
  } const closer{descriptor};
  return read_all(descriptor, path, bytes_max);
}

AtomicFile::AtomicFile(const std::string& path) : path_(behind_links(path)) {
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  // Names such as /dev/stdout may lead to a regular file that somebody else has open.
  const bool is_direct =
      (exists && !S_ISREG(status.st_mode)) || path.starts_with("/dev/") || path.starts_with("/proc/");
  if (is_direct) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  } else {
    temporary_path_ = path_ + ".tmp-XXXXXX";
    descriptor_ = mkostemp(temporary_path_.data(), O_CLOEXEC);
  }
  if (descriptor_ < 0) {
    temporary_path_.clear();
    throw StreamError(fmt::format("{}: {}", path, reason(errno)));
  }
  // A temporary file is private; the file that it becomes is as open as the one before, or as a new one would be.
  if (!is_direct && fchmod(descriptor_, exists ? status.st_mode & 0777 : new_file_mode()) != 0) {
    throw StreamError(fmt::format("{}: {}", path, reason(errno)));
  }
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
