#include "text/utf8_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace headrace {
namespace {

/// Pushes the tokens one by one, and checks that every delta is valid UTF-8.
std::vector<std::string> deltas(const std::vector<std::string>& tokens) {
  Utf8Stream stream;
  std::vector<std::string> result;
  for (const std::string& token : tokens) {
    std::string text;
    stream.push(token, text);
    EXPECT_EQ(valid_utf8_prefix_bytes(text), text.size());
    EXPECT_LE(stream.held_bytes(), 3u);
    result.push_back(text);
  }
  std::string text;
  stream.finish(text);
  result.push_back(text);
  return result;
}

std::string whole(const std::vector<std::string>& tokens) {
  std::string result;
  for (const std::string& text : deltas(tokens)) result += text;
  return result;
}

using Texts = std::vector<std::string>;

TEST(Utf8Stream, PassesCompleteTextOn) {
  EXPECT_EQ(deltas({"hello", "", " 中文", "👍🏽"}), (Texts{"hello", "", " 中文", "👍🏽", ""}));
}

TEST(Utf8Stream, HoldsACharacterUntilItsLastToken) {
  EXPECT_EQ(deltas({"ok \xF0\x9F", "\x91", "\x8D!"}), (Texts{"ok ", "", "👍!", ""}));
  EXPECT_EQ(deltas({"\xF0", "\x9F", "\x91", "\x8D"}), (Texts{"", "", "", "👍", ""}));
  EXPECT_EQ(deltas({"\xE4", "\xB8\xAD\xE6", "\x96\x87"}), (Texts{"", "中", "文", ""}));
}

TEST(Utf8Stream, ReplacesATailThatIsNeverCompletedOnceAtTheEnd) {
  EXPECT_EQ(deltas({"ok\xF0\x9F\x91"}), (Texts{"ok", "\uFFFD"}));
  EXPECT_EQ(deltas({"ok", "\xF0", "\x9F"}), (Texts{"ok", "", "", "\uFFFD"}));
  EXPECT_EQ(deltas({"\xC3"}), (Texts{"", "\uFFFD"}));
}

TEST(Utf8Stream, ReplacesAHeldBeginningWhenOtherBytesFollow) {
  EXPECT_EQ(deltas({"\xF0\x9F", "abc"}), (Texts{"",
                                                "\uFFFD"
                                                "abc",
                                                ""}));
  EXPECT_EQ(deltas({"\xE4\xB8", "中"}), (Texts{"", "\uFFFD中", ""}));
  EXPECT_EQ(deltas({"\xE4\xB8", "\xE4\xB8", "\xAD"}), (Texts{"", "\uFFFD", "中", ""}));
  EXPECT_EQ(deltas({"\xF0", "\xFF"}), (Texts{"", "\uFFFD\uFFFD", ""}));
}

// Tables 3-8 to 3-11 of the Unicode standard: one U+FFFD for each maximal subpart.
TEST(Utf8Stream, ReplacesMaximalSubpartsAsUnicodeRecommends) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(whole({"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"}), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(whole({"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"}), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(whole({"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"}), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(whole({"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"}), r + r + r + r + "A");
}

TEST(Utf8Stream, GivesTheSameTextHoweverTheBytesAreCut) {
  std::mt19937 random(5);
  const Texts parts = {"a", "é", "中", "👍", "\xF0", "\x9F", "\xE4", "\xB8", "\xFF", "\xC0", "\xED\xA0", "\xF4\x90"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t count = random() % 12; count > 0; --count) bytes += parts[random() % parts.size()];
    Texts tokens;
    for (size_t offset = 0; offset < bytes.size();) {
      tokens.push_back(bytes.substr(offset, random() % 4));
      offset += tokens.back().size();
    }
    EXPECT_EQ(whole(tokens), whole({bytes}));
  }
}

TEST(Utf8Stream, StartsAnewAfterItsEnd) {
  Utf8Stream stream;
  std::string text;
  stream.push("\xE4", text);
  stream.finish(text);
  stream.push("中", text);
  stream.finish(text);
  EXPECT_EQ(text, "\uFFFD中");
}

}  // namespace
}  // namespace headrace
