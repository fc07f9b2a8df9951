#include "text/chat/chat_request.h"

#include <gtest/gtest.h>

#include "text/chat/chat_support.h"
#include "text/chat/json_writer.h"
#include "text/chat/white_space.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::repeat;
using testing::request_of;

/// A request whose only message is this.
std::string with_message(const std::string& message) {
  return "{\"messages\":[" + message + "]}";
}

/// A request of one message, and these other keys.
std::string with_keys(const std::string& keys) {
  return R"({"messages":[{"role":"user","content":"Hi"}],)" + keys + "}";
}

void expect_refused(const std::string& json, const char* message, Code code = Code::kArgument) {
  const auto request = parse_chat_request(json);
  ASSERT_FALSE(request) << json;
  EXPECT_EQ(request.error().message, message);
  EXPECT_EQ(request.error().code, code) << message;
}

TEST(ChatRequest, TakesTheShortestRequest) {
  const ChatRequest request = request_of(R"({"messages":[{"role":"user","content":"Hi"}]})");
  ASSERT_EQ(request.messages.size(), 1u);
  EXPECT_EQ(request.messages[0].role, ChatRole::kUser);
  ASSERT_EQ(request.messages[0].content.size(), 1u);
  EXPECT_EQ(request.messages[0].content[0].text, "Hi");
  EXPECT_TRUE(request.tools.empty());
  EXPECT_TRUE(request.thinking);
  EXPECT_EQ(request.effort, ThinkingEffort::kDefault);
  EXPECT_EQ(request.tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(request.response_format.kind, ResponseFormat::Kind::kText);
  EXPECT_TRUE(request.add_generation_prompt);
}

TEST(ChatRequest, TakesEverythingAConversationCanHold) {
  const ChatRequest request = request_of(R"({"messages":[
      {"role":"system","content":"Be brief.","name":"s"},
      {"role":"developer","tools":[{"type":"function"}]},
      {"role":"user","content":[{"type":"text","text":"a"},{"text":"b"}],"name":"Ann"},
      {"role":"assistant","content":null,"reasoning_content":"why","refusal":null,"annotations":[],
       "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},
                     {"function":{"name":"g","arguments":{"y":[1.50,null]}}},
                     {"function":{"name":"h"}}]},
      {"role":"tool","tool_call_id":"c1","content":"18C","tool":"f"},
      {"role":"assistant","content":"done","reasoning":"other"}],
    "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required",
    "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},
    "reasoning_effort":"low","thinking":true,"enable_thinking":true,"add_generation_prompt":false})");
  const auto& messages = request.messages;
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].name, "s");
  EXPECT_EQ(messages[1].role, ChatRole::kSystem);
  EXPECT_EQ(messages[1].tools.size(), 1u);
  ASSERT_EQ(messages[2].content.size(), 2u);
  EXPECT_EQ(messages[2].content[1].text, "b");
  EXPECT_TRUE(messages[3].content.empty());
  EXPECT_EQ(messages[3].reasoning, "why");
  ASSERT_EQ(messages[3].tool_calls.size(), 3u);
  EXPECT_EQ(messages[3].tool_calls[0].id, "c1");
  EXPECT_EQ(messages[3].tool_calls[0].arguments, "{\"x\": 1}");
  EXPECT_EQ(messages[3].tool_calls[1].arguments, "{\"y\": [1.5, null]}");
  EXPECT_EQ(messages[3].tool_calls[2].arguments, "{}");
  EXPECT_EQ(messages[4].tool_call_id, "c1");
  EXPECT_EQ(messages[4].tool, "f");
  EXPECT_EQ(messages[5].reasoning, "other");
  EXPECT_EQ(request.tools.size(), 1u);
  EXPECT_EQ(request.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(sorted_json(request.response_format.schema), R"({"type":"object"})");
  EXPECT_EQ(request.effort, ThinkingEffort::kLow);
  EXPECT_FALSE(request.add_generation_prompt);
}

