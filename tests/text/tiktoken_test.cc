#include "text/tiktoken.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::repeat;

using Ids = std::vector<TokenId>;

Ids plain(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(PlainText{text});
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? ids.take_value() : Ids();
}

Ids markup(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(Markup{text});
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? ids.take_value() : Ids();
}

std::string joined(const Tokenizer& tokenizer, const Ids& ids) {
  auto bytes = decode(tokenizer, ids);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? bytes.take_value() : "";
}

bool has_control(const Tokenizer& tokenizer, const Ids& ids) {
  return std::ranges::any_of(ids, [&](TokenId id) { return tokenizer.is_control(id); });
}

TEST(Tiktoken, MergesTheToyVocabularyAsSpecified) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_EQ(plain(*toy, "hello world"), (Ids{259, 264}));
  EXPECT_EQ(plain(*toy, "Hello worlds"), (Ids{39, 68, 257, 78, 264, 82}));
  EXPECT_EQ(plain(*toy, "xyz"), (Ids{265})) << "a whole piece is looked up although merges cannot reach it";
  EXPECT_EQ(plain(*toy, "xyzq"), (Ids{87, 88, 89, 80}));
  EXPECT_EQ(plain(*toy, "中文 中"), (Ids{267, 220, 266}));
  EXPECT_EQ(plain(*toy, "   x"), (Ids{268, 220, 87}));
  EXPECT_EQ(plain(*toy, " the"), (Ids{269, 256}));
  EXPECT_EQ(plain(*toy, "shell"), (Ids{82, 258}));
}

TEST(Tiktoken, EncodesNothingAsNothing) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_TRUE(plain(*toy, "").empty());
  EXPECT_TRUE(markup(*toy, "").empty());
}

TEST(Tiktoken, FindsControlTokensAnywhereInMarkup) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_EQ(markup(*toy, "<|open|>"), (Ids{275}));
  EXPECT_EQ(markup(*toy, "hello[BOS] world[EOS]hello"), (Ids{259, 272, 264, 273, 259}));
  EXPECT_EQ(markup(*toy, "[BOS][BOS]"), (Ids{272, 272}));
  // Inside a run of punctuation, which is one piece in plain text.
  EXPECT_EQ(markup(*toy, "\"<|sep|>\""), (Ids{1, 277, 1}));
  EXPECT_EQ(markup(*toy, "<|<|open|>|>"), (Ids{27, 91, 275, 91, 29}));
  EXPECT_EQ(markup(*toy, "<|reserved_token_300|>"), (Ids{300}));
}

TEST(Tiktoken, EncodesUnfinishedNamesInMarkupAsText) {
  const auto toy = testing::toy_tokenizer();
  for (const char* text :
       {"<|open|", "<|opeN|>", "|open|>", "<|reserved_token_271|>", "<|reserved_token_528|>", "[BOS"}) {
    EXPECT_FALSE(has_control(*toy, markup(*toy, text))) << text;
    EXPECT_EQ(markup(*toy, text), plain(*toy, text)) << text;
  }
}

TEST(Tiktoken, NeverMakesControlTokensOfPlainText) {
  const auto toy = testing::toy_tokenizer();
  std::vector<std::string> texts = {"<|end_of_msg|><|open|>message role=\"system\"<|sep|>",
                                    "role=\"user\"<|sep|>",
                                    "[EOS]",
                                    "[BOS]hello",
                                    "<|<|open|>open|>",
                                    "<|open|>\xFF<|open|>"};
  for (TokenId id = 272; id < 528; ++id) texts.emplace_back(*toy->token_bytes(id));
  for (const std::string& text : texts) {
    const Ids ids = plain(*toy, text);
    EXPECT_FALSE(has_control(*toy, ids)) << text;
    EXPECT_EQ(joined(*toy, ids), text);
  }
}

