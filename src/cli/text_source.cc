#include "cli/text_source.h"

#include <unistd.h>

#include <algorithm>

#include "cli/exit_status.h"
#include "cli/streams.h"

namespace headrace::cli {

size_t prompt_bytes_max(const Settings& settings) {
  // The longest token of the Kimi vocabulary has 256 bytes.
  constexpr size_t kTokenBytesMax = 256;
  constexpr size_t kContextTokensDefault = 4096;
  const size_t tokens = settings.context_tokens > 0 ? settings.context_tokens : kContextTokensDefault;
  return std::min(kTextBytesMax, tokens * kTokenBytesMax);
}

std::string text_from(const Settings& settings, size_t index, size_t bytes_max) {
  const bool is_argument = settings.arguments.size() > index;
  if (is_argument && !settings.file.empty()) {
    throw UsageError("the text is given twice: as an argument and with --file");
  }
  if (is_argument) return settings.arguments[index];
  if (!settings.file.empty()) return read_text(settings.file, bytes_max);
  if (isatty(STDIN_FILENO) == 1) tell("reading the text from the terminal; Ctrl-D ends it");
  return read_text("-", bytes_max);
}

}  // namespace headrace::cli
