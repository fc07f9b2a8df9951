#include "cli/answer_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headrace::cli {

AnswerPrinter::AnswerPrinter(const Terminal& terminal, Writer write) : terminal_(terminal), write_(std::move(write)) {}

void AnswerPrinter::reasoning(std::string_view piece) {
  if (terminal_.is_terminal()) print(Part::kReasoning, piece);
}

void AnswerPrinter::content(std::string_view piece) {
  print(Part::kContent, piece);
}

void AnswerPrinter::tool_call(std::string_view name, std::string_view arguments) {
  if (!terminal_.is_terminal()) return;
  begin(Part::kToolCall);
  show(Part::kToolCall, terminal_text(fmt::format("[calls {} {}]", name, arguments)));
  end_line(1);
}

void AnswerPrinter::finish() {
  begin(Part::kNothing);
}

void AnswerPrinter::print(Part part, std::string_view piece) {
  // Models begin an answer with newlines of their own.
  if (part_ != part && part_ != Part::kNothing && terminal_.is_terminal()) {
    piece.remove_prefix(std::min(piece.find_first_not_of('\n'), piece.size()));
  }
  if (piece.empty()) return;
  begin(part);
  show(part, terminal_.is_terminal() ? filter_.filter(piece) : piece);
}

void AnswerPrinter::begin(Part part) {
  if (part_ == part) return;
  const Part before = std::exchange(part_, part);
  if (!terminal_.is_terminal() || before == Part::kNothing) return;
  show(before, filter_.finish());
  const bool has_blank_line = part != Part::kNothing && part != Part::kToolCall && before != Part::kToolCall;
  end_line(has_blank_line ? 2 : 1);
}

void AnswerPrinter::show(Part part, std::string_view text) {
  if (text.empty()) return;
  const size_t last = text.find_last_not_of('\n');
  newlines_ = last == std::string_view::npos ? newlines_ + text.size() : text.size() - last - 1;
  write_(part == Part::kContent ? std::string(text) : terminal_.dim(text));
}

void AnswerPrinter::end_line(size_t newlines) {
  if (newlines_ < newlines) show(Part::kContent, std::string(newlines - newlines_, '\n'));
}

}  // namespace headrace::cli
