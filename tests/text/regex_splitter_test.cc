#include "text/regex_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace {
namespace {

std::vector<std::string> pieces_of(const std::string& pattern, std::string_view text) {
  auto splitter = RegexSplitter::compile(pattern);
  EXPECT_TRUE(splitter) << splitter.error().message;
  std::vector<std::string> pieces;
  EXPECT_TRUE(splitter.value().split(text, [&](std::string_view piece) { pieces.emplace_back(piece); }));
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(RegexSplitter, KeepsWhatLiesBetweenMatches) {
  EXPECT_EQ(pieces_of("[0-9]+", "ab12cd3é"), (Pieces{"ab", "12", "cd", "3", "é"}));
  EXPECT_EQ(pieces_of("[0-9]+", "12"), (Pieces{"12"}));
  EXPECT_EQ(pieces_of("[0-9]+", "ab"), (Pieces{"ab"}));
  EXPECT_EQ(pieces_of("[0-9]+", ""), (Pieces{}));
}

TEST(RegexSplitter, NeverStandsStillOnEmptyMatches) {
  EXPECT_EQ(pieces_of("[0-9]*", "a1b"), (Pieces{"a", "1", "b"}));
  EXPECT_EQ(pieces_of("(?=b)", "ab"), (Pieces{"ab"}));
}

TEST(RegexSplitter, RefusesPatternsThatDoNotCompileWithTheirPlace) {
  const auto splitter = RegexSplitter::compile("ab(c");
  ASSERT_FALSE(splitter);
  EXPECT_EQ(splitter.error().code, Code::kUnsupported);
  EXPECT_NE(splitter.error().message.find("byte 4"), std::string::npos) << splitter.error().message;
}

TEST(RegexSplitter, MatchesWhereMachineCodeRunsOutOfStack) {
  // A group per character and a backtracking point for each: more than the 32 KiB of stack that machine code gets.
  const std::string text(200'000, 'a');
  EXPECT_EQ(pieces_of("(?:(?!b)(a|c))+(?:d|)", text), (Pieces{text}));
}

}  // namespace
}  // namespace headrace
