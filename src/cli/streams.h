#pragma once

#include <string>
#include <string_view>

namespace headrace::cli {

// Standard streams and the files that the user names. Failures are StreamErrors with the system's reason; a standard
// output that nobody reads any more is ReaderGone. Lines of progress (cli/progress.h) are erased before other text.

/// Once, at start: a standard stream that is closed is opened so that reading finds the end and writing fails. A file
/// opened later would be taken for it otherwise.
void fill_closed_streams();

void write_stdout(std::string_view bytes);
/// A line for the person at the terminal: "headrace: <text>" on standard error. Names in it may come from files: they
/// cannot drive a terminal. Never fails.
void tell(std::string_view text);
/// The same as it stands, for progress that overwrites itself.
void write_stderr(std::string_view bytes);
bool stdout_is_terminal();
bool stderr_is_terminal();

/// All of standard input, or of a file; '-' is standard input. UsageError when it is longer than `bytes_max`.
std::string read_text(const std::string& path, size_t bytes_max);

/// A file that appears under its name complete or not at all: written beside it, synced and renamed by `commit`. What
/// is no regular file, such as a pipe or /dev/stdout, is written directly.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  const std::string path_;
  std::string temporary_path_;  // Empty: written directly, or committed.
  int descriptor_ = -1;
};

}  // namespace headrace::cli
