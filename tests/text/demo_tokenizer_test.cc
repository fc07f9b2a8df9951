#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/tiktoken.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

const std::string kModel = HEADRACE_SOURCE_DIR "/models/demo/";
const std::string kData = HEADRACE_SOURCE_DIR "/tests/data/demo/";

std::unique_ptr<Tokenizer> demo_tokenizer() {
  const std::string ranks = testing::read_text_file(kModel + "tiktoken.model");
  const std::string config = testing::read_text_file(kModel + "tokenizer_config.json");
  auto tokenizer = load_tiktoken({"tiktoken.model", ranks}, {"tokenizer_config.json", config});
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? tokenizer.take_value() : nullptr;
}

TEST(DemoTokenizer, GivesTheIdsOfTheReferencePrompts) {
  const auto tokenizer = demo_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  const auto reference = nlohmann::json::parse(testing::read_text_file(kData + "reference.json"));
  size_t compared_count = 0;
  for (const auto& prompt : reference.at("prompts")) {
    if (!prompt.contains("text") || !prompt["text"].is_string()) continue;
    const auto ids = tokenizer->encode(PlainText{prompt["text"].get_ref<const std::string&>()});
    ASSERT_TRUE(ids);
    EXPECT_EQ(ids.value(), prompt["ids"].get<std::vector<TokenId>>()) << prompt["name"];
    ++compared_count;
  }
  EXPECT_GT(compared_count, 0u);
}

TEST(DemoTokenizer, EncodesTheHeldOutTextToTheReferenceCount) {
  const auto tokenizer = demo_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = testing::read_text_file(kData + "heldout.txt");
  const auto ids = tokenizer->encode(PlainText{text});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids.value().size(), 20541u);
  const auto bytes = decode(*tokenizer, ids.value());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes.value(), text);
}

TEST(DemoTokenizer, NamesItsMarkers) {
  const auto tokenizer = demo_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->control_id("[BOS]"), 4096);
  EXPECT_EQ(tokenizer->control_id("<|end_of_msg|>"), 4098);
  EXPECT_EQ(tokenizer->vocabulary_size(), 4352u);
}

}  // namespace
}  // namespace headrace
