#include "text/kimi_pattern.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "text/regex_splitter.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using Pieces = std::vector<std::string>;
using Engine = RegexSplitter::Engine;

Pieces pieces_of(std::string_view text, Engine engine = Engine::kBest) {
  auto splitter = RegexSplitter::compile(kimi_pattern(), engine);
  EXPECT_TRUE(splitter) << splitter.error().message;
  Pieces pieces;
  const Status status = splitter.value().split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_TRUE(status) << status.error().message;
  return pieces;
}

struct SplitVector {
  std::string text;
  Pieces pieces;
};

// Expected pieces were computed with the publisher's exact pattern.
const std::vector<SplitVector>& published_vectors() {
  static const std::vector<SplitVector> kVectors = {
      {"Hello, world!", {"Hello", ",", " world", "!"}},
      {"CamelCase HTTPServer aBCd iPhone", {"Camel", "Case", " HTTPServer", " a", "BCd", " i", "Phone"}},
      {"don't DON'T we'll WE'LL it'sok 'tis", {"don't", " DON'T", " we'll", " WE'LL", " it's", "ok", " '", "tis"}},
      {"foo's'bar", {"foo's", "'bar"}},
      {"'s't're've'm'll'd", {"'s't", "'re've", "'m'll", "'d"}},
      {"you'Re", {"you'Re"}},
      {"o'clock", {"o", "'clock"}},
      {"I'M HERE", {"I'M", " HERE"}},
      {"abc123456789def", {"abc", "123", "456", "789", "def"}},
      {"3.14159", {"3", ".", "141", "59"}},
      {"a  b   c", {"a", " ", " b", "  ", " c"}},
      {"  lead", {" ", " lead"}},
      {"trail   ", {"trail", "   "}},
      {"\n\nx", {"\n\n", "x"}},
      {"a\n\n  b", {"a", "\n\n", " ", " b"}},
      {"a \n b", {"a", " \n", " b"}},
      {"tab\tx\t\ty", {"tab", "\tx", "\t", "\ty"}},
      {"x\r\n\r\ny", {"x", "\r\n\r\n", "y"}},
      {"中文abc中文", {"中文", "abc", "中文"}},
      {"日本語テスト", {"日本語", "テスト"}},
      {"東京タワーへ行く", {"東京", "タワーへ", "行", "く"}},
      {"あ中い", {"あ", "中", "い"}},
      {"中文，测试。", {"中文", "，", "测试", "。"}},
      {"naïve ÉCOLE Straße", {"naïve", " ÉCOLE", " Straße"}},
      {"e\u0301te\u0301", {"e\u0301te\u0301"}},
      {"\u01C5abc", {"\u01C5abc"}},
      {"مرحبا بالعالم", {"مرحبا", " بالعالم"}},
      {"สวัสดีครับ", {"สวัสดีครับ"}},
      {"हिन्दी", {"हिन्दी"}},
      {"👍🏽 ok", {"👍🏽", " ok"}},
      {"a_b-c.d/e", {"a", "_b", "-c", ".d", "/e"}},
      {"_privateVar", {"_private", "Var"}},
      {"$100 €5", {"$", "100", " €", "5"}},
      {"!!!\n\nNext", {"!!!\n\n", "Next"}},
      {" !x", {" !", "x"}},
      {"x'\n", {"x", "'\n"}},
      {"x=\"y\"; // c", {"x", "=\"", "y", "\";", " //", " c"}},
      {"(foo)Bar", {"(foo", ")Bar"}},
      {"[[WIKI]] <|x|>", {"[[", "WIKI", "]]", " <|", "x", "|>"}},
      {"１２３４", {"１２３", "４"}},
      {"Ⅷ²½", {"Ⅷ²½"}},
      {"ⅠⅡabc", {"ⅠⅡ", "abc"}},
      {"a\u00A0b", {"a", "\u00A0b"}},
      {"\u3000中", {"\u3000", "中"}},
      {"\u200Bzero", {"\u200Bzero"}},
      {"…wait", {"…wait"}},
      {"々〇中", {"々〇中"}},
      {"ʼnaʻa", {"ʼnaʻa"}},
  };
  return kVectors;
}

