#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer.h"
#include "text/chat/chat_parser.h"

namespace headrace {

/// An answer that is a message of a conversation. Stop strings are looked for in its content: what a model thinks, and
/// what it hands to a tool, does not end it.
class ChatAnswer final : public Answer {
 public:
  ChatAnswer(std::unique_ptr<ChatParser> parser, AnswerText content, OnPiece on_piece)
      : parser_(std::move(parser)), content_(std::move(content)), on_piece_(on_piece) {}

  std::optional<Finish> add(TokenId id, std::string_view bytes) override;
  /// kToolCalls for a message that stopped by itself and has a complete call.
  Finish end(Finish finish) override;

  /// The message: its content ends before a stop string.
  ParsedMessage message() const;

 private:
  std::optional<Finish> take(const ChatEvent& event, TokenId id);
  std::optional<Finish> take_content(const ChatEvent& event, TokenId id);
  std::optional<Finish> hand_over(PieceKind kind, std::string_view text, TokenId id);
  std::optional<Finish> hand_over_content(TokenId id);
  std::optional<Finish> hand_over_call(size_t index, TokenId id);

  std::unique_ptr<ChatParser> parser_;
  AnswerText content_;
  OnPiece on_piece_;
  std::string content_so_far_;
  bool is_stopped_ = false;  // By a stop string: what follows is not part of the message.
  bool is_ended_ = false;
  bool is_cancelled_ = false;  // The receiver wants no more.
};

/// A call as a JSON object: `index` (0-based, of the message), `id`, `name`, `arguments` (a string: by intention a JSON
/// object), `complete` (it may be carried out: the model ended it, and its arguments are no JSON other than an object).
std::string tool_call_json(const ParsedCall& call, size_t index);

/// A message in the manner of OpenAI's API, to be given back in the next request as it is: `role` ("assistant"),
/// `content`, `reasoning_content` and `tool_calls` where there are any. Calls that may not be carried out are left out.
std::string message_json(const ParsedMessage& message);

}  // namespace headrace