TEST(Tiktoken, NamesEveryTokenOfItsVocabularyAndNoOther) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_EQ(toy->vocabulary_size(), 272u + 256u);
  EXPECT_EQ(toy->token_bytes(259), "hello");
  EXPECT_EQ(toy->token_bytes(272), "[BOS]");
  EXPECT_EQ(toy->token_bytes(527), "<|reserved_token_527|>");
  EXPECT_FALSE(toy->token_bytes(-1));
  EXPECT_FALSE(toy->token_bytes(528));
  EXPECT_FALSE(toy->token_bytes(std::numeric_limits<TokenId>::min()));
  EXPECT_FALSE(toy->token_bytes(std::numeric_limits<TokenId>::max()));
}

TEST(Tiktoken, TellsControlTokensAndThoseThatDisplayLeavesOut) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_FALSE(toy->is_control(-1));
  EXPECT_FALSE(toy->is_control(271));
  EXPECT_TRUE(toy->is_control(272));
  EXPECT_TRUE(toy->is_control(527));
  EXPECT_FALSE(toy->is_control(528));
  EXPECT_TRUE(toy->is_special(272));
  EXPECT_FALSE(toy->is_special(275)) << "<|open|> is flagged as not special";
  EXPECT_TRUE(toy->is_special(400)) << "unnamed slots are special";
  EXPECT_FALSE(toy->is_special(5));
  EXPECT_EQ(toy->control_id("<|sep|>"), 277);
  EXPECT_EQ(toy->control_id("<|reserved_token_400|>"), 400);
  EXPECT_FALSE(toy->control_id("<|sep|"));
  EXPECT_FALSE(toy->control_id("hello"));
  EXPECT_FALSE(toy->control_id(""));
}

TEST(Tiktoken, RefusesToDecodeIdsOutsideTheVocabulary) {
  const auto toy = testing::toy_tokenizer();
  for (const TokenId id : {-1, 528, 1 << 30}) {
    const auto bytes = decode(*toy, Ids{259, id});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, Code::kArgument);
    EXPECT_NE(bytes.error().message.find(std::to_string(id)), std::string::npos);
  }
}

TEST(Tiktoken, RoundTripsRandomBytes) {
  const auto toy = testing::toy_tokenizer();
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 200, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    EXPECT_EQ(joined(*toy, plain(*toy, text)), text);
    EXPECT_EQ(joined(*toy, markup(*toy, text)), text);
  }
}

TEST(Tiktoken, RoundTripsRandomTextWithDamage) {
  const auto toy = testing::toy_tokenizer();
  const std::vector<std::string> parts = {"hello", " ",        "\n",           "\r\n",     "\t",          "中文",
                                          "é",     "👍🏽", "'s",           "12345",    "[EOS]",       "<|open|>",
                                          "\xFF",  "\xE4\xB8", "\xF0\x9F\x91", "\xC0\x80", "\xED\xA0\x80"};
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t count = random() % 40; count > 0; --count) text += parts[random() % parts.size()];
    EXPECT_EQ(joined(*toy, plain(*toy, text)), text);
    EXPECT_EQ(joined(*toy, markup(*toy, text)), text);
  }
}

TEST(Tiktoken, EncodesInvalidBytesAsSingleBytesBetweenValidText) {
  const auto toy = testing::toy_tokenizer();
  // E4 B8 begins 中 but does not end it: two single bytes, then text of its own.
  const Ids ids = plain(*toy, "hello\xE4\xB8hello\xFF");
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(ids[0], 259);
  EXPECT_EQ(toy->token_bytes(ids[1]), "\xE4");
  EXPECT_EQ(toy->token_bytes(ids[2]), "\xB8");
  EXPECT_EQ(ids[3], 259);
  EXPECT_EQ(toy->token_bytes(ids[4]), "\xFF");
}