TEST(ChatRequest, TakesNullForWhatIsNotThere) {
  const ChatRequest request = request_of(
      R"({"messages":[{"role":"assistant","content":null,"name":null,"reasoning_content":null,"tool_calls":null,
          "tool_call_id":null,"tools":null}],"tools":null,"tool_choice":null,"response_format":null,
          "thinking":null,"add_generation_prompt":null})");
  EXPECT_TRUE(request.thinking);
  EXPECT_TRUE(request.add_generation_prompt);
  EXPECT_EQ(request.effort, ThinkingEffort::kDefault);
}

TEST(ChatRequest, KeepsEscapedQuotesAndZeroBytesInValues) {
  const ChatRequest request = request_of(R"({"messages":[{"role":"user","content":"say \"hi\\\" \u0000 end"}]})");
  EXPECT_EQ(request.messages[0].content[0].text, std::string("say \"hi\\\" \0 end", 15));
}

struct Thinking {
  const char* keys;
  bool thinking;
  ThinkingEffort effort;
};

TEST(ChatRequest, ReadsHowMuchToThink) {
  using enum ThinkingEffort;
  for (const Thinking& expected :
       {Thinking{R"("reasoning_effort":"none")", false, kDefault}, Thinking{R"("reasoning_effort":"low")", true, kLow},
        Thinking{R"("reasoning_effort":"high")", true, kHigh}, Thinking{R"("reasoning_effort":"max")", true, kMax},
        Thinking{R"("reasoning_effort":null)", true, kUnsaid}, Thinking{R"("thinking":false)", false, kDefault},
        Thinking{R"("enable_thinking":false,"reasoning_effort":"low")", false, kLow},
        Thinking{R"("thinking":false,"reasoning_effort":"none")", false, kDefault},
        Thinking{R"("enable_thinking":true)", true, kDefault}}) {
    const ChatRequest request = request_of(with_keys(expected.keys));
    EXPECT_EQ(request.thinking, expected.thinking) << expected.keys;
    EXPECT_EQ(request.effort, expected.effort) << expected.keys;
  }
}

TEST(ChatRequest, RefusesSettingsItDoesNotKnow) {
  expect_refused(with_keys(R"("reasoning_effort":"medium")"),
                 R"(reasoning_effort: "medium" is none of "none", "low", "high", "max")");
  expect_refused(with_keys(R"("reasoning_effort":3)"), "reasoning_effort: not a string");
  expect_refused(with_keys(R"("thinking":true,"enable_thinking":false)"),
                 "thinking and enable_thinking contradict each other");
  expect_refused(with_keys(R"("thinking":true,"reasoning_effort":"none")"),
                 "reasoning_effort: \"none\" contradicts thinking");
  expect_refused(with_keys(R"("thinking":"yes")"), "thinking: not true or false");
  expect_refused(with_keys(R"("tool_choice":"any")"), R"(tool_choice: "any" is none of "auto", "none", "required")");
  expect_refused(with_keys(R"("tool_choice":1)"), "tool_choice: not a string");
  expect_refused(with_keys(R"("add_generation_prompt":0)"), "add_generation_prompt: not true or false");
  expect_refused(with_keys(R"("response_format":"json")"), "response_format: not an object");
  expect_refused(with_keys(R"("response_format":{"type":"xml"})"),
                 R"(response_format.type: "xml" is none of "text", "json_object", "json_schema")");
  expect_refused(with_keys(R"("response_format":{"type":"json_schema"})"), "response_format.json_schema: missing");
  expect_refused(with_keys(R"("response_format":{"type":"json_schema","json_schema":{"schema":1}})"),
                 "response_format.json_schema.schema: not an object");
  expect_refused(with_keys(R"("tools":{})"), "tools: not a list");
  expect_refused(with_keys(R"("tools":[{},1])"), "tools[1]: not an object");
}

TEST(ChatRequest, FindsTheSchemaInItsThreePlaces) {
  for (const char* format :
       {R"({"schema":{"a":1},"json_schema":{"b":1}})", R"({"json_schema":{"a":1}})", R"({"a":1})"}) {
    const ChatRequest request =
        request_of(with_keys(R"("response_format":{"type":"json_schema","json_schema":)" + std::string(format) + "}"));
    EXPECT_EQ(sorted_json(request.response_format.schema), R"({"a":1})") << format;
  }
}

