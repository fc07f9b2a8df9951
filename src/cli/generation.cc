#include "cli/generation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/exit_status.h"
#include "cli/model_path.h"

namespace headrace::cli {

ChatFormatInfo chat_format_info(const Settings& settings) {
  const api::Tokenizer tokenizer(model_folder(settings.arguments.at(0)));
  const auto json = nlohmann::json::parse(tokenizer.view().json());
  ChatFormatInfo info;
  if (!json["chat_format"].is_null()) info.name = json["chat_format"];
  info.has_thinking = json["thinking"];
  if (!json["sampling"].is_null()) {
    info.temperature = json["sampling"]["temperature"];
    info.top_p = json["sampling"]["top_p"];
  }
  return info;
}

api::GenerateOptions generate_options(const Settings& settings, const ChatFormatInfo* format) {
  api::GenerateOptions options;
  options.tokens_max = settings.tokens_max.value_or(0);
  options.temperature = format && !settings.has("temp") ? format->temperature : settings.temperature;
  options.top_p = format && !settings.has("top-p") ? format->top_p : settings.top_p;
  options.top_k = settings.top_k;
  if (options.top_p == 0) options.top_k = 1;  // A vanishing share keeps the best token; the library's 0 keeps all.
  options.min_p = settings.min_p;
  options.seed = settings.seed;
  options.stops = settings.stops;
  return options;
}

void check_thinking(std::string_view thinking, const ChatFormatInfo& format) {
  if (format.has_thinking || thinking.empty() || thinking == "off") return;
  throw UsageError(fmt::format("this model does not reason (chat format {}): only off is possible", format.name));
}

std::string end_reason(headrace_finish finish, size_t token_count, size_t tokens_max) {
  if (finish == HEADRACE_FINISH_CANCELLED) return "stopped";
  if (finish != HEADRACE_FINISH_LENGTH) return "";
  if (token_count == tokens_max) return "cut: as many tokens as -n allows";
  return "cut: the context is full; --ctx sets a larger one";
}

const char* finish_name(headrace_finish finish) {
  switch (finish) {
    case HEADRACE_FINISH_STOP:
    case HEADRACE_FINISH_TOOL_CALLS:
      return "stop";
    case HEADRACE_FINISH_LENGTH:
      return "length";
    case HEADRACE_FINISH_CANCELLED:
      break;
  }
  return "cancelled";
}

}  // namespace headrace::cli
