// The publisher's rank file, when the folder named by HEADRACE_TEST_TOKENIZERS has it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "text/tiktoken.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

constexpr TokenId kFirstControl = 163584;

class PublishedTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("HEADRACE_TEST_TOKENIZERS");
    if (folder == nullptr) {
      GTEST_SKIP() << "HEADRACE_TEST_TOKENIZERS is not set: it names a folder with kimi_k2.tiktoken, small_input.txt, "
                      "mixed_input.txt, small_tokens_kimi_k2.txt, mixed_tokens_kimi_k2.txt";
    }
    folder_ = std::string(folder) + "/";
    const std::string ranks = testing::read_text_file(folder_ + "kimi_k2.tiktoken");
    const std::string config = testing::toy_config(kFirstControl);
    auto tokenizer = load_tiktoken({"kimi_k2.tiktoken", ranks}, {"config", config});
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = tokenizer.take_value();
  }

  Ids plain(const std::string& text) const {
    auto ids = tokenizer_->encode(PlainText{text});
    EXPECT_TRUE(ids);
    return ids ? ids.take_value() : Ids();
  }

  void expect_lines_equal(const std::string& name) const;

  std::string folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

/// Lines of the input files spell newlines \n and trailing spaces \s.
std::string unescape(const std::string& line) {
  std::string text;
  for (size_t index = 0; index < line.size(); ++index) {
    const char next = line[index] == '\\' && index + 1 < line.size() ? line[index + 1] : '\0';
    if (next != 'n' && next != 's') {
      text += line[index];
      continue;
    }
    text += next == 'n' ? '\n' : ' ';
    ++index;
  }
  return text;
}

Ids parse_ids(const std::string& line) {
  Ids ids;
  std::istringstream stream(line);
  for (std::string id; std::getline(stream, id, ',');) ids.push_back(std::stoi(id));
  return ids;
}

void PublishedTokenizer::expect_lines_equal(const std::string& name) const {
  std::istringstream inputs(testing::read_text_file(folder_ + name + "_input.txt"));
  std::istringstream outputs(testing::read_text_file(folder_ + name + "_tokens_kimi_k2.txt"));
  size_t line_count = 0;
  size_t token_count = 0;
  std::string input;
  std::string output;
  while (std::getline(inputs, input) && std::getline(outputs, output)) {
    const Ids ids = plain(unescape(input));
    EXPECT_EQ(ids, parse_ids(output)) << name << ", line " << line_count + 1 << ": " << input.substr(0, 80);
    ++line_count;
    token_count += ids.size();
  }
  EXPECT_GT(line_count, 0u);
  std::printf("%s: %zu texts, %zu tokens compared\n", name.c_str(), line_count, token_count);
}

TEST_F(PublishedTokenizer, GivesTheIdsOfTheSmallTexts) {
  expect_lines_equal("small");
}

TEST_F(PublishedTokenizer, GivesTheIdsOfTheMixedTexts) {
  expect_lines_equal("mixed");
}

TEST_F(PublishedTokenizer, GivesTheIdsOfKnownTexts) {
  EXPECT_EQ(tokenizer_->vocabulary_size(), 163840u);
  EXPECT_EQ(plain("Hello, world!"), (Ids{19180, 11, 2695, 0}));
  EXPECT_EQ(plain("CamelCase and snake_case and kebab-case"),
            (Ids{111821, 8081, 316, 58108, 39188, 316, 2591, 58689, 56344}));
  EXPECT_EQ(plain("line1\nline2\r\nline3"), (Ids{1611, 16, 198, 1611, 17, 462, 1611, 18}));
  EXPECT_EQ(plain("1234567890"), (Ids{6694, 12972, 16242, 15}));
  EXPECT_EQ(plain("中文测试：你好世界"), (Ids{16717, 9555, 2648, 33845, 2243}));
  EXPECT_EQ(plain("混合 mixed 文字 text 123"), (Ids{13935, 15682, 220, 8662, 2913, 220, 6694}));
  EXPECT_EQ(plain("'s't're've'm'll'd"), (Ids{1048, 1769, 4746, 7962, 14404, 6683, 12362}));
  EXPECT_EQ(plain("a   \n   b"), (Ids{64, 15403, 256, 291}));
  EXPECT_EQ(plain("   "), (Ids{274}));
  EXPECT_EQ(plain("  leading and trailing spaces  "), (Ids{220, 8134, 316, 42711, 14803, 256}));
  EXPECT_EQ(plain("Tell me about the french revolution."), (Ids{69211, 1019, 1215, 276, 64782, 25317, 13}));
  const auto marked = tokenizer_->encode(Markup{"start[BOS]middle[EOS]end"});
  ASSERT_TRUE(marked);
  EXPECT_EQ(marked.value(), (Ids{5402, 163584, 61186, 163585, 517}));
}

TEST_F(PublishedTokenizer, GivesTheIdsOfSinglePieces) {
  const std::pair<const char*, TokenId> pieces[] = {
      {"user", 2482},      {"assistant", 69702}, {"system", 14062}, {"message", 2778},
      {" role", 6244},     {"=\"", 878},         {"\"", 1},         {"think", 39964},
      {"response", 12092}, {"tools", 25385},     {"call", 10257},   {"argument", 47185},
      {" tool", 4453},     {" index", 4002},     {" type", 1798},   {" key", 2355},
      {"tool", 20960},     {"string", 2033},     {"number", 10006}, {"hello", 22931},
      {"Hi", 18699},       {" Paris", 17374},    {"Paris", 113476}};
  for (const auto& [text, id] : pieces) EXPECT_EQ(plain(text), (Ids{id})) << text;
}

TEST_F(PublishedTokenizer, HoldsItsVocabularyInFewMegabytes) {
  std::printf("tokenizer memory: %zu bytes\n", tokenizer_->memory_bytes());
  EXPECT_LT(tokenizer_->memory_bytes(), 4u << 20);
}

}  // namespace
}  // namespace headrace
