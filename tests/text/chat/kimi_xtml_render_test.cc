#include <gtest/gtest.h>

#include "text/chat/chat_support.h"
#include "text/chat/kimi_xtml.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::request_of;

/// The prompt of messages (a JSON list without its brackets) without generation prompt, effort or more of a request.
std::string conversation(const std::string& messages, const std::string& more = "") {
  return testing::prompt_of(kKimiXtml, "{\"messages\":[" + messages +
                                           "],\"reasoning_effort\":null,\"add_generation_prompt\":false" + more + "}");
}

std::string request(const std::string& messages, const std::string& more) {
  return testing::prompt_of(kKimiXtml, "{\"messages\":[" + messages + "]," + more + "}");
}

std::string refusal(const std::string& messages) {
  const auto segments = kKimiXtml.render(request_of("{\"messages\":[" + messages + "]}"));
  EXPECT_FALSE(segments);
  if (segments) return "";
  EXPECT_EQ(segments.error().code, Code::kArgument);
  return segments.error().message;
}

const std::string kHi = R"({"role":"user","content":"Hi"})";
const std::string kHiPrompt = R"(<|open|>message role="user"<|sep|>Hi<|close|>message<|sep|><|end_of_msg|>)";
const std::string kThinkPrompt = R"(<|open|>message role="assistant"<|sep|><|open|>think<|sep|>)";

std::string effort_message(const std::string& effort) {
  return R"(<|open|>message role="system" type="thinking-effort"<|sep|>`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), supported values include `low`, `medium`, `high`, and `max`.
Now the system is invoked with `thinking_effort=)" +
         effort + "`.<|close|>message<|sep|><|end_of_msg|>";
}

std::string system_message(const std::string& type, const std::string& body) {
  return "<|open|>message role=\"system\" type=\"" + type + "\"<|sep|>" + body +
         "<|close|>message<|sep|><|end_of_msg|>";
}

TEST(KimiXtml, AsksForTheMostThinkingByDefault) {
  EXPECT_EQ(testing::prompt_of(kKimiXtml, "{\"messages\":[" + kHi + "]}"),
            effort_message("max") + kHiPrompt + kThinkPrompt);
}

TEST(KimiXtml, SaysTheEffortOnlyWhenItThinks) {
  EXPECT_EQ(request(kHi, R"("reasoning_effort":"low")"), effort_message("low") + kHiPrompt + kThinkPrompt);
  EXPECT_EQ(request(kHi, R"("reasoning_effort":"high")"), effort_message("high") + kHiPrompt + kThinkPrompt);
  EXPECT_EQ(request(kHi, R"("reasoning_effort":null)"), kHiPrompt + kThinkPrompt);
  const std::string unthinking = kHiPrompt + R"(<|open|>message role="assistant"<|sep|><|open|>response<|sep|>)";
  EXPECT_EQ(request(kHi, R"("reasoning_effort":"none")"), unthinking);
  EXPECT_EQ(request(kHi, R"("thinking":false,"reasoning_effort":"max")"), unthinking);
}

TEST(KimiXtml, EndsAfterTheLastMessageWithoutGenerationPrompt) {
  EXPECT_EQ(conversation(kHi), kHiPrompt);
}

const std::string kWeather =
    R"({"role":"user","content":"Weather?"},
       {"role":"assistant","content":"","reasoning_content":"call it","tool_calls":[{"id":"a","type":"function","function":
         {"name":"get_weather","arguments":"{\"city\": \"Paris\", \"obj\": {\"k\": \"v\"}, \"arr\": [1, \"two\", null]}"}}]},
       {"role":"tool","tool_call_id":"a","content":"18C"})";

TEST(KimiXtml, RendersThePublishedToolCall) {
  EXPECT_EQ(
      request(kWeather, R"("reasoning_effort":null)"),
      R"(<|open|>message role="user"<|sep|>Weather?<|close|>message<|sep|><|end_of_msg|><|open|>message role="assistant"<|sep|><|open|>think<|sep|>call it<|close|>think<|sep|><|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|open|>argument key="obj" type="object"<|sep|>{"k": "v"}<|close|>argument<|sep|><|open|>argument key="arr" type="array"<|sep|>[1, "two", null]<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|><|open|>message role="tool" tool="get_weather" index="1"<|sep|>18C<|close|>message<|sep|><|end_of_msg|><|open|>message role="assistant"<|sep|><|open|>think<|sep|>)");
}

