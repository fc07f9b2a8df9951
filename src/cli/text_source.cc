#include "cli/text_source.h"

#include <unistd.h>

#include "cli/exit_status.h"
#include "cli/streams.h"

namespace headrace::cli {

std::string text_from(const Settings& settings, size_t index) {
  const bool is_argument = settings.arguments.size() > index;
  if (is_argument && !settings.file.empty()) {
    throw UsageError("the text is given twice: as an argument and with --file");
  }
  if (is_argument) return settings.arguments[index];
  if (!settings.file.empty()) return read_text(settings.file);
  if (isatty(STDIN_FILENO) == 1) tell("reading the text from the terminal; Ctrl-D ends it");
  return read_text("-");
}

}  // namespace headrace::cli
