#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "cli/terminal.h"

namespace headrace::cli {

class EditedRows;
class KeyInput;

/// Messages that a person types, or that stand in a pipe, one line each, from standard input.
///
/// On a terminal: editing keys, a history of this process only (nothing is written), a paste with its newlines as one
/// message, a backslash at the end of a line that continues it on the next, UTF-8. Ctrl-D on an empty line ends; Ctrl-C
/// drops the message, and says that another one on an empty line ends. Controls other than newline and tab are left out
/// of a paste. A paste that would make the message too long is left out, and so is what is typed then; the prompt says
/// so. Prompts go to standard output when it is a terminal, to standard error otherwise, so that answers can go into a
/// pipe. Where the cursor cannot be moved (TERM=dumb), the keys of the terminal itself remain.
///
/// From a pipe or a file: plain lines, byte for byte; no prompt, no escape codes, no continuation.
///
/// Outside of `read` the terminal is as it was found, and so it is when `read` throws or a signal ends the program
/// within. Sets LC_CTYPE of the process. One thread at a time; nobody else may read standard input.
class LineEditor {
 public:
  static constexpr size_t kMessageBytesMax = size_t{1} << 20;

  explicit LineEditor(size_t message_bytes_max = kMessageBytesMax);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Whether a person types.
  bool is_interactive() const;
  /// The next message without its last newline; in valid UTF-8 when it was edited. Nothing at the end. `prompt` is
  /// plain text without a space at its end. UsageError when a line from a pipe is too long, StreamError when reading
  /// fails.
  std::optional<std::string> read(const std::string& prompt);

 private:
  std::optional<std::string> read_edited(const std::string& prompt);
  std::optional<std::string> read_plain(const std::string& prompt);
  void show(std::string_view text) const;

  const size_t message_bytes_max_;
  const Terminal input_;
  const int output_descriptor_;
  const Terminal output_;
  std::unique_ptr<EditedRows> rows_;  // One of the two.
  std::unique_ptr<KeyInput> lines_;
};

}  // namespace headrace::cli