TEST(KimiXtml, WritesAnAttributeAsFourSegments) {
  const Segments segments = testing::rendered(kKimiXtml, request_of(R"({"messages":[{"role":"user","content":"Hi"}],
          "reasoning_effort":null,"add_generation_prompt":false})"));
  std::vector<std::string> texts;
  for (const Segment& segment : segments.list()) {
    const auto* text = std::get_if<TextSegment>(&segment);
    texts.push_back(text != nullptr ? text->text : "*");
  }
  const std::vector<std::string> expected = {"*", "message", " role", "=\"",     "user", "\"",
                                             "*", "Hi",      "*",     "message", "*",    "*"};
  EXPECT_EQ(texts, expected);
}

TEST(KimiXtml, EscapesAttributesAndNothingElse) {
  EXPECT_EQ(conversation(R"({"role":"user","name":"He said \"hello\" & left","content":"a & \"b\" &amp; <c>"})"),
            R"(<|open|>message role="user" name="He said &quot;hello&quot; &amp; left"<|sep|>a & "b" &amp; <c>)"
            "<|close|>message<|sep|><|end_of_msg|>");
  EXPECT_EQ(conversation(R"({"role":"user","name":"&quot;<\n>","content":""})"),
            "<|open|>message role=\"user\" name=\"&amp;quot;<\n>\"<|sep|><|close|>message<|sep|><|end_of_msg|>");
}

TEST(KimiXtml, DeclaresToolsInFrontInSortedCompactJson) {
  EXPECT_EQ(
      request(kHi, R"("reasoning_effort":"max","tools":[{"type":"function","function":{"name":"get_weather",
        "description":"Current weather for a city.","parameters":{"type":"object","required":["city"],
        "properties":{"city":{"type":"string"}}}}}])"),
      system_message(
          "tool-declare",
          "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n"
          R"([{"function":{"description":"Current weather for a city.","name":"get_weather","parameters":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}},"type":"function"}])"
          "\n```") +
          effort_message("max") + kHiPrompt + kThinkPrompt);
}

TEST(KimiXtml, BringsNewToolsWhereASystemMessageHasThem) {
  EXPECT_EQ(conversation(kHi + R"(,{"role":"system","content":"not shown","tools":[{"b":"é","a":1.0}]},)" + kHi),
            kHiPrompt +
                system_message("tool-declare",
                               "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
                               "You have access to all existing and extended tools.\nHere are the specs for the "
                               "extended tools.\n\n```json\n[{\"a\":1.0,\"b\":\"é\"}]\n```") +
                kHiPrompt);
}

TEST(KimiXtml, SaysToolChoiceAndResponseFormatAtTheEnd) {
  const std::string raw_json =
      "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting.";
  EXPECT_EQ(
      conversation(kHi, R"(,"tool_choice":"required","response_format":{"type":"json_object"})"),
      kHiPrompt +
          system_message("tool-choice",
                         "The system is invoked with `tool_choice=required`.\nYou MUST call tools "
                         "in the next message.") +
          system_message("response-format", "The system is invoked with `response_format=json_object`.\n" + raw_json));
  EXPECT_EQ(
      conversation(kHi, R"(,"tool_choice":"none","response_format":{"type":"json_schema","json_schema":{
                "name":"n","schema":{"type":"object","properties":{"z":{},"a":{}}}}})"),
      kHiPrompt +
          system_message("tool-choice",
                         "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any "
                         "tools in the next message.") +
          system_message("response-format", "The system is invoked with `response_format=json_schema`.\n" + raw_json +
                                                "\nThe JSON data must match the following schema:\n```json\n"
                                                R"({"properties":{"a":{},"z":{}},"type":"object"})"
                                                "\n```"));
  EXPECT_EQ(conversation(kHi, R"(,"tool_choice":"auto","response_format":{"type":"text"})"), kHiPrompt);
}