TEST(ChatRequest, NamesKeysItDoesNotKnow) {
  expect_refused(with_keys(R"("temperature":1)"), "\"temperature\": no such key in a chat request");
  expect_refused(with_keys(R"("a\u0000\nb":1)"), R"("a\u0000\nb": no such key in a chat request)");
  expect_refused(with_keys("\"" + repeat("é", 100) + "\":1"),
                 ("\"" + repeat("é", 32) + "\"...: no such key in a chat request").c_str());
}

TEST(ChatRequest, NamesThePlaceOfAWrongType) {
  expect_refused("[]", "chat request: not a JSON object");
  expect_refused("{}", "messages: missing");
  expect_refused(R"({"messages":{}})", "messages: not a list");
  expect_refused(R"({"messages":[]})", "messages: empty");
  expect_refused(with_message("1"), "messages[0]: not an object");
  expect_refused(with_message(R"({"content":"Hi"})"),
                 R"(messages[0].role: "" is none of "system", "developer", "user", "assistant", "tool")");
  expect_refused(with_message(R"({"role":"function"})"),
                 R"(messages[0].role: "function" is none of "system", "developer", "user", "assistant", "tool")");
  expect_refused(with_message(R"({"role":["user"]})"), "messages[0].role: not a string");
  expect_refused(with_message(R"({"role":"user","content":{}})"),
                 "messages[0].content: not a string, a list of parts, or null");
  expect_refused(with_message(R"({"role":"user","content":"a"},{"role":"user","content":[{"text":"a"},"b"]})"),
                 "messages[1].content[1]: not an object");
  expect_refused(with_message(R"({"role":"user","content":[{"type":"text","text":1}]})"),
                 "messages[0].content[0].text: not a string");
  expect_refused(with_message(R"({"role":"user","content":[{"type":"text"}]})"),
                 "messages[0].content[0].text: not a string");
  expect_refused(with_message(R"({"role":"user","content":[{"type":"audio","text":""}]})"),
                 R"(messages[0].content[0].type: "audio" is none of "text", "image", "image_url")");
  expect_refused(with_message(R"({"role":"user","name":1})"), "messages[0].name: not a string");
  expect_refused(with_message(R"({"role":"assistant","reasoning":[]})"), "messages[0].reasoning: not a string");
  expect_refused(with_message(R"({"role":"tool","tool_call_id":5})"), "messages[0].tool_call_id: not a string");
  expect_refused(with_message(R"({"role":"system","tools":[1]})"), "messages[0].tools[0]: not an object");
}

TEST(ChatRequest, NamesThePlaceOfAWrongCall) {
  const auto call = [](const char* json) {
    return with_message(R"({"role":"assistant","tool_calls":)" + std::string(json) + "}");
  };
  expect_refused(call("{}"), "messages[0].tool_calls: not a list");
  expect_refused(call("[1]"), "messages[0].tool_calls[0]: not an object");
  expect_refused(call("[{}]"), "messages[0].tool_calls[0].function: missing");
  expect_refused(call(R"([{"type":"custom","function":{"name":"f"}}])"),
                 "messages[0].tool_calls[0].type: \"custom\" is not \"function\"");
  expect_refused(call(R"([{"function":"f"}])"), "messages[0].tool_calls[0].function: not an object");
  expect_refused(call(R"([{"function":{}}])"), "messages[0].tool_calls[0].function.name: missing or empty");
  expect_refused(call(R"([{"function":{"name":""}}])"), "messages[0].tool_calls[0].function.name: missing or empty");
  expect_refused(call(R"([{"function":{"name":"f","arguments":[]}}])"),
                 "messages[0].tool_calls[0].function.arguments: not a string or an object");
  expect_refused(with_message(R"({"role":"user","tool_calls":[{"function":{"name":"f"}}]})"),
                 "messages[0].tool_calls: only an assistant calls tools");
  expect_refused(with_message(R"({"role":"user","tools":[{}]})"),
                 "messages[0].tools: only a system message brings tools");
}

TEST(ChatRequest, RefusesImagesInWords) {
  for (const char* type : {"image", "image_url"}) {
    expect_refused(with_message(R"({"role":"user","content":[{"text":"a"},{"type":")" + std::string(type) +
                                R"(","image_url":{"url":"x"}}]})"),
                   "messages[0].content[1]: images are not supported in this version", Code::kUnsupported);
  }
}

