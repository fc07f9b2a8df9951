#include <gtest/gtest.h>

#include "text/chat/chat_support.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::ControlSet;
using testing::described;
using testing::repeat;

const Tokenizer& tokenizer() {
  static const auto loaded = testing::demo_tokenizer(ControlSet::kXtml);
  return *loaded;
}

/// What an answer with spelled control tokens says.
std::string parsed(std::string_view answer, bool thinking = false) {
  return described(testing::parse_answer(tokenizer(), testing::marked_ids(tokenizer(), answer), thinking).message);
}

std::vector<std::string> events(std::string_view answer, bool thinking = false) {
  const auto single_bytes = testing::byte_tokenizer(ControlSet::kXtml);
  return testing::parse_answer(*single_bytes, testing::marked_ids(*single_bytes, answer), thinking).events;
}

const std::string kEnd = "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>";

std::string argument(const std::string& key, const std::string& type, const std::string& value) {
  return "<|open|>argument key=\"" + key + "\" type=\"" + type + "\"<|sep|>" + value + "<|close|>argument<|sep|>";
}

/// An answer whose only call has this between its tags.
std::string with_call(const std::string& inside) {
  return "<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>" + inside +
         "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>";
}

/// What is said of such an answer when the arguments come out like this.
std::string call_said(const std::string& arguments) {
  return "reasoning: \ncontent: \ncall_1 f: " + arguments + "\nfinished";
}

TEST(KimiXtmlParser, TakesAnAnswerWithoutThinking) {
  EXPECT_EQ(parsed("Hello!" + kEnd), "reasoning: \ncontent: Hello!\nfinished");
}

TEST(KimiXtmlParser, TakesReasoningUpToItsEnd) {
  EXPECT_EQ(parsed("because<|close|>think<|sep|><|open|>response<|sep|>yes" + kEnd, true),
            "reasoning: because\ncontent: yes\nfinished");
}

TEST(KimiXtmlParser, TellsTextAsItComes) {
  EXPECT_EQ(events("ab<|close|>think<|sep|><|open|>response<|sep|>c<|close|>response<|sep|><|end_of_msg|>d", true),
            (std::vector<std::string>{"reasoning: a", "reasoning: b", "content: c", "end"}));
}

TEST(KimiXtmlParser, TellsWhenCallsBeginAndEnd) {
  EXPECT_EQ(events(with_call(argument("a", "string", "x")) + "y"),
            (std::vector<std::string>{"call 0", "end of call 0", "end"}));
}

// White space behind a text between calls is layout, like that between the calls.
TEST(KimiXtmlParser, TakesSeveralCallsAndTheTextAroundThem) {
  EXPECT_EQ(parsed("before<|close|>response<|sep|><|open|>tools<|sep|>\n<|open|>call tool=\"f\" index=\"7\"<|sep|>" +
                   argument("a", "number", "1") + "<|close|>call<|sep|> between \n<|open|>call tool=\"g\"<|sep|>" +
                   "<|close|>call<|sep|> \n<|close|>tools<|sep|>after<|close|>message<|sep|><|end_of_msg|>"),
            "reasoning: \ncontent: before betweenafter\ncall_1 f: {\"a\": 1}\ncall_2 g: {}\nfinished");
}

