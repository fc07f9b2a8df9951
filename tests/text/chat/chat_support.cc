#include "text/chat/chat_support.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "text/chat/chat_request.h"
#include "text/tiktoken.h"
#include "text/toy_tokenizer.h"
#include "text/utf8.h"

namespace headrace::testing {
namespace {

using Names = std::map<size_t, std::string>;

/// Offsets from the first control id, as the publisher has them.
const Names& names_of(ControlSet controls) {
  static const Names kXtmlNames = {{0, "[BOS]"},
                                   {1, "[EOS]"},
                                   {2, "<|end_of_msg|>"},
                                   {3, "<|open|>"},
                                   {4, "<|close|>"},
                                   {5, "<|sep|>"},
                                   {6, "[start_header_id]"},
                                   {9, "[EOT]"},
                                   {18, "<|media_begin|>"},
                                   {21, "<|media_pad|>"},
                                   {65, "<osagent_mode>"},
                                   {254, "[UNK]"},
                                   {255, "[PAD]"}};
  static const Names kK2Names = {{0, "[BOS]"},
                                 {1, "[EOS]"},
                                 {2, "<|im_end|>"},
                                 {3, "<|im_user|>"},
                                 {4, "<|im_assistant|>"},
                                 {6, "<|start_header_id|>"},
                                 {9, "[EOT]"},
                                 {10, "<|im_system|>"},
                                 {11, "<|tool_calls_section_begin|>"},
                                 {12, "<|tool_calls_section_end|>"},
                                 {13, "<|tool_call_begin|>"},
                                 {14, "<|tool_call_argument_begin|>"},
                                 {15, "<|tool_call_end|>"},
                                 {17, "<|im_middle|>"},
                                 {254, "[UNK]"},
                                 {255, "[PAD]"}};
  return controls == ControlSet::kXtml ? kXtmlNames : kK2Names;
}

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& ranks, size_t rank_count, ControlSet controls) {
  std::string config = "{\"added_tokens_decoder\":{";
  for (const auto& [offset, name] : names_of(controls)) {
    if (offset > 0) config += ",";
    config += "\"" + std::to_string(rank_count + offset) + "\":{\"content\":\"" + name + "\",\"special\":true}";
  }
  auto tokenizer = load_tiktoken({"ranks", ranks}, {"config", config + "}}"});
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return tokenizer ? tokenizer.take_value() : nullptr;
}

std::string named(const ChatEvent& event) {
  switch (event.kind) {
    case ChatEvent::Kind::kReasoning:
      return "reasoning: " + event.text;
    case ChatEvent::Kind::kContent:
      return "content: " + event.text;
    case ChatEvent::Kind::kCallBegun:
      return "call " + std::to_string(event.call_index);
    case ChatEvent::Kind::kCallEnded:
      return "end of call " + std::to_string(event.call_index);
    case ChatEvent::Kind::kEnded:
      return "end";
  }
  return "?";
}

/// What the events alone say of the message.
class Listener {
 public:
  void hear(const std::vector<ChatEvent>& events, const ParsedMessage& message) {
    for (const ChatEvent& event : events) {
      EXPECT_FALSE(ended_) << "an event after the end";
      EXPECT_EQ(valid_utf8_prefix_bytes(event.text), event.text.size());
      if (event.kind == ChatEvent::Kind::kReasoning) reasoning_ += event.text;
      if (event.kind == ChatEvent::Kind::kContent) content_ += event.text;
      if (event.kind == ChatEvent::Kind::kCallBegun) {
        EXPECT_EQ(event.call_index, begun_++);
        EXPECT_EQ(begun_, ended_calls_ + 1);
        EXPECT_FALSE(message.calls.at(event.call_index).name.empty());
      }
      if (event.kind == ChatEvent::Kind::kCallEnded) {
        EXPECT_EQ(event.call_index, ended_calls_++);
      }
      ended_ = event.kind == ChatEvent::Kind::kEnded;
    }
  }
  void expect_heard(const ParsedMessage& message) const {
    EXPECT_TRUE(ended_);
    EXPECT_EQ(reasoning_, message.reasoning);
    EXPECT_EQ(content_, message.content);
    EXPECT_EQ(begun_, message.calls.size());
    EXPECT_EQ(ended_calls_, message.calls.size());
  }

