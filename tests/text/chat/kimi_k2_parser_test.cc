#include <gtest/gtest.h>

#include "text/chat/chat_support.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::ControlSet;
using testing::described;
using testing::repeat;

const Tokenizer& tokenizer() {
  static const auto loaded = testing::demo_tokenizer(ControlSet::kK2);
  return *loaded;
}

/// What an answer with spelled control tokens says.
std::string parsed(std::string_view answer) {
  return described(testing::parse_answer(tokenizer(), testing::marked_ids(tokenizer(), answer)).message);
}

std::string section(const std::string& calls) {
  return "<|tool_calls_section_begin|>" + calls + "<|tool_calls_section_end|>";
}

std::string call(const std::string& id, const std::string& arguments) {
  return "<|tool_call_begin|>" + id + "<|tool_call_argument_begin|>" + arguments + "<|tool_call_end|>";
}

TEST(KimiK2Parser, TakesPlainAnswersWithoutLookingForReasoning) {
  EXPECT_EQ(parsed("<think>Hello</think> there<|im_end|>ignored"),
            "reasoning: \ncontent: <think>Hello</think> there\nfinished");
  EXPECT_EQ(parsed("Hello[EOS]"), "reasoning: \ncontent: Hello\nfinished");
  EXPECT_EQ(parsed("Hello"), "reasoning: \ncontent: Hello\ncut");
}

TEST(KimiK2Parser, TakesCallsWithTheModelsIds) {
  EXPECT_EQ(parsed("Let me see. " +
                   section("\n" + call(" functions.get_weather:0 ", " {\"a\":  1}\n") + "\n" +
                           call("functions.ns.g:12", "{}")) +
                   "<|im_end|>"),
            "reasoning: \ncontent: Let me see. \nfunctions.get_weather:0 get_weather: {\"a\":  1}\n"
            "functions.ns.g:12 ns.g: {}\nfinished");
}

TEST(KimiK2Parser, TakesNamesFromIdsOfAnyForm) {
  for (const auto& [id, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"f", "f"},
                                                                  {"f:3", "f"},
                                                                  {"functions.f", "f"},
                                                                  {"functions.f:", "f:"},
                                                                  {"a:b", "a:b"},
                                                                  {"a:b:1", "a:b"},
                                                                  {"functions.functions.f:1", "functions.f"},
                                                                  {"functions.名前:0", "名前"}}) {
    EXPECT_EQ(parsed(section(call(id, "{}"))), "reasoning: \ncontent: \n" + std::string(id) + " " + name + ": {}\ncut");
  }
}

TEST(KimiK2Parser, TakesSeveralSectionsAndTheTextAroundThem) {
  EXPECT_EQ(parsed("a" + section(call("f:0", "1")) + "b" + section("x" + call("f:1", "2") + " y ") + "c<|im_end|>"),
            "reasoning: \ncontent: abx yc\nf:0 f: 1\nf:1 f: 2\nfinished");
}

TEST(KimiK2Parser, LeavesOutWhiteSpaceBetweenCalls) {
  EXPECT_EQ(parsed(section("\n" + call("f:0", "1") + " \n" + call("f:1", "2") + "x")),
            "reasoning: \ncontent: x\nf:0 f: 1\nf:1 f: 2\ncut");
}

TEST(KimiK2Parser, KeepsMoreWhiteSpaceThanLayoutHas) {
  EXPECT_EQ(parsed(section(repeat(" ", 4097))), "reasoning: \ncontent: " + repeat(" ", 4097) + "\ncut");
}

TEST(KimiK2Parser, AcceptsMissingEnds) {
  EXPECT_EQ(parsed("<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}"
                   "<|tool_call_begin|>g:1<|tool_call_argument_begin|>{\"a\":1}<|im_end|>"),
            "reasoning: \ncontent: \nf:0 f: {}\ng:1 g: {\"a\":1}\nfinished");
  EXPECT_EQ(parsed("<|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_calls_section_end|>after"),
            "reasoning: \ncontent: after\nf:0 f: {}\ncut");
}

