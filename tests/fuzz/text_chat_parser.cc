// libFuzzer target: answers of a model, as token ids. The first byte chooses the format, from the table, and whether it
// thinks; a byte 0xFF and the next one are a control token, all other bytes are tokens of their own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/ensure.h"
#include "fuzz/text_chat_tokenizer.h"
#include "text/chat/chat_format.h"
#include "text/utf8.h"

namespace {

using namespace headrace;

bool is_valid(const std::string& text) {
  return valid_utf8_prefix_bytes(text) == text.size();
}

/// What the events say of the message must be the message.
class Listener {
 public:
  void hear(const std::vector<ChatEvent>& events) {
    for (const ChatEvent& event : events) {
      ENSURE(!ended_ && is_valid(event.text));
      if (event.kind == ChatEvent::Kind::kReasoning) reasoning_ += event.text;
      if (event.kind == ChatEvent::Kind::kContent) content_ += event.text;
      if (event.kind == ChatEvent::Kind::kCallBegun) ENSURE(event.call_index == begun_++ && begun_ == ended_calls_ + 1);
      if (event.kind == ChatEvent::Kind::kCallEnded) ENSURE(event.call_index == ended_calls_++);
      ended_ = event.kind == ChatEvent::Kind::kEnded;
    }
  }
  void check(const ParsedMessage& message) const {
    ENSURE(ended_ && reasoning_ == message.reasoning && content_ == message.content);
    ENSURE(begun_ == message.calls.size() && ended_calls_ == begun_ && begun_ <= kToolCallsMax);
    for (const ParsedCall& call : message.calls) {
      ENSURE(!call.name.empty() && is_valid(call.name) && is_valid(call.id) && is_valid(call.arguments));
    }
  }

 private:
  std::string reasoning_;
  std::string content_;
  size_t begun_ = 0;
  size_t ended_calls_ = 0;
  bool ended_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const size_t format_index = data[0] % chat_formats().size();
  const Tokenizer& tokenizer = fuzz::tokenizer_of(format_index);
  const auto parser = chat_formats()[format_index]->create_parser(tokenizer, (data[0] & 2) != 0);
  Listener listener;
  for (size_t index = 0; index < bytes.size(); ++index) {
    const bool is_control = bytes[index] == 0xFF && index + 1 < bytes.size();
    const TokenId id = is_control ? 256 + bytes[++index] % 16 : bytes[index];
    listener.hear(parser->push(id));
  }
  listener.hear(parser->finish());
  listener.hear(parser->finish());
  listener.check(parser->message());
  return 0;
}
