#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "cli/streams.h"
#include "cli/terminal.h"
#include "cli/terminal_text.h"

namespace headrace::cli {

/// Prints an answer as it is made, each piece at once.
///
/// On a terminal: reasoning dim, a blank line, the answer, calls of tools as dim lines, a newline at the end; text
/// cannot drive the terminal (TerminalText). Elsewhere: the answer alone, byte for byte. One answer, one thread.
class AnswerPrinter {
 public:
  using Writer = std::function<void(std::string_view)>;

  explicit AnswerPrinter(const Terminal& terminal, Writer write = write_stdout);

  void reasoning(std::string_view piece);
  void content(std::string_view piece);
  /// `arguments` is JSON text.
  void tool_call(std::string_view name, std::string_view arguments);
  /// Also after an answer that was cut short. What comes after it belongs to another answer.
  void finish();

 private:
  enum class Part { kNothing, kReasoning, kContent, kToolCall };

  void print(Part part, std::string_view piece);
  void begin(Part part);
  /// Shows text that was filtered already.
  void show(Part part, std::string_view text);
  void end_line(size_t newlines);

  const Terminal terminal_;
  const Writer write_;
  TerminalText filter_;
  Part part_ = Part::kNothing;
  size_t newlines_ = 0;  // At the end of what was shown.
};

}  // namespace headrace::cli
