// Answers that were cut, and answers that are no answers.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/chat/chat_support.h"
#include "text/chat/white_space.h"

namespace headrace {
namespace {

using testing::ControlSet;
using testing::described;

constexpr const char* kXtmlAnswer =
    "because 🎉<|close|>think<|sep|><|open|>response<|sep|>The 天気 is<|close|>response<|sep|><|open|>tools<|sep|>"
    "<|open|>call tool=\"get&quot;weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Paris"
    "<|close|>argument<|sep|><|open|>argument key=\"n\" type=\"array\"<|sep|>[1, 2]<|close|>argument<|sep|>"
    "<|close|>call<|sep|><|open|>call tool=\"g\" index=\"2\"<|sep|><|open|>json "
    "type=\"object\"<|sep|>{x<|close|>json<|sep|>"
    "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>";
constexpr const char* kK2Answer =
    "The 天気 🎉 is<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    "{\"city\": \"Paris\"}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}"
    "<|tool_call_end|><|tool_calls_section_end|><|im_end|>";

/// Whether `text` begins with `start`, but for one U+FFFD of a character that was cut.
bool begins_with(const std::string& text, std::string start) {
  if (start.ends_with("\xEF\xBF\xBD")) start.resize(start.size() - 3);
  return text.starts_with(start);
}

class ParserDamage : public ::testing::TestWithParam<ControlSet> {
 protected:
  void SetUp() override {
    tokens_ = testing::demo_tokenizer(GetParam());
    bytes_ = testing::byte_tokenizer(GetParam());
  }
  const char* answer() const { return GetParam() == ControlSet::kXtml ? kXtmlAnswer : kK2Answer; }

  std::unique_ptr<Tokenizer> tokens_;
  std::unique_ptr<Tokenizer> bytes_;
};

TEST_P(ParserDamage, NeverPassesOffACallThatWasCut) {
  for (const Tokenizer* tokenizer : {tokens_.get(), bytes_.get()}) {
    const auto ids = testing::marked_ids(*tokenizer, answer());
    const ParsedMessage whole = testing::parse_answer(*tokenizer, ids).message;
    ASSERT_EQ(whole.calls.size(), 2u);
    for (size_t count = 0; count < ids.size(); ++count) {
      const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
      const ParsedMessage cut = testing::parse_answer(*tokenizer, {ids.begin(), end}).message;
      EXPECT_FALSE(cut.is_finished) << count;
      EXPECT_LE(cut.reasoning.size(), whole.reasoning.size() + 5) << count;
      for (size_t index = 0; index < cut.calls.size(); ++index) {
        const ParsedCall& call = cut.calls[index];
        EXPECT_EQ(call.name, whole.calls[index].name) << count;
        if (call.is_complete) {
          EXPECT_EQ(call.arguments, whole.calls[index].arguments) << count;
        }
      }
    }
  }
}

TEST_P(ParserDamage, TellsTheSameTextUpToTheCut) {
  const auto ids = testing::marked_ids(*bytes_, answer());
  const ParsedMessage whole = testing::parse_answer(*bytes_, ids).message;
  for (size_t count = 0; count < ids.size(); ++count) {
    // A header that the cut leaves unfinished is text: only cuts outside of headers tell a beginning of the whole.
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
    const auto last = std::find_if(std::make_reverse_iterator(end), std::make_reverse_iterator(ids.begin()),
                                   [&](TokenId id) { return bytes_->is_control(id); });
    const bool in_header = last != std::make_reverse_iterator(ids.begin()) &&
                           (bytes_->token_bytes(*last) == "<|open|>" || bytes_->token_bytes(*last) == "<|close|>" ||
                            bytes_->token_bytes(*last) == "<|tool_call_begin|>");
    if (in_header) continue;
    const ParsedMessage cut = testing::parse_answer(*bytes_, {ids.begin(), end}).message;
    EXPECT_TRUE(begins_with(whole.reasoning, cut.reasoning)) << count << ": " << cut.reasoning;
    EXPECT_TRUE(begins_with(whole.content, cut.content)) << count << ": " << cut.content;
  }
}

/// Random ids: mostly control tokens that mean something, tags, and words of which each is there once.
class Soup {
 public:
  Soup(const Tokenizer& tokenizer, uint32_t seed) : tokenizer_(tokenizer), random_(seed) {
    for (const ControlLiteral& control : find_chat_format(tokenizer)->controls) add_control(control.name());
  }
  std::vector<TokenId> ids;
  std::vector<std::string> words;

  void stir() {
    static const char* const kTags[] = {"think",         "response", "tools", "call tool=\"f\"",
                                        "json",          "message",  "other", "call",
                                        "functions.f:1", " ",        "\n"};
    for (int step = 0; step < 60; ++step) {
      const size_t kind = random_() % 10;
      if (kind < 5) {
        ids.push_back(controls_[random_() % controls_.size()]);
      } else if (kind == 5) {  // A key that is written again would replace the earlier value.
        append("argument key=\"" + std::to_string(step) + (random_() % 2 == 0 ? "\" type=\"string\"" : "\""));
      } else if (kind < 8) {
        append(kTags[random_() % std::size(kTags)]);
      } else {
        words.push_back("w" + std::to_string(step) + "x");
        append(words.back());
      }
    }
  }

 private:
  void add_control(std::string_view name) {
    const auto id = tokenizer_.control_id(name);
    // The end of the message would end the test: it is not in the soup.
    if (id && name != "<|end_of_msg|>" && name != "<|im_end|>") controls_.push_back(*id);
  }
  void append(const std::string& text) {
    const auto encoded = tokenizer_.encode(PlainText{text});
    ids.insert(ids.end(), encoded.value().begin(), encoded.value().end());
  }

  const Tokenizer& tokenizer_;
  std::mt19937 random_;
  std::vector<TokenId> controls_;
};

/// The words of a soup that K3's structure takes: those in headers that are finished. By another way than the parser's:
/// spelled text, searched.
std::string without_headers(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string text;
  size_t header_begin = std::string::npos;
  for (const TokenId id : ids) {
    const std::string_view bytes = *tokenizer.token_bytes(id);
    if (!tokenizer.is_control(id)) {
      text += bytes;
    } else if (bytes == "<|open|>" || bytes == "<|close|>") {
      header_begin = text.size();
    } else if (bytes == "<|sep|>" && header_begin != std::string::npos) {
      text.resize(header_begin);
      header_begin = std::string::npos;
    }
  }
  return text;
}

TEST_P(ParserDamage, LosesNoWordOfAnySoup) {
  size_t word_count = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Soup soup(*tokens_, seed);
    soup.stir();
    const ParsedMessage message = testing::parse_answer(*tokens_, soup.ids, seed % 2 == 0).message;
    const std::string said = described(message);
    const std::string kept = without_headers(*tokens_, soup.ids);
    for (const std::string& word : soup.words) {
      if (kept.find(word) == std::string::npos) continue;
      ASSERT_NE(said.find(word), std::string::npos) << seed << ": " << word << " of\n" << said;
      ++word_count;
    }
  }
  EXPECT_GT(word_count, 10'000u);
}

TEST_P(ParserDamage, TakesEveryTokenAnywhere) {
  std::mt19937 random(7);
  for (int soup = 0; soup < 200; ++soup) {
    std::vector<TokenId> ids;
    for (int step = 0; step < 300; ++step) {
      const size_t size = bytes_->vocabulary_size();
      const size_t id = random() % 3 == 0 ? 256 + random() % 20 : random() % size;
      const std::string_view name = *bytes_->token_bytes(static_cast<TokenId>(id));
      if (name != "[EOS]" && name != "<|end_of_msg|>" && name != "<|im_end|>") ids.push_back(static_cast<TokenId>(id));
    }
    const auto answer = testing::parse_answer(*bytes_, ids, soup % 2 == 0);
    EXPECT_FALSE(answer.message.is_finished);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ParserDamage, ::testing::Values(ControlSet::kXtml, ControlSet::kK2),
                         [](const auto& format) { return format.param == ControlSet::kXtml ? "KimiXtml" : "KimiK2"; });

}  // namespace
}  // namespace headrace
