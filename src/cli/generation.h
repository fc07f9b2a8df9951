#pragma once

#include <string>

#include "cli/settings.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {

/// What is known of a model's way to converse.
struct ChatFormatInfo {
  std::string name;  ///< Empty: the model has none.
  bool has_thinking = false;
  double temperature = 0;  ///< What the publisher recommends; greedy where it recommends nothing.
  double top_p = 1;
};

/// Of MODEL, from its tokenizer: before any weight is read.
ChatFormatInfo chat_format_info(const Settings& settings);

/// How to sample, and when to end, as the settings say; what they leave open as `format` has it (null: greedy, as for
/// text that is continued).
api::GenerateOptions generate_options(const Settings& settings, const ChatFormatInfo* format);

/// UsageError when the settings ask for reasoning that the format does not have.
void check_thinking(std::string_view thinking, const ChatFormatInfo& format);

/// Why an answer that did not end by itself has ended: "stopped", or "cut: ..."; empty for one that did. `tokens_max`
/// as in GenerateOptions.
std::string end_reason(headrace_finish finish, size_t token_count, size_t tokens_max);

/// The word of the CLI contract: "stop", "length" or "cancelled". (A message that calls tools has stopped.)
const char* finish_name(headrace_finish finish);

}  // namespace headrace::cli