TEST(KimiXtml, RendersSystemMessagesWhereTheyStand) {
  const auto system = [](const std::string& text) { return R"({"role":"system","content":")" + text + "\"}"; };
  const auto shown = [](const std::string& text) {
    return "<|open|>message role=\"system\"<|sep|>" + text + "<|close|>message<|sep|><|end_of_msg|>";
  };
  EXPECT_EQ(conversation(system("a") + "," + system("b") + "," + kHi + "," + system("c")),
            shown("a") + shown("b") + kHiPrompt + shown("c"));
}

TEST(KimiXtml, KeepsThePartsOfContentApart) {
  const Segments segments = testing::rendered(
      kKimiXtml, request_of(R"({"messages":[{"role":"user","content":[{"text":"a"},{"text":""},{"text":"b"}]}]})"));
  size_t found = 0;
  for (const Segment& segment : segments.list()) {
    const auto* text = std::get_if<TextSegment>(&segment);
    if (text != nullptr && (text->text == "a" || text->text == "b")) ++found;
  }
  EXPECT_EQ(found, 2u);
}

TEST(KimiXtml, ShowsAThinkElementForEveryAssistantMessageWhenThinking) {
  const std::string messages =
      R"({"role":"assistant","content":"a","reasoning":" \n\u3000"},{"role":"assistant","content":"b","name":"N",
          "reasoning":" why "})";
  EXPECT_EQ(conversation(messages),
            "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|><|close|>think<|sep|><|open|>response<|sep|>a"
            "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
            "<|open|>message role=\"assistant\" name=\"N\"<|sep|><|open|>think<|sep|> why <|close|>think<|sep|>"
            "<|open|>response<|sep|>b<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>");
  EXPECT_EQ(conversation(messages, R"(,"thinking":false)"),
            "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>a"
            "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
            "<|open|>message role=\"assistant\" name=\"N\"<|sep|>"
            "<|open|>response<|sep|>b<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>");
}

/// What stands between the `tools` tags for these arguments (JSON) of a call.
std::string arguments_shown(const std::string& arguments) {
  const std::string prompt =
      conversation(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" + arguments + "}}]}");
  const std::string begin = "<|open|>call tool=\"f\" index=\"1\"<|sep|>";
  const size_t at = prompt.find(begin) + begin.size();
  return prompt.substr(at, prompt.find("<|close|>call<|sep|>") - at);
}

std::string argument(const std::string& key, const std::string& type, const std::string& value) {
  return "<|open|>argument key=\"" + key + "\" type=\"" + type + "\"<|sep|>" + value + "<|close|>argument<|sep|>";
}