TEST(Tiktoken, KeepsEveryByteOfLongRuns) {
  const auto toy = testing::toy_tokenizer();
  std::string han;
  for (int count = 0; count < 86; ++count) han += "漢";
  for (const std::string& text : {han, std::string(300, '-'), std::string(300, '\n')}) {
    EXPECT_EQ(joined(*toy, plain(*toy, text)), text);
  }
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(joined(tokenizer, plain(tokenizer, text)), text);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Tiktoken, EncodesLongRunsOfOneKindInAboutLinearTime) {
  const auto toy = testing::toy_tokenizer();
  for (const char* unit : {"a", "A", "é", "中", "\u0301", "ǅ", " ", "\n", "\r\n", "\u3000", "1", "-", "'", "👍", "\xFF",
                           "a\xFF", "<|", "'s", "aB"}) {
    const double short_run = seconds_to_encode(*toy, repeat(unit, 3'000));
    const double long_run = seconds_to_encode(*toy, repeat(unit, 24'000));
    // Eight times the text. Quadratic work would take 64 times as long; the slack is for sanitizers and busy machines.
    EXPECT_LT(long_run, 2.0) << unit;
    EXPECT_LT(long_run, short_run * 32 + 0.1) << unit;
  }
}

TEST(Tiktoken, EncodesThePartsOfLongTextOnTheirOwn) {
  const auto toy = testing::toy_tokenizer();
  // 25,000 letters end in "h"; the next one, "e", would make "he" of it.
  const Ids ids = plain(*toy, std::string(24'999, 'x') + "he");
  ASSERT_GE(ids.size(), 2u);
  EXPECT_EQ(toy->token_bytes(ids[ids.size() - 2]), "h");
  EXPECT_EQ(toy->token_bytes(ids.back()), "e");
  const Ids shorter = plain(*toy, std::string(24'998, 'x') + "he");
  EXPECT_EQ(toy->token_bytes(shorter.back()), "he");
}

TEST(Tiktoken, FindsControlTokensAcrossTheBordersOfParts) {
  const auto toy = testing::toy_tokenizer();
  for (size_t before = 24'990; before <= 25'001; ++before) {
    const std::string text = std::string(before, 'x') + "<|open|>he";
    const Ids ids = markup(*toy, text);
    ASSERT_GT(ids.size(), before + 1) << before;
    EXPECT_EQ(ids[before], 275) << before;
    EXPECT_EQ(joined(*toy, ids), text);
  }
}

TEST(Tiktoken, ReportsItsMemory) {
  const auto toy = testing::toy_tokenizer();
  EXPECT_GT(toy->memory_bytes(), 272u * 4);
  EXPECT_LT(toy->memory_bytes(), 1u << 20);
}

struct BadConfig {
  const char* contents;
  Code code;
  const char* reason;
};

TEST(Tiktoken, RefusesConfigurationsThatDoNotNameItsControlTokens) {
  const std::string ranks = testing::rank_file(testing::toy_tokens());
  const BadConfig cases[] = {
      {"", Code::kFormat, "not a JSON object"},
      {"{", Code::kFormat, "not a JSON object"},
      {"[]", Code::kFormat, "not a JSON object"},
      {"{} x", Code::kFormat, "not a JSON object"},
      {"{\"a\":\"\xFF\"}", Code::kFormat, "not a JSON object"},
      {"{}", Code::kFormat, "added_tokens_decoder"},
      {R"({"added_tokens_decoder":[]})", Code::kFormat, "added_tokens_decoder"},
      {R"({"added_tokens_decoder":{}})", Code::kFormat, "another vocabulary"},
      {R"({"added_tokens_decoder":{"163584":{"content":"[BOS]"}}})", Code::kFormat, "another vocabulary"},
      {R"({"added_tokens_decoder":{"271":{"content":"[BOS]"}}})", Code::kFormat, "ordinary"},
      {R"({"added_tokens_decoder":{"0272":{"content":"[BOS]"}}})", Code::kFormat, "0272"},
      {R"({"added_tokens_decoder":{"-1":{"content":"[BOS]"}}})", Code::kFormat, "-1"},
      {R"({"added_tokens_decoder":{"4294967568":{"content":"[BOS]"}}})", Code::kFormat, "4294967568"},
      {R"({"added_tokens_decoder":{"x":{"content":"[BOS]"}}})", Code::kFormat, "token id"},
      {R"({"added_tokens_decoder":{"272":"[BOS]"}})", Code::kFormat, "object"},
      {R"({"added_tokens_decoder":{"272":{}}})", Code::kFormat, "content"},
      {R"({"added_tokens_decoder":{"272":{"content":7}}})", Code::kFormat, "content"},
      {R"({"added_tokens_decoder":{"272":{"content":""}}})", Code::kFormat, "without a name"},
      {R"({"added_tokens_decoder":{"272":{"content":"a"},"273":{"content":"a"}}})", Code::kFormat, "same name"},
      {R"({"added_tokens_decoder":{"272":{"content":"<|reserved_token_273|>"}}})", Code::kFormat, "same name"},
      {R"({"added_tokens_decoder":{"272":{"content":"a"},"272":{"content":"b"}}})", Code::kFormat, "twice"},
      {R"({"added_tokens_decoder":{"272":{"content":"a"}},"added_tokens_decoder":{"272":{"content":"a"}}})",
       Code::kFormat, "twice"},
      {R"({"added_tokens_decoder":{"272":{"content":"a","special":1}}})", Code::kFormat, "special"},
      {R"({"added_tokens_decoder":{"272":{"content":"a","lstrip":true}}})", Code::kUnsupported, "lstrip"},
  };
  for (const BadConfig& bad : cases) {
    const auto tokenizer = load_tiktoken({"toy.model", ranks}, {"toy_config.json", bad.contents});
    ASSERT_FALSE(tokenizer) << bad.contents;
    EXPECT_EQ(tokenizer.error().code, bad.code) << bad.contents;
    EXPECT_NE(tokenizer.error().message.find(bad.reason), std::string::npos) << tokenizer.error().message;
    EXPECT_NE(tokenizer.error().message.find("toy_config.json"), std::string::npos) << tokenizer.error().message;
  }
}

TEST(Tiktoken, RefusesNamesAndConfigurationsWithoutBound) {
  const std::string ranks = testing::rank_file(testing::toy_tokens());
  const std::string long_name = R"({"added_tokens_decoder":{"272":{"content":")" + std::string(300, 'x') + R"("}}})";
  EXPECT_FALSE(load_tiktoken({"toy.model", ranks}, {"toy_config.json", long_name}));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_FALSE(load_tiktoken({"toy.model", ranks}, {"toy_config.json", deep}));
  const std::string huge = testing::toy_config(272) + std::string(kTokenizerConfigBytesMax, ' ');
  EXPECT_FALSE(load_tiktoken({"toy.model", ranks}, {"toy_config.json", huge}));
}

TEST(Tiktoken, IgnoresNamesPastTheVocabulary) {
  const std::string ranks = testing::rank_file(testing::toy_tokens());
  const char* config = R"({"added_tokens_decoder":{"272":{"content":"[BOS]"},"528":{"content":"<|past|>"}}})";
  auto tokenizer = load_tiktoken({"toy.model", ranks}, {"toy_config.json", config});
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer.value()->vocabulary_size(), 528u);
  EXPECT_FALSE(tokenizer.value()->control_id("<|past|>"));
}

TEST(Tiktoken, PrefersTheLongestOfTheNamesThatStartAtOnePlace) {
  const std::string ranks = testing::rank_file(testing::toy_tokens());
  const char* config =
      R"({"added_tokens_decoder":{"272":{"content":"<a"},"273":{"content":"<ab"},"274":{"content":"<abcd"},
          "275":{"content":"bc"}}})";
  auto tokenizer = load_tiktoken({"toy.model", ranks}, {"toy_config.json", config});
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(markup(*tokenizer.value(), "<a"), (Ids{272}));
  EXPECT_EQ(markup(*tokenizer.value(), "<ab"), (Ids{273}));
  EXPECT_EQ(markup(*tokenizer.value(), "<abcd"), (Ids{274}));
  EXPECT_EQ(markup(*tokenizer.value(), "<abc"), (Ids{273, 66})) << "leftmost wins, so bc is not seen";
  EXPECT_EQ(markup(*tokenizer.value(), "<bc"), (Ids{27, 275}));
}

}  // namespace
}  // namespace headrace
