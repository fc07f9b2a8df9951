#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "text/chat/chat_parser.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"
#include "text/tokenizer.h"

namespace headrace {

/// What a publisher recommends.
struct RecommendedSampling {
  double temperature;
  double top_p;
};

/// How a family of models was trained to see conversations: one constant per format, in a file of its own.
///
/// A conversation that grows keeps its prefix: rendered with more messages at its end, its ids begin with those of the
/// shorter one without generation prompt, so that attention state can be kept. Each format says where this does not
/// hold.
struct ChatFormat {
  const char* name;
  /// Control tokens that prompts and answers are made of: a vocabulary that has them all has this format.
  std::span<const ControlLiteral> controls;
  /// Control tokens that end an answer. Those that a vocabulary lacks do not matter.
  std::span<const ControlLiteral> stops;
  bool has_thinking;
  std::optional<RecommendedSampling> sampling;

  /// The prompt. kArgument when the conversation cannot be shown in this format; kUnsupported when it asks for what the
  /// format has no words for.
  Result<Segments> (*render)(const ChatRequest& request);
  /// A parser for the answer to a prompt that was rendered with this `thinking`. The tokenizer outlives it, and has all
  /// `controls`.
  std::unique_ptr<ChatParser> (*create_parser)(const Tokenizer& tokenizer, bool thinking);
};

/// The format of models with this tokenizer, told from the names of its control tokens; null when it is none we know.
const ChatFormat* find_chat_format(const Tokenizer& tokenizer);

/// All formats.
std::span<const ChatFormat* const> chat_formats();

}  // namespace headrace
