#pragma once

#include <string>
#include <string_view>

#include "cli/utf8.h"

namespace headrace::cli {

/// Whether a character may reach a terminal, or a message, as it stands: all but controls (newline and tab excepted)
/// and those that turn the direction of what stands around them.
bool is_harmless(char32_t character);

/// Text of a model or a file on its way to a terminal, in pieces cut anywhere: it must not be able to move the cursor,
/// rename the window, or type on the user's behalf. Controls become visible signs (ESC is U+241B), C1 controls, changes
/// of direction and bytes that are no UTF-8 become U+FFFD, carriage returns are dropped. One thread at a time.
class TerminalText {
 public:
  /// What may be shown of the text up to this piece, and was not returned before: an incomplete character waits.
  std::string filter(std::string_view piece);
  /// The rest, at the end of the text; the next piece begins another text.
  std::string finish();

 private:
  std::string shown(const std::u32string& characters);

  Utf8Decoder decoder_;
};

/// The same for a text that is there as a whole.
std::string terminal_text(std::string_view text);

}  // namespace headrace::cli