TEST(KimiXtml, WritesArgumentsByTheirTypes) {
  EXPECT_EQ(arguments_shown(R"({"z":-12,"e":1e-5,"n":null,"t":true,"f":false,"s":"say \"é\" \\ <|sep|>","y":"2024",
                                "o":{"b":{},"a":1.0},"l":[]})"),
            argument("z", "number", "-12") + argument("e", "number", "1e-05") + argument("n", "null", "null") +
                argument("t", "boolean", "true") + argument("f", "boolean", "false") +
                argument("s", "string", "say \"é\" \\ <|sep|>") + argument("y", "string", "2024") +
                argument("o", "object", R"({"b": {}, "a": 1.0})") + argument("l", "array", "[]"));
  EXPECT_EQ(arguments_shown(R"("{\" k\\\"&\": \"\"}")"), argument(" k&quot;&amp;", "string", ""));
}

TEST(KimiXtml, WritesNoArgumentsForBlankOrNullOnes) {
  for (const char* arguments : {"null", "{}", R"("")", R"(" \n")", R"("null")", R"("{}")"}) {
    EXPECT_EQ(arguments_shown(arguments), "") << arguments;
  }
}

TEST(KimiXtml, WritesBrokenJsonAsOneBlock) {
  EXPECT_EQ(arguments_shown(R"("{\"a\": <|close|>")"),
            "<|open|>json type=\"object\"<|sep|>{\"a\": <|close|><|close|>json<|sep|>");
}

TEST(KimiXtml, RefusesArgumentsThatAreNoObject) {
  for (const char* arguments : {"[1]", "5", "\\\"text\\\"", "true"}) {
    EXPECT_EQ(refusal(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" +
                      std::string(arguments) + "\"}}]}"),
              "the arguments of a tool call are JSON, but not an object");
  }
}

TEST(KimiXtml, RefusesArgumentsBeyondTheBoundsOfJson) {
  const std::string deep = testing::repeat("[", 101) + testing::repeat("]", 101);
  EXPECT_EQ(refusal(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" + deep + "\"}}]}"),
            "the arguments of a tool call: JSON is nested deeper than is allowed");
}

const std::string kTwoCalls =
    R"({"role":"assistant","tool_calls":[{"id":"a","function":{"name":"first"}},{"id":"b","function":{"name":"second"}}]},)";

/// The prompt behind the two calls.
std::string results_shown(const std::string& results) {
  return conversation(kTwoCalls + results).substr(conversation(kTwoCalls + kHi).find("<|end_of_msg|>") + 14);
}

std::string result(const std::string& tool, const std::string& index, const std::string& content) {
  return "<|open|>message role=\"tool\" tool=\"" + tool + "\" index=\"" + index + "\"<|sep|>" + content +
         "<|close|>message<|sep|><|end_of_msg|>";
}

TEST(KimiXtml, SortsResultsThatAllNameTheirCalls) {
  EXPECT_EQ(results_shown(R"({"role":"tool","tool_call_id":"b","content":"2","name":"other"},
                             {"role":"tool","tool_call_id":"a","content":"1"},
                             {"role":"tool","id":"a","content":"1 again"})"),
            result("first", "1", "1") + result("first", "2", "1 again") + result("second", "3", "2"));
}

TEST(KimiXtml, KeepsTheOrderOfResultsWhenOneNamesNoCall) {
  EXPECT_EQ(results_shown(R"({"role":"tool","tool_call_id":"b","content":"2"},
                             {"role":"tool","tool_call_id":"x","content":"1"})"),
            result("first", "1", "2") + result("second", "2", "1"));
  EXPECT_EQ(results_shown(R"({"role":"tool","tool_call_id":"b","content":"2","tool":"t","name":"n"},
                             {"role":"tool","content":"1","name":"n"})"),
            result("t", "1", "2") + result("n", "2", "1"));
}

TEST(KimiXtml, CountsResultsSinceTheLastAssistantMessage) {
  EXPECT_EQ(results_shown(R"({"role":"tool","tool_call_id":"b","content":"2"},)" + kHi +
                          R"(,{"role":"tool","tool_call_id":"a","content":"1"})"),
            result("second", "1", "2") + kHiPrompt + result("first", "2", "1"));
  EXPECT_EQ(conversation(kTwoCalls + kTwoCalls + R"({"role":"tool","content":"1"})")
                .substr(2 * conversation(kTwoCalls.substr(0, kTwoCalls.size() - 1)).size()),
            result("first", "1", "1"));
}

TEST(KimiXtml, RefusesAResultOfAnUnknownTool) {
  EXPECT_EQ(refusal(R"({"role":"tool","content":"1"})"),
            "a tool message says neither the tool nor a call that it answers");
  EXPECT_EQ(refusal(kTwoCalls + R"({"role":"tool","content":"1"},{"role":"tool","content":"2"},
                                   {"role":"tool","content":"3"})"),
            "a tool message says neither the tool nor a call that it answers");
}

TEST(KimiXtml, GoesOnAfterAGenerationPromptWithTheSameText) {
  const std::string answer = R"({"role":"assistant","content":"a","reasoning":"r"})";
  for (const char* more : {"\"thinking\":true", "\"thinking\":false"}) {
    const std::string asked = request(kHi, more);
    EXPECT_TRUE(request(kHi + "," + answer + "," + kHi, more).starts_with(asked)) << more;
  }
}

TEST(KimiXtml, HasThePublishersNameStopsAndSampling) {
  EXPECT_STREQ(kKimiXtml.name, "kimi-k3");
  EXPECT_TRUE(kKimiXtml.has_thinking);
  ASSERT_EQ(kKimiXtml.stops.size(), 2u);
  EXPECT_EQ(kKimiXtml.stops[0].name(), "<|end_of_msg|>");
  EXPECT_EQ(kKimiXtml.stops[1].name(), "[EOS]");
  ASSERT_TRUE(kKimiXtml.sampling);
  EXPECT_EQ(kKimiXtml.sampling->temperature, 1.0);
  EXPECT_EQ(kKimiXtml.sampling->top_p, 0.95);
}

}  // namespace
}  // namespace headrace
