#include "engine/answer_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headrace {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
  bool operator==(const Outcome&) const = default;
};

Outcome feed(const std::vector<std::string>& stops, const std::vector<std::string>& tokens) {
  AnswerText answer = AnswerText::create(stops).value();
  Outcome outcome;
  for (const std::string& token : tokens) {
    outcome.stopped = answer.push(token);
    outcome.text += answer.piece();
    if (outcome.stopped) break;
  }
  answer.finish();
  outcome.text += answer.piece();
  return outcome;
}

std::vector<std::string> single_bytes(const std::string& text) {
  std::vector<std::string> tokens;
  for (const char byte : text) tokens.emplace_back(1, byte);
  return tokens;
}

/// Every way to cut `text` into two or three tokens, and into single bytes.
std::vector<std::vector<std::string>> cuts(const std::string& text) {
  std::vector<std::vector<std::string>> all = {{text}, single_bytes(text)};
  for (size_t a = 0; a <= text.size(); ++a) {
    for (size_t b = a; b <= text.size(); ++b) {
      all.push_back({text.substr(0, a), text.substr(a, b - a), text.substr(b)});
    }
  }
  return all;
}

TEST(AnswerText, PassesEverythingWithoutStopStrings) {
  EXPECT_EQ(feed({}, {"one", " two"}), (Outcome{"one two", false}));
}

TEST(AnswerText, AStopStringIsNeverPrintedHoweverItIsCut) {
  for (const auto& tokens : cuts("say STOP now")) EXPECT_EQ(feed({"STOP"}, tokens), (Outcome{"say ", true}));
}

TEST(AnswerText, HeldBackTextIsReleasedWhenNoMatchComes) {
  for (const auto& tokens : cuts("STOSTO STO")) EXPECT_EQ(feed({"STOP"}, tokens), (Outcome{"STOSTO STO", false}));
}

TEST(AnswerText, TextThatCannotMatchAnyMorePassesAtOnce) {
  AnswerText answer = AnswerText::create({"abc"}).value();
  EXPECT_FALSE(answer.push("xab"));
  EXPECT_EQ(answer.piece(), "x");
  EXPECT_FALSE(answer.push("d"));
  EXPECT_EQ(answer.piece(), "abd");
}

TEST(AnswerText, AMatchMayBeginInsideAFailedOne) {
  for (const auto& tokens : cuts("aabaaabaac")) EXPECT_EQ(feed({"aabaac"}, tokens), (Outcome{"aaba", true}));
}

TEST(AnswerText, TheStringThatIsCompleteFirstWins) {
  for (const auto& tokens : cuts("xabcd")) EXPECT_EQ(feed({"abcd", "bc"}, tokens), (Outcome{"xa", true}));
  for (const auto& tokens : cuts("xabcd")) EXPECT_EQ(feed({"bc", "abc"}, tokens), (Outcome{"x", true}));
}

TEST(AnswerText, AStopStringIsFoundInCharactersSplitOverTokens) {
  const std::string emoji = "\xF0\x9F\x98\x80";
  for (const auto& tokens : cuts("a" + emoji + "b")) EXPECT_EQ(feed({emoji}, tokens), (Outcome{"a", true}));
}

TEST(AnswerText, EveryPieceIsValidUtf8AndABrokenTailBecomesOneReplacement) {
  const std::string emoji = "\xF0\x9F\x98\x80";
  AnswerText answer = AnswerText::create({}).value();
  std::vector<std::string> pieces;
  for (const char* token : {"\xF0\x9F", "\x98", "\x80", "ok\xF0\x9F\x98"}) {
    answer.push(token);
    pieces.push_back(answer.piece());
  }
  answer.finish();
  pieces.push_back(answer.piece());
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "", emoji, "ok", "\xEF\xBF\xBD"}));
}

TEST(AnswerText, ACharacterThatAStopStringCutsBecomesAReplacement) {
  // The stop string begins with the last byte of the character.
  EXPECT_EQ(feed({"\xA9!"}, {"\xC3", "\xA9!"}), (Outcome{"\xEF\xBF\xBD", true}));
}

TEST(AnswerText, StopStringsOutOfBoundsAreRefused) {
  const std::vector<std::vector<std::string>> cases = {{""},
                                                       {"ok", ""},
                                                       {std::string(StopMatcher::kStringBytesMax + 1, 'x')},
                                                       std::vector<std::string>(StopMatcher::kStringsMax + 1, "x")};
  for (const auto& stops : cases) {
    const auto result = AnswerText::create(stops);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kArgument);
  }
}

}  // namespace
}  // namespace headrace
