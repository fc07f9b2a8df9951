#include "text/chat/token_parser.h"

#include <optional>
#include <string>

namespace headrace {

std::vector<ChatEvent> TokenParser::push(TokenId id) {
  const std::optional<std::string_view> bytes = tokenizer_.token_bytes(id);
  if (builder_.has_ended() || !bytes) return {};
  if (tokenizer_.is_control(id)) {
    take_control(id);
  } else {
    std::string text;
    utf8_.push(*bytes, text);
    take_text(text);
  }
  return builder_.take_events();
}

std::vector<ChatEvent> TokenParser::finish() {
  if (!builder_.has_ended()) end(false);
  return builder_.take_events();
}

void TokenParser::end_text() {
  std::string text;
  utf8_.finish(text);
  take_text(text);
}

}  // namespace headrace
