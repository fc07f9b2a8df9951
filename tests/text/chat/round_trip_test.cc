// What the renderers can express, the parsers read back: made-up answers, rendered as the last message of a
// conversation.

#include <gtest/gtest.h>

#include <algorithm>

#include "text/chat/chat_support.h"
#include "text/chat/json_writer.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

using testing::ControlSet;
using testing::described;
using testing::Inventor;

constexpr int kAnswers = 400;

ChatMessage user_message() {
  ChatMessage message;
  message.content.push_back({"<|open|>Hi"});
  return message;
}

ToolCall invented_call(Inventor& inventor) {
  ToolCall call;
  call.name = "f" + inventor.text();
  if (inventor.one_in(10)) {
    call.arguments = "{broken" + inventor.text();
  } else {
    call.arguments = spaced_json({inventor.object(3)});
  }
  return call;
}

ChatMessage invented_answer(Inventor& inventor) {
  ChatMessage message;
  message.role = ChatRole::kAssistant;
  message.content.push_back({inventor.text() + inventor.text()});
  message.reasoning = inventor.text();
  for (size_t count = inventor.one_in(2) ? inventor.below(4) : 0; count > 0; --count) {
    message.tool_calls.push_back(invented_call(inventor));
  }
  return message;
}

/// The ids that a model would have written to give this answer, and the last control token of which ends it.
std::vector<TokenId> ids_of_answer(const Tokenizer& tokenizer, ChatRequest request, const ChatMessage& answer) {
  request.add_generation_prompt = true;
  const std::vector<TokenId> prompt = testing::ids_of(tokenizer, request);
  request.add_generation_prompt = false;
  request.messages.push_back(answer);
  const std::vector<TokenId> all = testing::ids_of(tokenizer, request);
  EXPECT_TRUE(all.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), all.begin()));
  return {all.begin() + static_cast<std::ptrdiff_t>(std::min(prompt.size(), all.size())), all.end()};
}

/// What reading K3's form of the answer must give.
ParsedMessage xtml_expectation(const ChatMessage& answer, bool thinking) {
  ParsedMessage message{.reasoning = "", .content = answer.content[0].text, .calls = {}, .is_finished = true};
  if (thinking && !is_blank(answer.reasoning)) message.reasoning = answer.reasoning;
  for (const ToolCall& call : answer.tool_calls) {
    message.calls.push_back({"call_" + std::to_string(message.calls.size() + 1), call.name, call.arguments, true});
  }
  return message;
}

ParsedMessage k2_expectation(const ChatMessage& answer) {
  ParsedMessage message{.reasoning = "", .content = answer.content[0].text, .calls = {}, .is_finished = true};
  for (const ToolCall& call : answer.tool_calls) {
    const std::string arguments(strip(call.arguments));
    message.calls.push_back(
        {"functions." + call.name + ":" + std::to_string(message.calls.size()), call.name, arguments, true});
  }
  return message;
}

TEST(RoundTrip, GivesAnswersOfK3Back) {
  const auto tokenizer = testing::demo_tokenizer(ControlSet::kXtml);
  Inventor inventor(1);
  for (int number = 0; number < kAnswers; ++number) {
    const ChatMessage answer = invented_answer(inventor);
    ChatRequest request;
    request.messages = {user_message()};
    request.thinking = inventor.one_in(2);
    const auto parsed = testing::parse_answer(*tokenizer, ids_of_answer(*tokenizer, request, answer), request.thinking);
    ASSERT_EQ(described(parsed.message), described(xtml_expectation(answer, request.thinking))) << number;
  }
}

TEST(RoundTrip, GivesAnswersOfKimiLinearBack) {
  const auto tokenizer = testing::demo_tokenizer(ControlSet::kK2);
  Inventor inventor(2);
  for (int number = 0; number < kAnswers; ++number) {
    const ChatMessage answer = invented_answer(inventor);
    ChatRequest request;
    request.messages = {user_message()};
    const auto parsed = testing::parse_answer(*tokenizer, ids_of_answer(*tokenizer, request, answer));
    ASSERT_EQ(described(parsed.message), described(k2_expectation(answer))) << number;
  }
}

TEST(RoundTrip, IsTheSameByTokensAndByBytes) {
  for (const ControlSet controls : {ControlSet::kXtml, ControlSet::kK2}) {
    const auto tokens = testing::demo_tokenizer(controls);
    const auto bytes = testing::byte_tokenizer(controls);
    Inventor inventor(3);
    for (int number = 0; number < kAnswers / 2; ++number) {
      const ChatMessage answer = invented_answer(inventor);
      ChatRequest request;
      request.messages = {user_message()};
      const auto by_tokens = testing::parse_answer(*tokens, ids_of_answer(*tokens, request, answer));
      const auto by_bytes = testing::parse_answer(*bytes, ids_of_answer(*bytes, request, answer));
      ASSERT_EQ(described(by_tokens.message), described(by_bytes.message)) << number;
    }
  }
}

/// Parsed messages as a client sends them back.
ChatMessage sent_back(const ParsedMessage& parsed) {
  ChatMessage message;
  message.role = ChatRole::kAssistant;
  message.content.push_back({parsed.content});
  message.reasoning = parsed.reasoning;
  for (const ParsedCall& call : parsed.calls) {
    message.tool_calls.push_back({call.id, call.name, call.arguments});
  }
  return message;
}

TEST(RoundTrip, KeepsThePrefixWhenAnswersAreSentBack) {
  for (const ControlSet controls : {ControlSet::kXtml, ControlSet::kK2}) {
    const auto tokenizer = testing::demo_tokenizer(controls);
    Inventor inventor(4);
    for (int number = 0; number < kAnswers / 4; ++number) {
      ChatRequest request;
      request.messages = {user_message()};
      ChatMessage answer = invented_answer(inventor);
      const std::vector<TokenId> ids = ids_of_answer(*tokenizer, request, answer);
      const ParsedMessage parsed = testing::parse_answer(*tokenizer, ids).message;
      ASSERT_EQ(ids_of_answer(*tokenizer, request, sent_back(parsed)), ids) << number;
    }
  }
}

}  // namespace
}  // namespace headrace
