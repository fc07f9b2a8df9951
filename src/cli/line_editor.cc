#include "cli/line_editor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/edited_rows.h"
#include "cli/key_input.h"
#include "cli/streams.h"

namespace headrace::cli {
namespace {

const std::string kContinuationPrompt = "...";

int prompt_descriptor() {
  return isatty(STDOUT_FILENO) == 1 || isatty(STDERR_FILENO) != 1 ? STDOUT_FILENO : STDERR_FILENO;
}

/// Cuts off a backslash at the end, which asks for another line.
bool take_continuation(std::string& line) {
  if (!line.ends_with('\\')) return false;
  line.back() = '\n';
  return true;
}

}  // namespace

LineEditor::LineEditor(size_t message_bytes_max)
    : message_bytes_max_(message_bytes_max),
      input_(STDIN_FILENO),
      output_descriptor_(prompt_descriptor()),
      output_(output_descriptor_) {
  if (input_.has_cursor() && output_.has_cursor()) {
    rows_ = std::make_unique<EditedRows>(STDIN_FILENO, output_descriptor_);
  } else {
    lines_ = std::make_unique<KeyInput>(STDIN_FILENO);
  }
}

LineEditor::~LineEditor() = default;

bool LineEditor::is_interactive() const {
  return input_.is_terminal() && output_.is_terminal();
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  return rows_ ? read_edited(prompt) : read_plain(prompt);
}

std::optional<std::string> LineEditor::read_edited(const std::string& prompt) {
  std::string message;
  bool is_first_row = true;
  bool was_interrupted = false;
  for (;;) {
    const size_t room_bytes = message_bytes_max_ - message.size();
    EditedRows::Row row = rows_->read(is_first_row ? prompt : kContinuationPrompt, room_bytes);
    if (row.end == EditedRows::End::kInterrupted) {
      if (was_interrupted && is_first_row && row.text.empty()) return std::nullopt;
      show(output_.dim("(Ctrl-C again or Ctrl-D ends)") + "\n");
      message.clear();
      is_first_row = was_interrupted = true;
      continue;
    }
    if (row.end == EditedRows::End::kHungUp || (row.end == EditedRows::End::kEnd && is_first_row)) return std::nullopt;
    was_interrupted = false;
    is_first_row = false;
    message += row.text;
    // The history keeps a message that is too long, so that it can be made shorter.
    const bool is_too_long = message.size() > message_bytes_max_;
    if (!is_too_long && row.end == EditedRows::End::kLine && take_continuation(message)) continue;
    rows_->remember(message);
    if (!is_too_long) return message;
    show(output_.red(fmt::format("longer than {} bytes; not sent", message_bytes_max_)) + "\n");
    message.clear();
    is_first_row = true;
  }
}

std::optional<std::string> LineEditor::read_plain(const std::string& prompt) {
  if (!is_interactive()) return lines_->line(message_bytes_max_);
  std::string message;
  for (;;) {
    show((message.empty() ? prompt : kContinuationPrompt) + " ");
    std::optional<std::string> line = lines_->line(message_bytes_max_ - message.size());
    if (!line) show("\n");
    if (!line && message.empty()) return std::nullopt;
    message += line.value_or("");
    if (!line || message.size() >= message_bytes_max_ || !take_continuation(message)) return message;
  }
}

void LineEditor::show(std::string_view text) const {
  output_descriptor_ == STDOUT_FILENO ? write_stdout(text) : write_stderr(text);
}

}  // namespace headrace::cli
