// Ids that the publisher's tokenizer files give, when the folder named by HEADRACE_TEST_TOKENIZERS has them.

#include <gtest/gtest.h>

#include <algorithm>

#include "text/chat/chat_support.h"

namespace headrace {
namespace {

using testing::ControlSet;
using testing::request_of;
using Ids = std::vector<TokenId>;

class PublishedChat : public ::testing::Test {
 protected:
  void SetUp() override {
    xtml_ = testing::published_tokenizer(ControlSet::kXtml);
    k2_ = testing::published_tokenizer(ControlSet::kK2);
    if (xtml_ == nullptr || k2_ == nullptr) GTEST_SKIP() << testing::kNoPublishedTokenizer;
  }

  Ids xtml(const std::string& json) const { return testing::ids_of(*xtml_, request_of(json)); }
  Ids k2(const std::string& json) const { return testing::ids_of(*k2_, request_of(json)); }

  std::unique_ptr<Tokenizer> xtml_;
  std::unique_ptr<Tokenizer> k2_;
};

const Ids kHi = {163587, 2778,   6244, 878,  2482, 1,     163589, 18699,  163588, 2778,  163589,
                 163586, 163587, 2778, 6244, 878,  69702, 1,      163589, 163587, 39964, 163589};
const std::string kHiMessages = R"("messages":[{"role":"user","content":"Hi"}])";

TEST_F(PublishedChat, GivesTheIdsOfOneMessage) {
  EXPECT_EQ(xtml("{" + kHiMessages + R"(,"reasoning_effort":null})"), kHi);
  Ids unthinking = kHi;
  unthinking[20] = 12092;
  EXPECT_EQ(xtml("{" + kHiMessages + R"(,"reasoning_effort":"none"})"), unthinking);
}

TEST_F(PublishedChat, GivesTheIdsOfTheEfforts) {
  Ids expected = {163587, 2778,   6244,   878,    14062, 1,      1798,  878,   130400, 59991, 470,    1,
                  163589, 63,     130400, 123074, 470,   63,     28560, 418,   1632,   2455,  308,    2704,
                  306,    651,    9545,   8491,   347,   2976,   3411,  276,   4503,   8491,  904,    9141,
                  4661,   3867,   1268,   1332,   5713,  1268,   50004, 5713,  1268,   19421, 5713,   316,
                  1268,   5354,   16518,  10048,  276,   2403,   387,   42070, 472,    1268,  130400, 123074,
                  470,    105281, 11369,  163588, 2778,  163589, 163586};
  expected.insert(expected.end(), kHi.begin(), kHi.end());
  ASSERT_EQ(expected.size(), 89u);
  EXPECT_EQ(xtml("{" + kHiMessages + "}"), expected);
  const auto max = std::find(expected.begin(), expected.end(), 105281);
  *max = 28;
  expected.insert(max + 1, 1332);
  EXPECT_EQ(xtml("{" + kHiMessages + R"(,"reasoning_effort":"low"})"), expected);
}

TEST_F(PublishedChat, GivesTheIdsOfASystemMessage) {
  EXPECT_EQ(xtml(R"({"messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"2+2?"}],
                     "reasoning_effort":null})"),
            (Ids{163587, 2778, 6244, 878, 14062, 1, 163589, 3900,   554,   93330, 13, 163588, 2778, 163589, 163586,
                 163587, 2778, 6244, 878, 2482,  1, 163589, 17,     10,    17,    30, 163588, 2778, 163589, 163586,
                 163587, 2778, 6244, 878, 69702, 1, 163589, 163587, 39964, 163589}));
}