 private:
  std::string reasoning_;
  std::string content_;
  size_t begun_ = 0;
  size_t ended_calls_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> demo_tokenizer(ControlSet controls) {
  return tokenizer_of(read_text_file(HEADRACE_SOURCE_DIR "/models/demo/tiktoken.model"), 4096, controls);
}

std::unique_ptr<Tokenizer> byte_tokenizer(ControlSet controls) {
  return tokenizer_of(rank_file(single_bytes()), 256, controls);
}

std::unique_ptr<Tokenizer> published_tokenizer(ControlSet controls) {
  const char* folder = std::getenv("HEADRACE_TEST_TOKENIZERS");
  if (folder == nullptr) return nullptr;
  return tokenizer_of(read_text_file(std::string(folder) + "/kimi_k2.tiktoken"), 163584, controls);
}

ChatRequest request_of(std::string_view json) {
  auto request = parse_chat_request(json);
  EXPECT_TRUE(request) << json << ": " << (request ? "" : request.error().message);
  return request ? request.take_value() : ChatRequest();
}

Segments rendered(const ChatFormat& format, const ChatRequest& request) {
  auto segments = format.render(request);
  EXPECT_TRUE(segments) << (segments ? "" : segments.error().message);
  return segments ? segments.take_value() : Segments();
}

std::string joined(const Segments& segments) {
  std::string text;
  for (const Segment& segment : segments.list()) {
    const auto* control = std::get_if<ControlLiteral>(&segment);
    text += control != nullptr ? control->name() : std::string_view(std::get<TextSegment>(segment).text);
  }
  return text;
}

std::string prompt_of(const ChatFormat& format, std::string_view json) {
  return joined(rendered(format, request_of(json)));
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const ChatRequest& request) {
  auto ids = encode_segments(tokenizer, rendered(*find_chat_format(tokenizer), request));
  EXPECT_TRUE(ids) << (ids ? "" : ids.error().message);
  return ids ? ids.take_value() : std::vector<TokenId>();
}

std::vector<TokenId> marked_ids(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(Markup{text});
  EXPECT_TRUE(ids);
  return ids ? ids.take_value() : std::vector<TokenId>();
}

Answer parse_answer(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool thinking) {
  const auto parser = find_chat_format(tokenizer)->create_parser(tokenizer, thinking);
  Answer answer;
  Listener listener;
  const auto hear = [&](const std::vector<ChatEvent>& events) {
    listener.hear(events, parser->message());
    for (const ChatEvent& event : events) answer.events.push_back(named(event));
  };
  for (const TokenId id : ids) hear(parser->push(id));
  hear(parser->finish());
  listener.expect_heard(parser->message());
  answer.message = parser->message();
  return answer;
}

std::string described(const ParsedMessage& message) {
  std::string text = "reasoning: " + message.reasoning + "\ncontent: " + message.content + "\n";
  for (const ParsedCall& call : message.calls) {
    text += call.id + " " + call.name + (call.is_complete ? ": " : " (cut): ") + call.arguments + "\n";
  }
  return text + (message.is_finished ? "finished" : "cut");
}

std::string Inventor::text() {
  static const char* const kPieces[] = {"a",
                                        "Paris",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\t",
                                        "\r\n",
                                        "\"",
                                        "&",
                                        "&quot;",
                                        "&amp;",
                                        "&amp;quot;",
                                        "<|open|>",
                                        "<|close|>",
                                        "<|sep|>",
                                        "<|end_of_msg|>",
                                        "<|im_end|>",
                                        "<|im_user|>",
                                        "<|tool_call_begin|>",
                                        "[EOS]",
                                        "<|",
                                        "|>",
                                        "=\"",
                                        " key=\"x\"",
                                        "message",
                                        "argument",
                                        "think",
                                        "functions.a:0",
                                        ":7",
                                        "é",
                                        "中文",
                                        "日本語テスト",
                                        "🎉",
                                        "👍🏽",
                                        "e\xCC\x81",
                                        "\xC2\xA0",
                                        "\xE3\x80\x80",
                                        "{",
                                        "}",
                                        "[1, 2]",
                                        "null",
                                        "-12",
                                        "1e-5",
                                        "\\",
                                        "\\n",
                                        "'",
                                        "```json\n",
                                        "<｜User｜>"};
  std::string text;
  for (size_t count = below(8); count > 0; --count) text += kPieces[below(std::size(kPieces))];
  if (one_in(20)) text += std::string(1, '\0');
  return text;
}

JsonValue Inventor::json(size_t depth) {
  static const char* const kNumbers[] = {"0", "-12", "1.5", "1e-05", "-0.0", "1e+16", "123456789012345678901234567890"};
  switch (below(depth == 0 ? 4 : 6)) {
    case 0:
      return {nullptr};
    case 1:
      return {one_in(2)};
    case 2:
      return {JsonNumber{kNumbers[below(std::size(kNumbers))]}};
    case 3:
      return {text()};
    case 4:
      return {object(depth - 1)};
    default:
      break;
  }
  JsonArray array;
  for (size_t count = below(4); count > 0; --count) array.push_back(json(depth - 1));
  return {std::move(array)};
}

JsonObject Inventor::object(size_t depth) {
  JsonObject object;
  for (size_t count = below(4); count > 0; --count) {
    std::string key = text();
    if (find_member(object, key) == nullptr) object.push_back({std::move(key), json(depth)});
  }
  return object;
}

}  // namespace headrace::testing
