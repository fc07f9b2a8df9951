#include "engine/chat_answer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace headrace {
namespace {

using Kind = ChatEvent::Kind;

/// Gives for each id the events that a test wrote down, and for the end those of id -1.
class ScriptedParser final : public ChatParser {
 public:
  explicit ScriptedParser(std::map<TokenId, std::vector<ChatEvent>> script) : script_(std::move(script)) {}

  std::vector<ChatEvent> push(TokenId id) override { return take(id); }
  std::vector<ChatEvent> finish() override { return take(-1); }
  const ParsedMessage& message() const override { return message_; }

 private:
  std::vector<ChatEvent> take(TokenId id) {
    const auto found = script_.find(id);
    if (found == script_.end()) return {};
    for (const ChatEvent& event : found->second) {
      if (event.kind == Kind::kReasoning) message_.reasoning += event.text;
      if (event.kind == Kind::kContent) message_.content += event.text;
      if (event.kind == Kind::kCallBegun) message_.calls.push_back({"call_1", "look", "", false});
      if (event.kind == Kind::kCallEnded) {
        message_.calls.back().arguments = event.text;
        message_.calls.back().is_complete = event.text.ends_with('}');
      }
    }
    return found->second;
  }

  std::map<TokenId, std::vector<ChatEvent>> script_;
  ParsedMessage message_;
};

/// What a receiver saw: one line per piece.
struct Seen {
  std::vector<std::string> pieces;
  size_t pieces_max = SIZE_MAX;

