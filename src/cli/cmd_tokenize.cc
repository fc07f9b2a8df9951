#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/json_text.h"
#include "cli/model_path.h"
#include "cli/streams.h"
#include "cli/text_source.h"
#include "cli/values.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {

ExitStatus tokenize(const Settings& settings) {
  const api::Tokenizer tokenizer(model_folder(settings.arguments[0]));
  const std::string text = text_from(settings, 1, kTextBytesMax);
  const auto kind = settings.markup ? api::TextKind::kMarkup : api::TextKind::kPlain;
  const std::string ids = json_ids(tokenizer.view().tokenize(text, kind));
  write_stdout(settings.json ? fmt::format("{{\"ids\":{}}}\n", ids) : ids.substr(1, ids.size() - 2) + "\n");
  return kDone;
}

ExitStatus detokenize(const Settings& settings) {
  const api::Tokenizer tokenizer(model_folder(settings.arguments[0]));
  const std::vector<int32_t> ids = token_ids(text_from(settings, 1, kTextBytesMax));
  const std::string text = tokenizer.view().detokenize(ids);
  if (settings.json) {
    write_stdout(fmt::format("{{\"text\":{}}}\n", json_string(text)));
    return kDone;
  }
  write_stdout(text);
  if (stdout_is_terminal()) write_stdout("\n");
  return kDone;
}

}  // namespace headrace::cli::cmd
