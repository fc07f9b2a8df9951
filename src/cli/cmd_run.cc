#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/answer_printer.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/model_path.h"
#include "cli/open_model.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

/// Tokens of an answer when -n is not given: enough for an answer, and an end for a model that never stops.
constexpr size_t kTokensDefault = 512;

/// Refuses, before any weight is read, what would need a chat format.
void check_chat_format(const Settings& settings) {
  if (settings.raw || !settings.ids.empty()) return;
  const api::Tokenizer tokenizer(model_folder(settings.arguments[0]));
  const auto format = nlohmann::json::parse(tokenizer.view().json())["chat_format"];
  if (format.is_null()) return;
  throw UsageError(fmt::format(
      "this model was trained on chats ({}), and this version cannot write its chat format yet; use --raw to continue "
      "the text as it stands",
      format.get<std::string>()));
}

std::vector<int32_t> prompt_ids(const Settings& settings, const api::Model& model, const std::string& text) {
  if (!settings.ids.empty()) return settings.ids;
  if (!model.has_tokenizer()) throw UsageError("this model folder has no tokenizer; give the prompt with --ids");
  return model.tokenizer().tokenize(text, api::TextKind::kPlain);
}

api::GenerateOptions generate_options(const Settings& settings) {
  api::GenerateOptions options;
  options.tokens_max = settings.tokens_max.value_or(kTokensDefault);
  options.temperature = settings.temperature;
  options.top_p = settings.top_p;
  options.top_k = settings.top_k;
  if (settings.top_p == 0) options.top_k = 1;  // A vanishing share keeps the best token; the library's 0 keeps all.
  options.min_p = settings.min_p;
  options.seed = settings.seed;
  options.stops = settings.stops;
  return options;
}

const char* finish_name(headrace_finish finish) {
  switch (finish) {
    case HEADRACE_FINISH_STOP:
      return "stop";
    case HEADRACE_FINISH_LENGTH:
      return "length";
    case HEADRACE_FINISH_CANCELLED:
      break;
  }
  return "cancelled";
}

std::string result_json(const api::Generation& answer, const std::string& stats) {
  return fmt::format("{{\"text\":{},\"ids\":{},\"finish\":\"{}\",\"reasoning\":\"\",\"tool_calls\":[],\"stats\":{}}}\n",
                     json_string(answer.text), json_ids(answer.ids), finish_name(answer.finish), stats);
}

}  // namespace

ExitStatus run(const Settings& settings) {
  const bool has_ids = !settings.ids.empty();
  if (has_ids && (settings.arguments.size() > 1 || !settings.file.empty() || settings.raw)) {
    throw UsageError("--ids is the prompt; it stands alone, without PROMPT, --file and --raw");
  }
  check_chat_format(settings);
  const std::string text = has_ids ? std::string() : text_from(settings, 1, prompt_bytes_max(settings));
  api::Model model = open_model(settings, 1);
  const std::vector<int32_t> ids = prompt_ids(settings, model, text);
  if (ids.empty()) throw UsageError("the prompt is empty");
  api::Session session = model.create_session();
  const InterruptTarget interrupt(session.handle());
  api::GenerateOptions options = generate_options(settings);
  PromptProgress progress;
  options.on_progress = progress.callback();
  AnswerPrinter printer{Terminal(STDOUT_FILENO)};
  const api::Generation answer = session.generate(ids, options, [&](const headrace_piece& piece) {
    if (!settings.json) printer.content({piece.text, piece.text_bytes});
    return true;
  });
  const std::string stats = session.stats_json();
  if (settings.json) {
    write_stdout(result_json(answer, stats));
  } else {
    printer.finish();
    tell(statistics_line(stats));
  }
  write_stats_file(settings, stats);
  return answer.finish == HEADRACE_FINISH_CANCELLED ? kCancelled : kDone;
}

}  // namespace headrace::cli::cmd
