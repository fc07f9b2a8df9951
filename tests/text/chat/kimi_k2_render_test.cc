#include <gtest/gtest.h>

#include "text/chat/chat_support.h"
#include "text/chat/kimi_k2.h"

namespace headrace {
namespace {

using testing::request_of;

std::string prompt(const std::string& messages, const std::string& more = "") {
  return testing::prompt_of(kKimiK2, "{\"messages\":[" + messages + "]" + more + "}");
}

Error refusal(const std::string& messages, const std::string& more = "") {
  auto segments = kKimiK2.render(request_of("{\"messages\":[" + messages + "]" + more + "}"));
  EXPECT_FALSE(segments);
  return segments ? Error{Code::kIo, ""} : segments.take_error();
}

const std::string kHi = R"({"role":"user","content":"Hi"})";
const std::string kHiPrompt = "<|im_user|>user<|im_middle|>Hi<|im_end|>";
const std::string kAnswer = "<|im_assistant|>assistant<|im_middle|>";

TEST(KimiK2, RendersMessagesWithoutAnythingBetweenThem) {
  EXPECT_EQ(prompt(kHi), kHiPrompt + kAnswer);
  EXPECT_EQ(prompt(R"({"role":"system","content":"S"},)" + kHi +
                       R"(,{"role":"assistant","content":"A","reasoning":"not shown"},
                           {"role":"user","name":"Ann","content":[{"text":"a"},{"text":"b"}]})",
                   R"(,"add_generation_prompt":false)"),
            "<|im_system|>system<|im_middle|>S<|im_end|>" + kHiPrompt + kAnswer +
                "A<|im_end|><|im_user|>Ann<|im_middle|>ab<|im_end|>");
}

TEST(KimiK2, EncodesTheBodyOfAMessageAtOnce) {
  const Segments segments =
      testing::rendered(kKimiK2, request_of(R"({"messages":[{"role":"user","content":[{"text":"a"},{"text":"b"}]},
                              {"role":"tool","tool_call_id":"i","content":"c"}],"add_generation_prompt":false})"));
  std::vector<std::string> texts;
  for (const Segment& segment : segments.list()) {
    if (const auto* text = std::get_if<TextSegment>(&segment)) texts.push_back(text->text);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"user", "ab", "tool", "## Return of i\nc"}));
}

TEST(KimiK2, DeclaresToolsInSortedCompactJson) {
  EXPECT_EQ(prompt(kHi, R"(,"tools":[{"type":"function","function":{"name":"f","description":"é"}}])"),
            R"(<|im_system|>tool_declare<|im_middle|>[{"function":{"description":"é","name":"f"},"type":"function"}])"
            "<|im_end|>" +
                kHiPrompt + kAnswer);
}

TEST(KimiK2, DeclaresNoToolsWhenNoneMayBeCalled) {
  EXPECT_EQ(prompt(kHi, R"(,"tools":[{"type":"function"}],"tool_choice":"none")"), kHiPrompt + kAnswer);
}

TEST(KimiK2, RendersCallsAndTheirResults) {
  EXPECT_EQ(
      prompt(kHi + R"(,{"role":"assistant","content":"Let me see.","tool_calls":[
                   {"id":"functions.f:0","function":{"name":"f","arguments":"{\"a\":1,  \"b\" : 2}"}},
                   {"id":"functions.g:1","function":{"name":"g","arguments":{"x":[1,"é"],"a":null}}}]},
                 {"role":"tool","tool_call_id":"functions.f:0","content":"18C"},
                 {"role":"tool","tool_call_id":"functions.g:1","content":"","name":"g"})"),
      kHiPrompt + kAnswer +
          R"(Let me see.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1,  "b" : 2}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{"x": [1, "é"], "a": null}<|tool_call_end|><|tool_calls_section_end|><|im_end|>)"
          "<|im_system|>tool<|im_middle|>## Return of functions.f:0\n18C<|im_end|>"
          "<|im_system|>g<|im_middle|>## Return of functions.g:1\n<|im_end|>" +
          kAnswer);
}

TEST(KimiK2, NumbersCallsWithoutIdsOverTheWholeConversation) {
  const std::string call = R"({"role":"assistant","tool_calls":[{"function":{"name":"f"}}]})";
  const std::string result = R"({"role":"tool","content":"r"})";
  const std::string text = prompt(call + "," + result + "," + call + "," + result);
  EXPECT_NE(text.find("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|"), std::string::npos);
  EXPECT_NE(text.find("## Return of functions.f:0\nr"), std::string::npos);
  EXPECT_NE(text.find("<|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{}<|"), std::string::npos);
  EXPECT_NE(text.find("## Return of functions.f:1\nr"), std::string::npos);
}

TEST(KimiK2, KeepsArgumentsThatAreNoJson) {
  EXPECT_NE(prompt(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{broken"}}]})")
                .find("<|tool_call_argument_begin|>{broken<|tool_call_end|>"),
            std::string::npos);
}

TEST(KimiK2, RefusesWhatItHasNoWordsFor) {
  EXPECT_EQ(refusal(kHi, R"(,"tool_choice":"required")").code, Code::kUnsupported);
  EXPECT_EQ(refusal(kHi, R"(,"response_format":{"type":"json_object"})").code, Code::kUnsupported);
  EXPECT_EQ(refusal(R"({"role":"system","tools":[{}]})").code, Code::kUnsupported);
  EXPECT_EQ(refusal(R"({"role":"tool","content":"r"})").message, "a tool message without tool_call_id answers no call");
}

TEST(KimiK2, KeepsThePrefixOfAConversationThatGrows) {
  const std::string asked = prompt(kHi);
  EXPECT_TRUE(prompt(kHi + R"(,{"role":"assistant","content":"A"},)" + kHi).starts_with(asked));
}

TEST(KimiK2, HasTheModelsNameAndStops) {
  EXPECT_STREQ(kKimiK2.name, "kimi-linear");
  EXPECT_FALSE(kKimiK2.has_thinking);
  EXPECT_EQ(kKimiK2.stops[0].name(), "<|im_end|>");
  EXPECT_EQ(kKimiK2.stops[1].name(), "[EOS]");
  EXPECT_FALSE(kKimiK2.sampling);
}

}  // namespace
}  // namespace headrace
