#include <gtest/gtest.h>

#include "text/chat/chat_format.h"
#include "text/chat/chat_support.h"
#include "text/chat/kimi_k2.h"
#include "text/chat/kimi_xtml.h"
#include "text/tiktoken.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::ControlSet;

TEST(ChatFormats, AreToldFromControlTokens) {
  EXPECT_EQ(find_chat_format(*testing::byte_tokenizer(ControlSet::kXtml)), &kKimiXtml);
  EXPECT_EQ(find_chat_format(*testing::byte_tokenizer(ControlSet::kK2)), &kKimiK2);
  EXPECT_EQ(find_chat_format(*testing::toy_tokenizer()), &kKimiXtml);
}

TEST(ChatFormats, NeedAllTheirControlTokens) {
  const std::string ranks = testing::rank_file(testing::single_bytes());
  const auto tokenizer = load_tiktoken(
      {"ranks", ranks},
      {"config", R"({"added_tokens_decoder":{"256":{"content":"<|end_of_msg|>"},"257":{"content":"<|im_end|>"}}})"});
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(find_chat_format(*tokenizer.value()), nullptr);
}

TEST(ChatFormats, StandInOneTable) {
  ASSERT_EQ(chat_formats().size(), 2u);
  EXPECT_EQ(chat_formats()[0], &kKimiXtml);
  EXPECT_EQ(chat_formats()[1], &kKimiK2);
}

TEST(Segments, NeedTheirControlTokensInTheVocabulary) {
  const auto tokenizer = testing::byte_tokenizer(ControlSet::kXtml);
  Segments segments;
  segments.append_text("a");
  segments.append_control("<|im_end|>");
  const auto ids = encode_segments(*tokenizer, segments);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, Code::kFormat);
  EXPECT_EQ(ids.error().message, "the tokenizer has no control token <|im_end|>");
}

TEST(Segments, AreEncodedOneByOne) {
  const auto tokenizer = testing::toy_tokenizer();
  Segments segments;
  segments.append_text("he");
  segments.append_text("");
  segments.append_text("ll");
  segments.append_control("<|sep|>");
  segments.append_text("<|sep|>");
  const auto ids = encode_segments(*tokenizer, segments);
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids.value(), (std::vector<TokenId>{256, 257, 277, 27, 91, 82, 68, 79, 91, 29}));
}

TEST(Segments, AreRefusedWhenThereAreTooMany) {
  const auto tokenizer = testing::byte_tokenizer(ControlSet::kXtml);
  Segments segments;
  for (size_t count = 0; count < Segments::kSegmentsMax; ++count) segments.append_control("<|sep|>");
  EXPECT_TRUE(encode_segments(*tokenizer, segments));
  segments.append_text("a");
  EXPECT_EQ(segments.list().size(), Segments::kSegmentsMax);
  const auto ids = encode_segments(*tokenizer, segments);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message, "the prompt has more than the 1000000 parts allowed");
}

// Text that is only known at run time cannot become a control token.
static_assert(!std::is_constructible_v<ControlLiteral, std::string>);
static_assert(!std::is_constructible_v<ControlLiteral, std::string_view>);
static_assert(!std::is_constructible_v<ControlLiteral, const char*>);

}  // namespace
}  // namespace headrace
