// Against the program that rendered the demo model's training data (tools/demo_model), which shares no code with ours.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/chat/chat_request.h"
#include "text/chat/chat_support.h"
#include "text/tiktoken.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

const std::string kModel = HEADRACE_SOURCE_DIR "/models/demo/";
const std::string kData = HEADRACE_SOURCE_DIR "/tests/data/demo/";

class DemoChat : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string ranks = testing::read_text_file(kModel + "tiktoken.model");
    const std::string config = testing::read_text_file(kModel + "tokenizer_config.json");
    auto tokenizer = load_tiktoken({"tiktoken.model", ranks}, {"tokenizer_config.json", config});
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = tokenizer.take_value();
  }

  std::vector<TokenId> ids(const Json& chat, bool add_generation_prompt) const {
    Json request = {{"messages", chat["messages"]},
                    {"thinking", chat["thinking"]},
                    {"reasoning_effort", chat.value("effort", Json(nullptr))},
                    {"add_generation_prompt", add_generation_prompt}};
    return testing::ids_of(*tokenizer_, testing::request_of(request.dump()));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(DemoChat, GivesTheIdsOfTheReferencePrompts) {
  const Json reference = Json::parse(testing::read_text_file(kData + "reference.json"));
  size_t compared_count = 0;
  for (const Json& prompt : reference["prompts"]) {
    if (!prompt.contains("messages")) continue;
    EXPECT_EQ(ids(prompt, true), prompt["ids"].get<std::vector<TokenId>>()) << prompt["name"];
    ++compared_count;
  }
  EXPECT_EQ(compared_count, 2u);
}

TEST_F(DemoChat, GivesAsManyIdsForTheHeldOutConversationsAsTheReference) {
  const Json reference = Json::parse(testing::read_text_file(kData + "reference.json"));
  size_t scored_count = 0;  // All but the first of each conversation.
  for (const Json& chat : Json::parse(testing::read_text_file(kData + "heldout_chats.json"))) {
    scored_count += ids(chat, false).size() - 1;
  }
  EXPECT_EQ(scored_count, reference["perplexity"]["chats"]["tokens_scored"].get<size_t>());
}

TEST_F(DemoChat, ParsesTheAnswersOfTheReference) {
  const Json reference = Json::parse(testing::read_text_file(kData + "reference.json"));
  for (const Json& prompt : reference["prompts"]) {
    if (!prompt.contains("messages")) continue;
    const bool thinking = prompt["thinking"].get<bool>();
    const auto answer =
        testing::parse_answer(*tokenizer_, prompt["greedy"]["ids"].get<std::vector<TokenId>>(), thinking);
    EXPECT_EQ(answer.message.reasoning.empty(), !thinking);
    EXPECT_EQ(answer.message.content.find("<|"), std::string::npos) << answer.message.content;
    EXPECT_FALSE(answer.message.content.empty());
  }
}

}  // namespace
}  // namespace headrace