  bool operator()(const AnswerPiece& piece) {
    const char* const kinds[] = {"text", "reasoning", "content", "call"};
    pieces.push_back(std::string(kinds[static_cast<size_t>(piece.kind)]) + " " + std::to_string(piece.id) + ": " +
                     std::string(piece.text));
    return pieces.size() < pieces_max;
  }
};

ChatAnswer answer_of(std::map<TokenId, std::vector<ChatEvent>> script, std::vector<std::string> stops, Seen& seen) {
  return {std::make_unique<ScriptedParser>(std::move(script)), AnswerText::create(std::move(stops)).take_value(), seen};
}

using Pieces = std::vector<std::string>;

TEST(ChatAnswer, HandsOverEveryKindWithItsToken) {
  Seen seen;
  ChatAnswer answer = answer_of({{1, {{Kind::kReasoning, "think"}}},
                                 {2, {{Kind::kContent, "say"}}},
                                 {3, {{Kind::kCallBegun, ""}}},
                                 {4, {{Kind::kCallEnded, "{}"}, {Kind::kEnded, ""}}}},
                                {}, seen);
  for (const TokenId id : {1, 2, 3}) EXPECT_EQ(answer.add(id, "ignored"), std::nullopt);
  EXPECT_EQ(answer.add(4, ""), Finish::kStop);
  EXPECT_EQ(answer.end(Finish::kStop), Finish::kToolCalls);
  EXPECT_EQ(seen.pieces,
            (Pieces{"reasoning 1: think", "content 2: say",
                    R"(call 4: {"index":0,"id":"call_1","name":"look","arguments":"{}","complete":true})"}));
}

TEST(ChatAnswer, StopStringsEndTheContentAcrossTokensButNotTheReasoning) {
  Seen seen;
  ChatAnswer answer = answer_of({{1, {{Kind::kReasoning, "a STOP in thoughts"}}},
                                 {2, {{Kind::kContent, "go ST"}}},
                                 {3, {{Kind::kContent, "OP on"}}}},
                                {"STOP"}, seen);
  EXPECT_EQ(answer.add(1, ""), std::nullopt);
  EXPECT_EQ(answer.add(2, ""), std::nullopt);
  EXPECT_EQ(answer.add(3, ""), Finish::kStop);
  EXPECT_EQ(answer.end(Finish::kStop), Finish::kStop);
  EXPECT_EQ(seen.pieces, (Pieces{"reasoning 1: a STOP in thoughts", "content 2: go "}));
  EXPECT_EQ(answer.message().content, "go ");
  EXPECT_EQ(answer.message().reasoning, "a STOP in thoughts");
}

TEST(ChatAnswer, HeldBackContentIsReleasedAtTheEnd) {
  Seen seen;
  ChatAnswer answer = answer_of({{1, {{Kind::kContent, "go ST"}}}}, {"STOP"}, seen);
  EXPECT_EQ(answer.add(1, ""), std::nullopt);
  EXPECT_EQ(answer.end(Finish::kLength), Finish::kLength);
  EXPECT_EQ(seen.pieces, (Pieces{"content 1: go ", "content -1: ST"}));
  EXPECT_EQ(answer.message().content, "go ST");
}

TEST(ChatAnswer, AStopStringDoesNotReachOverACall) {
  Seen seen;
  ChatAnswer answer = answer_of({{1, {{Kind::kContent, "ST"}}},
                                 {2, {{Kind::kCallBegun, ""}, {Kind::kCallEnded, "{}"}}},
                                 {3, {{Kind::kContent, "OP"}}}},
                                {"STOP"}, seen);
  for (const TokenId id : {1, 2, 3}) EXPECT_EQ(answer.add(id, ""), std::nullopt);
  answer.end(Finish::kStop);
  EXPECT_EQ(answer.message().content, "STOP");
}

// A limit inside a call is "length": half a call must not be carried out.
TEST(ChatAnswer, ACallThatWasCutIsNotTheMessagesAndNoReasonToCarryItOut) {
  Seen seen;
  ChatAnswer answer =
      answer_of({{1, {{Kind::kCallBegun, ""}}}, {-1, {{Kind::kCallEnded, "{\"a\":"}, {Kind::kEnded, ""}}}}, {}, seen);
  EXPECT_EQ(answer.add(1, ""), std::nullopt);
  EXPECT_EQ(answer.end(Finish::kLength), Finish::kLength);
  ASSERT_EQ(seen.pieces.size(), 1u);
  EXPECT_NE(seen.pieces[0].find(R"("complete":false)"), std::string::npos);
  EXPECT_EQ(message_json(answer.message()), R"({"role":"assistant","content":""})");
}

TEST(ChatAnswer, TheRestOfATokenThatWasCancelledIsPartOfTheMessage) {
  Seen seen{.pieces_max = 1};
  ChatAnswer answer = answer_of({{1, {{Kind::kReasoning, "a"}, {Kind::kContent, "b"}}}}, {}, seen);
  EXPECT_EQ(answer.add(1, ""), Finish::kCancelled);
  answer.end(Finish::kCancelled);
  EXPECT_EQ(seen.pieces, (Pieces{"reasoning 1: a"}));
  EXPECT_EQ(answer.message().content, "b");
}

TEST(ChatAnswer, AReceiverThatWantsNoMoreCancels) {
  Seen seen{.pieces_max = 1};
  ChatAnswer answer = answer_of({{1, {{Kind::kContent, "a"}}}, {2, {{Kind::kContent, "b"}}}}, {}, seen);
  EXPECT_EQ(answer.add(1, ""), Finish::kCancelled);
  EXPECT_EQ(answer.end(Finish::kCancelled), Finish::kCancelled);
  EXPECT_EQ(answer.message().content, "a");
}

TEST(ChatAnswer, ACallWhoseArgumentsAreNoObjectIsNoCall) {
  for (const auto& [arguments, is_callable] :
       {std::pair{"{\"a\":1}", true}, {"[1]", false}, {"7", false}, {"not JSON", true}, {"", true}, {"null", true}}) {
    const ParsedCall call{"call_1", "look", arguments, true};
    const std::string complete = is_callable ? R"("complete":true)" : R"("complete":false)";
    EXPECT_NE(tool_call_json(call, 0).find(complete), std::string::npos) << arguments;
    EXPECT_EQ(message_json({.calls = {call}}).find("tool_calls") != std::string::npos, is_callable) << arguments;
  }
}

TEST(ChatAnswer, AMessageGoesBackAsItIs) {
  const ParsedMessage message{.reasoning = "why",
                              .content = "text \"quoted\"",
                              .calls = {{"c1", "look", R"({"a":1})", true}, {"c2", "cut", "", false}},
                              .is_finished = true};
  EXPECT_EQ(message_json(message),
            R"({"role":"assistant","content":"text \"quoted\"","reasoning_content":"why","tool_calls":[{"id":"c1",)"
            R"("type":"function","function":{"name":"look","arguments":"{\"a\":1}"}}]})");
}

}  // namespace
}  // namespace headrace