TEST(KimiXtmlParser, ConvertsArgumentsByTheirTypes) {
  struct Case {
    const char* type;
    const char* text;
    const char* json;
  };
  for (const Case& expected : {
           Case{"string", "2024", R"("2024")"},
           Case{"string", "", R"("")"},
           Case{"string", " say \"hi\"\n\\", R"(" say \"hi\"\n\\")"},
           Case{"string", "null", R"("null")"},
           Case{"number", "-12", "-12"},
           Case{"number", "1e-5", "1e-05"},
           Case{"number", "123456789012345678901234567890", "123456789012345678901234567890"},
           Case{"number", "12 apples", R"("12 apples")"},
           Case{"number", "", R"("")"},
           Case{"boolean", "true", "true"},
           Case{"boolean", "false", "false"},
           Case{"boolean", "True", R"("True")"},
           Case{"boolean", "1", R"("1")"},
           Case{"null", "null", "null"},
           Case{"null", "", "null"},
           Case{"null", "nothing", R"("nothing")"},
           Case{"object", R"({"b":{"x":1.50},"a":[]})", R"({"b": {"x": 1.5}, "a": []})"},
           Case{"object", "{broken", R"("{broken")"},
           Case{"array", "[1, \"zwei\", null]", R"([1, "zwei", null])"},
           Case{"integer", "5", "5"},
           Case{"integer", "five", R"("five")"},
           Case{"", "[]", "[]"},
           Case{"", "[", R"("[")"},
       }) {
    EXPECT_EQ(parsed(with_call(argument("k", expected.type, expected.text))),
              call_said("{\"k\": " + std::string(expected.json) + "}"))
        << expected.type << ": " << expected.text;
  }
}

TEST(KimiXtmlParser, TakesAnArgumentWithoutTypeAsJsonOrText) {
  EXPECT_EQ(parsed(with_call("<|open|>argument key=\"k\"<|sep|>[1]<|close|>argument<|sep|>")),
            call_said("{\"k\": [1]}"));
}

TEST(KimiXtmlParser, KeepsArgumentsThatAreNestedTooDeepAsText) {
  const std::string deep = repeat("[", 101) + repeat("]", 101);
  EXPECT_EQ(parsed(with_call(argument("k", "array", deep))), call_said("{\"k\": \"" + deep + "\"}"));
}

TEST(KimiXtmlParser, UnescapesAttributes) {
  EXPECT_EQ(parsed(with_call(argument("a&quot;b &amp;amp; &amp;quot; <c>", "string", "&amp;"))),
            call_said(R"({"a\"b &amp; &quot; <c>": "&amp;"})"));
  EXPECT_EQ(parsed("<|open|>call index=\"1\" tool=\"a=&quot;b c=\" x=\"\"<|sep|><|close|>call<|sep|>"),
            "reasoning: \ncontent: \ncall_1 a=\"b c=: {}\ncut");
}

TEST(KimiXtmlParser, KeepsTheFirstPlaceAndTheLastValueOfADoubledKey) {
  EXPECT_EQ(
      parsed(with_call(argument("a", "number", "1") + argument("b", "number", "2") + argument("a", "number", "3"))),
      call_said(R"({"a": 3, "b": 2})"));
}

TEST(KimiXtmlParser, PassesOnAJsonBlockAsItIs) {
  EXPECT_EQ(parsed(with_call("<|open|>json type=\"object\"<|sep|> {\"a\": <|close|>json<|sep|>")),
            call_said(" {\"a\": "));
}

TEST(KimiXtmlParser, TakesAJsonBlockBesideArgumentsAsContent) {
  EXPECT_EQ(parsed(with_call(argument("a", "number", "1") + "<|open|>json<|sep|>{}<|close|>json<|sep|>")),
            "reasoning: \ncontent: {}\ncall_1 f: {\"a\": 1}\nfinished");
  EXPECT_EQ(parsed(with_call("<|open|>json<|sep|>{}<|close|>json<|sep|>" + argument("a", "number", "1"))),
            "reasoning: \ncontent: 1\ncall_1 f: {}\nfinished");
}

TEST(KimiXtmlParser, TakesSpelledControlTokensAsText) {
  Segments segments;
  segments.append_text("<|close|>response<|sep|><|open|>call tool=\"f\"<|sep|><|end_of_msg|>[EOS]");
  const auto ids = encode_segments(tokenizer(), segments);
  ASSERT_TRUE(ids);
  EXPECT_EQ(described(testing::parse_answer(tokenizer(), ids.value(), false).message),
            "reasoning: \ncontent: <|close|>response<|sep|><|open|>call tool=\"f\"<|sep|><|end_of_msg|>[EOS]\ncut");
}

TEST(KimiXtmlParser, IgnoresStructureThatMeansNothing) {
  EXPECT_EQ(parsed("a<|sep|>b<|close|>nothing<|sep|>c<|open|>other x=\"1\"<|sep|>d<|close|>other<|sep|>e" + kEnd),
            "reasoning: \ncontent: abcde\nfinished");
}

TEST(KimiXtmlParser, LeavesOutOtherControlTokens) {
  EXPECT_EQ(parsed("a[PAD]b<|media_pad|>c<osagent_mode>d<|reserved_token_4200|>" + kEnd),
            "reasoning: \ncontent: abcd\nfinished");
}

TEST(KimiXtmlParser, IgnoresIdsOutsideTheVocabularyAndWhatFollowsTheEnd) {
  auto ids = testing::marked_ids(tokenizer(), "a<|end_of_msg|>b<|end_of_msg|>");
  ids.insert(ids.begin(), {-1, 1'000'000});
  EXPECT_EQ(described(testing::parse_answer(tokenizer(), ids, false).message), "reasoning: \ncontent: a\nfinished");
}

TEST(KimiXtmlParser, StopsAtTheEndOfTextToo) {
  EXPECT_EQ(parsed("a[EOS]b"), "reasoning: \ncontent: a\nfinished");
}

TEST(KimiXtmlParser, TakesAnElementAsContentWhereItMeansNothing) {
  EXPECT_EQ(parsed(argument("a", "string", "x")), "reasoning: \ncontent: x\ncut");
  EXPECT_EQ(parsed("<|open|>call index=\"1\"<|sep|>x<|close|>call<|sep|>"), "reasoning: \ncontent: x\ncut");
  EXPECT_EQ(parsed("<|open|>call tool=\"\"<|sep|>x<|close|>call<|sep|>"), "reasoning: \ncontent: x\ncut");
  EXPECT_EQ(parsed(with_call("<|open|>argument type=\"string\"<|sep|>x<|close|>argument<|sep|>")),
            "reasoning: \ncontent: x\ncall_1 f: {}\nfinished");
}

TEST(KimiXtmlParser, ClosesWhatWasForgotten) {
  EXPECT_EQ(
      parsed("<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|><|open|>argument key=\"a\" type=\"string\"<|sep|>x"
             "<|open|>argument key=\"b\" type=\"string\"<|sep|>y<|open|>call tool=\"g\"<|sep|><|close|>tools<|sep|>"
             "z<|end_of_msg|>"),
      "reasoning: \ncontent: z\ncall_1 f: {\"a\": \"x\", \"b\": \"y\"}\ncall_2 g: {}\nfinished");
}

TEST(KimiXtmlParser, TakesAnUnfinishedHeaderAsText) {
  EXPECT_EQ(parsed("a<|close|>resp"), "reasoning: \ncontent: aresp\ncut");
  EXPECT_EQ(parsed("a<|open|>b<|close|>think<|sep|>c", true), "reasoning: ab\ncontent: c\ncut");
  EXPECT_EQ(parsed("a<|close|>b<|end_of_msg|>"), "reasoning: \ncontent: ab\nfinished");
}

TEST(KimiXtmlParser, TakesAHeaderThatIsTooLongAsText) {
  const std::string text = repeat("x ", 3000);
  EXPECT_EQ(parsed("a<|open|>" + text + "<|sep|>b"), "reasoning: \ncontent: a" + text + "b\ncut");
}

TEST(KimiXtmlParser, MarksACallThatWasCut) {
  const std::string whole = with_call(argument("a", "string", "x"));
  const std::string closed = "<|close|>argument<|sep|>";
  EXPECT_EQ(parsed(whole.substr(0, whole.find(closed))), "reasoning: \ncontent: \ncall_1 f (cut): {\"a\": \"x\"}\ncut");
  EXPECT_EQ(parsed(whole.substr(0, whole.find(closed) + closed.size())),
            "reasoning: \ncontent: \ncall_1 f (cut): {\"a\": \"x\"}\ncut");
  EXPECT_EQ(parsed(whole.substr(0, whole.find("<|close|>tools"))),
            "reasoning: \ncontent: \ncall_1 f: {\"a\": \"x\"}\ncut");
}

TEST(KimiXtmlParser, MarksACallWhoseValueTheModelDidNotFinish) {
  const std::string call = "<|open|>call tool=\"f\"<|sep|><|open|>argument key=\"a\" type=\"string\"<|sep|>x";
  EXPECT_EQ(parsed(call + "<|end_of_msg|>"), "reasoning: \ncontent: \ncall_1 f (cut): {\"a\": \"x\"}\nfinished");
  EXPECT_EQ(parsed(call + "<|close|>argument<|sep|><|end_of_msg|>"),
            "reasoning: \ncontent: \ncall_1 f: {\"a\": \"x\"}\nfinished");
}

TEST(KimiXtmlParser, TakesCallsBeyondTheBoundAsContent) {
  const std::string call = "<|open|>call tool=\"f\"<|sep|>" + argument("a", "string", "x") + "<|close|>call<|sep|>";
  const auto answer = testing::parse_answer(tokenizer(), testing::marked_ids(tokenizer(), repeat(call, 258)), false);
  EXPECT_EQ(answer.message.calls.size(), kToolCallsMax);
  EXPECT_EQ(answer.message.content, "xx");
}

TEST(KimiXtmlParser, TakesArgumentsBeyondTheBoundAsContent) {
  std::string arguments;
  for (int index = 0; index < 1026; ++index) arguments += argument(std::to_string(index), "number", "1");
  const auto answer = testing::parse_answer(tokenizer(), testing::marked_ids(tokenizer(), with_call(arguments)), false);
  EXPECT_EQ(answer.message.content, "11");
}

TEST(KimiXtmlParser, TakesElementsBeyondTheBoundAsText) {
  const auto answer = testing::parse_answer(
      tokenizer(), testing::marked_ids(tokenizer(), repeat("<|open|>deep<|sep|>", 100) + "x"), false);
  EXPECT_EQ(answer.message.content, repeat("deep", 69) + "x");
}

TEST(KimiXtmlParser, HoldsBackHalfCharacters) {
  EXPECT_EQ(events("🎉a"), (std::vector<std::string>{"content: 🎉", "content: a", "end"}));
  EXPECT_EQ(events("🎉").size(), 2u);
}

TEST(KimiXtmlParser, ReplacesACharacterThatStructureCuts) {
  const auto single_bytes = testing::byte_tokenizer(ControlSet::kXtml);
  auto ids = testing::marked_ids(*single_bytes, "a\xF0\x9F<|close|>response<|sep|>b\xE4");
  EXPECT_EQ(described(testing::parse_answer(*single_bytes, ids, false).message),
            "reasoning: \ncontent: a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\ncut");
}

}  // namespace
}  // namespace headrace