TEST(KimiPattern, CutsThePublishedVectors) {
  for (const SplitVector& vector : published_vectors()) EXPECT_EQ(pieces_of(vector.text), vector.pieces) << vector.text;
}

TEST(KimiPattern, CutsThePublishedVectorsWithoutMachineCode) {
  for (const SplitVector& vector : published_vectors()) {
    EXPECT_EQ(pieces_of(vector.text, Engine::kInterpreter), vector.pieces) << vector.text;
  }
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t index = 0; index + 1 < hex.size(); index += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(index, 2), nullptr, 16));
  }
  return bytes;
}

// split_vectors.py made these with the published pattern and another regular expression engine.
TEST(KimiPattern, CutsRandomTextsAsThePublishedPatternDoes) {
  std::istringstream lines(testing::read_text_file(HEADRACE_SOURCE_DIR "/tests/text/split_vectors.txt"));
  size_t text_count = 0;
  for (std::string line; std::getline(lines, line); ++text_count) {
    std::string text;
    Pieces expected;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      expected.push_back(from_hex(word));
      text += expected.back();
    }
    EXPECT_EQ(pieces_of(text), expected) << text;
    EXPECT_EQ(pieces_of(text, Engine::kInterpreter), expected) << text;
  }
  EXPECT_EQ(text_count, 400u);
}

TEST(KimiPattern, TreatsTheWhiteSpacePropertyAndNothingElseAsSpace) {
  // A run of white space before a word leaves one character to the word; a run of anything else is punctuation.
  for (const char* space : {"\t", "\v", "\f", " ", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A", "\u2028", "\u2029",
                            "\u202F", "\u205F", "\u3000"}) {
    const std::string text = "1" + testing::repeat(space, 2) + "1";
    EXPECT_EQ(pieces_of(text), (Pieces{"1", space, space, "1"})) << space;
  }
  for (const char* other : {"\u180E", "\x1C", "\x1D", "\x1E", "\x1F", "\u200B", "\u2060", "\uFEFF"}) {
    const std::string text = "1" + testing::repeat(other, 2) + "1";
    EXPECT_EQ(pieces_of(text), (Pieces{"1", testing::repeat(other, 2), "1"})) << other;
  }
}

TEST(KimiPattern, MatchesContractionsInAnyCaseAndWithTheLongS) {
  EXPECT_EQ(pieces_of("it'ſx"), (Pieces{"it'ſ", "x"}));
  EXPECT_EQ(pieces_of("IT'ſX"), (Pieces{"IT'ſ", "X"}));
  EXPECT_EQ(pieces_of("we'Llx"), (Pieces{"we'Ll", "x"}));
}

TEST(KimiPattern, MeansTheScriptHanNotItsExtensions) {
  // U+3001 and U+30FC are in Han's script extensions only.
  EXPECT_EQ(pieces_of("中、中"), (Pieces{"中", "、", "中"}));
  EXPECT_EQ(pieces_of("中ー"), (Pieces{"中", "ー"}));
}

TEST(KimiPattern, KnowsHanNewerThanTheInstalledUnicode) {
  for (const char* han : {"\U0002EBF0", "\U0002EE5D", "\U00031350", "\U000323AF", "\U00033479", "\U0002B739"}) {
    const std::string character = han;
    EXPECT_EQ(pieces_of("中" + character + "abc"), (Pieces{"中" + character, "abc"}));
    EXPECT_EQ(pieces_of("!" + character), (Pieces{"!", character}));
    EXPECT_EQ(pieces_of("a" + character), (Pieces{"a", character}));
  }
  EXPECT_EQ(pieces_of("1\U00016FF411"), (Pieces{"1\U00016FF41", "1"})) << "a number of Han";
}

}  // namespace
}  // namespace headrace