TEST_F(PublishedChat, GivesTheIdsOfAConversationWithReasoning) {
  EXPECT_EQ(xtml(R"({"messages":[{"role":"user","content":"q1"},
               {"role":"assistant","content":"a1","reasoning_content":"because"},
               {"role":"user","content":"q2"}],"reasoning_effort":null})"),
            (Ids{163587, 2778,   6244,  878,    2482,  1,  163589, 80,     16,     163588, 2778,  163589, 163586,
                 163587, 2778,   6244,  878,    69702, 1,  163589, 163587, 39964,  163589, 47221, 163588, 39964,
                 163589, 163587, 12092, 163589, 64,    16, 163588, 12092,  163589, 163588, 2778,  163589, 163586,
                 163587, 2778,   6244,  878,    2482,  1,  163589, 80,     17,     163588, 2778,  163589, 163586,
                 163587, 2778,   6244,  878,    69702, 1,  163589, 163587, 39964,  163589}));
}

TEST_F(PublishedChat, GivesTheIdsOfACallAndItsResult) {
  const Ids calls = {163587, 25385,  163589, 163587, 10257,  4453,   878,    618,   21055,  2800,   1,
                     4002,   878,    16,     1,      163589, 163587, 47185,  2355,  878,    37666,  1,
                     1798,   878,    2033,   1,      163589, 113476, 163588, 47185, 163589, 163587, 47185,
                     2355,   878,    21030,  1,      1798,   878,    10006,  1,     163589, 18,     163588,
                     47185,  163589, 163588, 10257,  163589, 163588, 25385,  163589};
  const Ids result = {163587, 2778, 6244, 878, 20960,  1,    4453, 878,    618,  21055,  2800,  1,
                      4002,   878,  16,   1,   163589, 1428, 34,   163588, 2778, 163589, 163586};
  const Ids ids = xtml(R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"",
      "tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":{"city":"Paris","days":3}}}]},
      {"role":"tool","tool_call_id":"a","content":"18C"}],"reasoning_effort":null,"add_generation_prompt":false})");
  const auto found = std::search(ids.begin(), ids.end(), calls.begin(), calls.end());
  ASSERT_NE(found, ids.end());
  // The response element ends before it, the message after it.
  EXPECT_EQ(Ids(found - 3, found), (Ids{163588, 12092, 163589}));
  Ids rest = {163588, 2778, 163589, 163586};
  rest.insert(rest.end(), result.begin(), result.end());
  EXPECT_EQ(Ids(found + static_cast<std::ptrdiff_t>(calls.size()), ids.end()), rest);
}

TEST_F(PublishedChat, GivesTheIdsOfTextThatNamesControlTokens) {
  const auto content = [this](const std::string& text) {
    const Ids ids = xtml(R"({"messages":[{"role":"user","content":")" + text + R"("}],"reasoning_effort":null})");
    return Ids(ids.begin() + 7, std::find(ids.begin(), ids.end(), 163588));
  };
  EXPECT_EQ(content("What does [EOS] mean vs [PAD] and [UNK]?"),
            (Ids{5376, 2354, 793, 85521, 60, 4992, 12583, 793, 54904, 60, 316, 793, 57780, 87795}));
  EXPECT_EQ(content(R"(a&b \"q\" 日本語 🎉\nsecond line)"),
            (Ids{64, 5, 65, 414, 80, 1, 220, 4546, 63011, 17137, 236, 231, 198, 8959, 2470}));
}

TEST_F(PublishedChat, GivesTheIdsOfKimiLinear) {
  EXPECT_EQ(k2(R"({"messages":[{"role":"user","content":"Tell me about the french revolution."}]})"),
            (Ids{163587, 2482, 163601, 69211, 1019, 1215, 276, 64782, 25317, 13, 163586, 163588, 69702, 163601}));
}

TEST_F(PublishedChat, ParsesPublishedIdsOfAnAnswer) {
  const Ids ids = {47221, 163588, 39964, 163589, 163587, 12092, 163589, 64,
                   16,    163588, 12092, 163589, 163588, 2778,  163589, 163586};
  EXPECT_EQ(testing::described(testing::parse_answer(*xtml_, ids).message),
            "reasoning: because\ncontent: a1\nfinished");
}

}  // namespace
}  // namespace headrace
