#pragma once

#include <string_view>
#include <vector>

#include "text/chat/chat_parser.h"
#include "text/chat/message_builder.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace headrace {

/// What parsers of all formats have in common: tokens become valid UTF-8 and control tokens, until the end.
class TokenParser : public ChatParser {
 public:
  /// The tokenizer outlives it.
  explicit TokenParser(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::vector<ChatEvent> push(TokenId id) final;
  std::vector<ChatEvent> finish() final;
  const ParsedMessage& message() const final { return builder_.message(); }

 protected:
  virtual void take_text(std::string_view text) = 0;
  virtual void take_control(TokenId id) = 0;
  /// Ends what is open. `is_finished`: the model ended its message, by a control token.
  virtual void end(bool is_finished) = 0;

  /// Structure follows, and no later byte can complete a character: takes what is held of one.
  void end_text();
  MessageBuilder& builder() { return builder_; }

 private:
  const Tokenizer& tokenizer_;
  MessageBuilder builder_;
  Utf8Stream utf8_;
};

}  // namespace headrace