TEST(ChatRequest, RefusesAChoiceOfOneTool) {
  expect_refused(with_keys(R"("tool_choice":{"type":"function","function":{"name":"f"}})"),
                 "tool_choice: the choice of one tool by name is not supported in this version", Code::kUnsupported);
}

TEST(ChatRequest, RefusesWhatIsNotJsonInUtf8) {
  expect_refused("", "chat request: not JSON in UTF-8, at byte 1");
  expect_refused("{\"messages\":[{\"role\":\"user\",\"content\":\"\xFF\"}]}",
                 "chat request: not JSON in UTF-8, at byte 40");
}

TEST(ChatRequest, HoldsToItsBounds) {
  const auto is_refused = [](const std::string& json) {
    const auto request = parse_chat_request(json);
    return !request && request.error().code == Code::kArgument;
  };
  const auto list = [](const std::string& element, size_t count) {
    return "[" + repeat(element + ",", count - 1) + element + "]";
  };
  const std::string message = R"({"role":"user"})";
  EXPECT_TRUE(parse_chat_request("{\"messages\":" + list(message, kChatMessagesMax) + "}"));
  EXPECT_TRUE(is_refused("{\"messages\":" + list(message, kChatMessagesMax + 1) + "}"));
  const auto calls = [&](size_t count) {
    return with_message(R"({"role":"assistant","tool_calls":)" + list(R"({"function":{"name":"f"}})", count) + "}");
  };
  EXPECT_TRUE(parse_chat_request(calls(kToolCallsMax)));
  EXPECT_TRUE(is_refused(calls(kToolCallsMax + 1)));
  EXPECT_TRUE(parse_chat_request(with_keys("\"tools\":" + list("{}", kToolsMax))));
  EXPECT_TRUE(is_refused(with_keys("\"tools\":" + list("{}", kToolsMax + 1))));
  const auto parts = [&](size_t count) {
    return with_message(R"({"role":"user","content":)" + list(R"({"text":""})", count) + "}");
  };
  EXPECT_TRUE(parse_chat_request(parts(kContentPartsMax)));
  EXPECT_TRUE(is_refused(parts(kContentPartsMax + 1)));
  EXPECT_TRUE(
      is_refused(with_message(R"({"role":"user","content":")" + repeat("a", kChatRequestBounds.bytes_max) + "\"}")));
  EXPECT_TRUE(is_refused(with_keys("\"tools\":[{\"a\":" + repeat("[", 98) + repeat("]", 98) + "}]")));
}

TEST(ChatRequest, KeepsArgumentsThatAreNotJson) {
  for (const char* text : {"", "  ", "{broken", "{'a':1}", "[1]"}) {
    const ChatRequest request = request_of(with_message(
        R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" + std::string(text) + "\"}}]}"));
    EXPECT_EQ(request.messages[0].tool_calls[0].arguments, text);
  }
}

TEST(WhiteSpace, IsWhatPythonStrips) {
  // "".join(c for c in map(chr, range(0x110000)) if not c.strip()) of Python 3.11.
  const std::string white =
      "\t\n\v\f\r\x1c\x1d\x1e\x1f \xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\x80\xE2\x80\x81\xE2\x80\x82\xE2\x80\x83"
      "\xE2\x80\x84\xE2\x80\x85\xE2\x80\x86\xE2\x80\x87\xE2\x80\x88\xE2\x80\x89\xE2\x80\x8A\xE2\x80\xA8\xE2\x80\xA9"
      "\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80";
  EXPECT_TRUE(is_blank(white));
  EXPECT_TRUE(is_blank(""));
  EXPECT_EQ(strip(white), "");
  for (const char* text : {"a", "a b", "\xE2\x80\x8B", "\xE1\xA0\x8E", "中", "\x85", "\xA0", "é", "\xEF\xBB\xBF"}) {
    EXPECT_FALSE(is_blank(text)) << text;
    EXPECT_EQ(strip(white + text + white), text);
    EXPECT_EQ(strip(text), text);
  }
}

}  // namespace
}  // namespace headrace
