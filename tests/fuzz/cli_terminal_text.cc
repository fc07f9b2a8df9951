// libFuzzer target: text of a model on its way to a terminal, in pieces.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ensure.h"
#include "cli/answer_printer.h"
#include "cli/terminal_text.h"
#include "cli/utf8.h"

namespace {

using namespace headrace;

/// However the text is cut, what is shown is the same, is UTF-8, and holds nothing that drives a terminal.
void filter(std::string_view text) {
  const std::string expected = cli::terminal_text(text);
  cli::TerminalText filter;
  std::string shown;
  for (size_t offset = 0; offset < text.size();) {
    const size_t count = 1 + static_cast<unsigned char>(text[offset]) % 3;
    shown += filter.filter(text.substr(offset, count));
    offset += count;
  }
  shown += filter.finish();
  ENSURE(shown == expected);
  ENSURE(cli::utf8_of(cli::wide_of(shown)) == shown);
  for (const wchar_t character : cli::wide_of(shown)) ENSURE(cli::is_harmless(static_cast<char32_t>(character)));
  ENSURE(cli::terminal_text(shown) == shown);
}

/// In a pipe the answer is the bytes of its content, whatever else the model does.
void print(std::string_view text) {
  std::string written;
  std::string content;
  cli::AnswerPrinter printer(cli::Terminal(), [&](std::string_view piece) { written += piece; });
  for (size_t offset = 0; offset < text.size(); offset += 4) {
    const std::string_view piece = text.substr(offset, 4);
    switch (static_cast<unsigned char>(piece[0]) % 4) {
      case 0:
        printer.reasoning(piece);
        break;
      case 1:
        printer.tool_call(piece, text);
        break;
      default:
        printer.content(piece);
        content += piece;
        break;
    }
  }
  printer.finish();
  ENSURE(written == content);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  filter(text);
  print(text);
  return 0;
}
