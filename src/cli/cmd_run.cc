#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/answer_printer.h"
#include "cli/chat_request.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/model_path.h"
#include "cli/open_model.h"
#include "cli/progress.h"
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

/// Whether the prompt is a user's turn; told before any weight is read.
bool is_chat(const Settings& settings) {
  if (is_continuation(settings)) return false;
  const api::Tokenizer tokenizer(model_folder(settings.arguments[0]));
  const ChatFormatInfo format = chat_format_info(tokenizer.view());
  if (format.name.empty() && (settings.has("system") || settings.has("think"))) {
    throw UsageError("this model has no chat format: --system and --think have no meaning for it");
  }
  if (!format.name.empty()) check_thinking(settings.think, format);
  return !format.name.empty();
}

Answer continue_text(const Settings& settings, api::Session& session, const std::vector<int32_t>& ids,
                     AnswerPrinter* printer) {
  const InterruptTarget interrupt(session.handle());
  api::GenerateOptions options = generate_options(settings, nullptr);
  if (!settings.tokens_max) options.tokens_max = kTokensDefault;
  PromptProgress progress;
  options.on_progress = progress.callback();
  api::Generation generation = session.generate(ids, options, [&](const headrace_piece& piece) {
    if (printer) print_piece(*printer, piece);
    return true;
  });
  if (printer) printer->finish();
  return {.ids = std::move(generation.ids), .finish = generation.finish, .text = std::move(generation.text)};
}

Answer answer_turn(const Settings& settings, const api::Model& model, api::Session& session, const std::string& text,
                   AnswerPrinter* printer) {
  ChatRequest request;
  request.set_system(settings.system);
  request.set_thinking(settings.think);
  request.add_user(text);
  const ChatFormatInfo format = chat_format_info(model.tokenizer());
  api::Reply reply = print_reply(session, request.json(), generate_options(settings, &format), printer);
  const auto message = nlohmann::ordered_json::parse(reply.message);
  Answer answer{.ids = std::move(reply.ids), .finish = reply.finish, .text = message["content"]};
  if (message.contains("reasoning_content")) answer.reasoning = message["reasoning_content"];
  if (message.contains("tool_calls")) answer.tool_calls = message["tool_calls"].dump();
  return answer;
}

Answer make_answer(const Settings& settings, const api::Model& model, api::Session& session, const std::string& text,
                   bool chat) {
  AnswerPrinter printer{Terminal(STDOUT_FILENO)};
  AnswerPrinter* const shown = settings.json ? nullptr : &printer;
  if (chat) return answer_turn(settings, model, session, text, shown);
  if (!settings.ids.empty()) return continue_text(settings, session, settings.ids, shown);
  if (!model.has_tokenizer()) throw UsageError("this model folder has no tokenizer; give the prompt with --ids");
  return continue_text(settings, session, model.tokenizer().tokenize(text, api::TextKind::kPlain), shown);
}

/// Why an answer that did not end by itself has ended.
void tell_end(const Settings& settings, const Answer& answer) {
  if (answer.finish == HEADRACE_FINISH_CANCELLED) tell("the answer was stopped");
  if (answer.finish != HEADRACE_FINISH_LENGTH) return;
  const bool is_context = answer.ids.size() < settings.tokens_max.value_or(kTokensDefault);
  tell(is_context ? "the answer was cut: the context is full; --ctx sets a larger one"
                  : "the answer was cut: as many tokens as -n allows");
}

std::string result_json(const Answer& answer, const std::string& stats) {
  return fmt::format("{{\"text\":{},\"ids\":{},\"finish\":\"{}\",\"reasoning\":{},\"tool_calls\":{},\"stats\":{}}}\n",
                     json_string(answer.text), json_ids(answer.ids), finish_name(answer.finish),
                     json_string(answer.reasoning), answer.tool_calls, stats);
}

}  // namespace

ExitStatus run(const Settings& settings) {
  check_use(settings);
  const bool chat = is_chat(settings);
  const bool has_ids = !settings.ids.empty();
  const std::string text = has_ids ? std::string() : text_from(settings, 1, prompt_bytes_max(settings));
  if (!has_ids && text.empty()) throw UsageError("the prompt is empty");
  check_stats_file(settings);
  api::Model model = open_model(settings, 1);
  api::Session session = model.create_session();
  const Answer answer = make_answer(settings, model, session, text, chat);
  const std::string stats = session.stats_json();
  if (settings.json) {
    write_stdout(result_json(answer, stats));
  } else {
    tell_end(settings, answer);
    tell(statistics_line(stats));
  }
  write_stats_file(settings, stats);
  return answer.finish == HEADRACE_FINISH_CANCELLED ? kCancelled : kDone;
}

}  // namespace headrace::cli::cmd