TEST(KimiK2Parser, TakesACallWithoutArguments) {
  EXPECT_EQ(parsed(section("<|tool_call_begin|>f:0<|tool_call_end|>")), "reasoning: \ncontent: \nf:0 f: {}\ncut");
}

TEST(KimiK2Parser, MarksACallThatWasCut) {
  EXPECT_EQ(parsed("<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{\"path\": \"/tm"),
            "reasoning: \ncontent: \nf:0 f (cut): {\"path\": \"/tm\ncut");
  EXPECT_EQ(parsed("<|tool_calls_section_begin|><|tool_call_begin|>functions.del"),
            "reasoning: \ncontent: functions.del\ncut");
}

TEST(KimiK2Parser, TakesACallWithoutNameAsContent) {
  EXPECT_EQ(parsed(section(call("functions.:0", "{}") + call("", "x") + call("f:1", "y"))),
            "reasoning: \ncontent: functions.:0{}x\nf:1 f: y\ncut");
}

TEST(KimiK2Parser, TakesAnIdThatIsTooLongAsContent) {
  const std::string id = repeat("x", 5000);
  EXPECT_EQ(parsed(section(call(id, "{}"))), "reasoning: \ncontent: " + id + "{}\ncut");
}

TEST(KimiK2Parser, TakesCallsBeyondTheBoundAsContent) {
  const auto answer =
      testing::parse_answer(tokenizer(), testing::marked_ids(tokenizer(), section(repeat(call("f:0", "1"), 258))));
  EXPECT_EQ(answer.message.calls.size(), kToolCallsMax);
  EXPECT_EQ(answer.message.content, "f:01f:01");
}

TEST(KimiK2Parser, IgnoresStructureThatMeansNothing) {
  EXPECT_EQ(
      parsed("a<|tool_call_argument_begin|>b<|tool_call_end|>c<|tool_calls_section_end|>d<|im_middle|>e<|im_user|>f"
             "[PAD]g<|im_end|>"),
      "reasoning: \ncontent: abcdefg\nfinished");
  EXPECT_EQ(parsed(section(call("f:0", "1<|tool_call_argument_begin|>2"))), "reasoning: \ncontent: \nf:0 f: 12\ncut");
}

TEST(KimiK2Parser, TakesSpelledControlTokensAsText) {
  const std::string text = "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|im_end|>[EOS]";
  const auto ids = tokenizer().encode(PlainText{text});
  ASSERT_TRUE(ids);
  EXPECT_EQ(described(testing::parse_answer(tokenizer(), ids.value()).message),
            "reasoning: \ncontent: " + text + "\ncut");
}

TEST(KimiK2Parser, TellsEventsInOrder) {
  const auto single_bytes = testing::byte_tokenizer(ControlSet::kK2);
  const auto ids =
      testing::marked_ids(*single_bytes, "é" + section(call("f:0", "{}") + call("g:1", "{}")) + "<|im_end|>");
  EXPECT_EQ(testing::parse_answer(*single_bytes, ids).events,
            (std::vector<std::string>{"content: é", "call 0", "end of call 0", "call 1", "end of call 1", "end"}));
}

TEST(KimiK2Parser, ReplacesACharacterThatStructureCuts) {
  const auto single_bytes = testing::byte_tokenizer(ControlSet::kK2);
  const auto ids = testing::marked_ids(*single_bytes, "a\xF0\x9F" + section(call("f\xE4", "x\xC3")) + "\xC3");
  EXPECT_EQ(described(testing::parse_answer(*single_bytes, ids).message),
            "reasoning: \ncontent: a\xEF\xBF\xBD\xEF\xBF\xBD\nf\xEF\xBF\xBD f\xEF\xBF\xBD: x\xEF\xBF\xBD\ncut");
}

}  // namespace
}  // namespace headrace
