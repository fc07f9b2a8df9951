#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/answer_printer.h"
#include "cli/chat_request.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/json_text.h"
#include "cli/open_model.h"
#include "cli/reply.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

/// Tokens of a continuation when -n is not given: text need not have an end.
constexpr size_t kTokensDefault = 512;

/// How the answer of either kind went.
struct Answer {
  std::vector<int32_t> ids;
  headrace_finish finish = HEADRACE_FINISH_STOP;
  std::string text;
  std::string reasoning;
  std::string tool_calls = "[]";
  size_t tokens_max = 0;  ///< That were allowed; 0: as many as the context holds.
};

bool is_continuation(const Settings& settings) {
  return settings.raw || !settings.ids.empty();
}

void check_use(const Settings& settings) {
  if (!settings.ids.empty() && (settings.arguments.size() > 1 || !settings.file.empty() || settings.raw)) {
    throw UsageError("--ids is the prompt; it stands alone, without PROMPT, --file and --raw");
  }
  for (const char* option : {"system", "think"}) {
    if (is_continuation(settings) && settings.has(option)) {
      throw UsageError(fmt::format("--{} is for conversations; it has no meaning with --raw and --ids", option));
    }
  }
}

/// The format in which the prompt is a user's turn; nothing when it is a text to continue.
std::optional<ChatFormatInfo> chat_format(const Settings& settings) {
  if (is_continuation(settings)) return std::nullopt;
  ChatFormatInfo format = chat_format_info(settings);
  if (!format.name.empty()) {
    check_thinking(settings.think, format);
    return format;
  }
  if (settings.has("system") || settings.has("think")) {
    throw UsageError("this model has no chat format: --system and --think have no meaning for it");
  }
  return std::nullopt;
}

Answer continue_text(const Settings& settings, api::Session& session, const std::vector<int32_t>& ids,
                     AnswerPrinter* printer) {
  api::GenerateOptions options = generate_options(settings, nullptr);
  if (!settings.tokens_max) options.tokens_max = kTokensDefault;
  api::Generation generation = print_generation(session, ids, options, printer);
  return {.ids = std::move(generation.ids),
          .finish = generation.finish,
          .text = std::move(generation.text),
          .tokens_max = options.tokens_max};
}

Answer answer_turn(const Settings& settings, const ChatFormatInfo& format, api::Session& session,
                   const std::string& text, AnswerPrinter* printer) {
  ChatRequest request;
  request.set_system(settings.system);
  request.set_thinking(settings.think);
  request.add_user(text);
  const api::GenerateOptions options = generate_options(settings, &format);
  api::Reply reply = print_reply(session, request.json(), options, printer);
  const auto message = nlohmann::ordered_json::parse(reply.message);
  Answer answer{.ids = std::move(reply.ids),
                .finish = reply.finish,
                .text = message["content"],
                .tokens_max = options.tokens_max};
  if (message.contains("reasoning_content")) answer.reasoning = message["reasoning_content"];
  if (message.contains("tool_calls")) answer.tool_calls = message["tool_calls"].dump();
  return answer;
}

Answer make_answer(const Settings& settings, const api::Model& model, api::Session& session, const std::string& text,
                   const std::optional<ChatFormatInfo>& format) {
  AnswerPrinter printer{Terminal(STDOUT_FILENO)};
  AnswerPrinter* const shown = settings.json ? nullptr : &printer;
  if (format) return answer_turn(settings, *format, session, text, shown);
  if (!settings.ids.empty()) return continue_text(settings, session, settings.ids, shown);
  if (!model.has_tokenizer()) throw UsageError("this model folder has no tokenizer; give the prompt with --ids");
  return continue_text(settings, session, model.tokenizer().tokenize(text, api::TextKind::kPlain), shown);
}

std::string result_json(const Answer& answer, const std::string& stats) {
  return fmt::format("{{\"text\":{},\"ids\":{},\"finish\":\"{}\",\"reasoning\":{},\"tool_calls\":{},\"stats\":{}}}\n",
                     json_string(answer.text), json_ids(answer.ids), finish_name(answer.finish),
                     json_string(answer.reasoning), answer.tool_calls, stats);
}

}  // namespace

ExitStatus run(const Settings& settings) {
  check_use(settings);
  const std::optional<ChatFormatInfo> format = chat_format(settings);
  const bool has_ids = !settings.ids.empty();
  const std::string text = has_ids ? std::string() : text_from(settings, 1, prompt_bytes_max(settings));
  if (!has_ids && text.empty()) throw UsageError("the prompt is empty");
  check_stats_file(settings);
  api::Model model = open_model(settings, 1);
  api::Session session = model.create_session();
  const Answer answer = make_answer(settings, model, session, text, format);
  const std::string stats = session.stats_json();
  if (settings.json) {
    write_stdout(result_json(answer, stats));
  } else {
    const std::string reason = end_reason(answer.finish, answer.ids.size(), answer.tokens_max);
    if (!reason.empty()) tell("the answer was " + reason);
    tell(statistics_line(stats));
  }
  write_stats_file(settings, stats);
  return answer.finish == HEADRACE_FINISH_CANCELLED ? kCancelled : kDone;
}

}  // namespace headrace::cli::cmd
