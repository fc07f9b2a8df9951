#pragma once

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/chat_format.h"
#include "text/tokenizer.h"

namespace headrace::testing {

/// Which model's control tokens a vocabulary has.
enum class ControlSet { kXtml, kK2 };

/// The ordinary tokens of the demo model with these control tokens, from id 4096.
std::unique_ptr<Tokenizer> demo_tokenizer(ControlSet controls);

/// One token per byte, and these control tokens, from id 256.
std::unique_ptr<Tokenizer> byte_tokenizer(ControlSet controls);

/// The publisher's ordinary tokens with these control tokens, from id 163584. Null when HEADRACE_TEST_TOKENIZERS does
/// not name the folder that has them.
std::unique_ptr<Tokenizer> published_tokenizer(ControlSet controls);
inline constexpr const char* kNoPublishedTokenizer =
    "HEADRACE_TEST_TOKENIZERS is not set: it names a folder with kimi_k2.tiktoken";

/// A request through the door. Fails the test when it is refused.
ChatRequest request_of(std::string_view json);

/// The prompt of a request as segments. Fails the test when it is refused.
Segments rendered(const ChatFormat& format, const ChatRequest& request);

/// All segments joined, control tokens by their names.
std::string joined(const Segments& segments);

/// joined(rendered()) of a request.
std::string prompt_of(const ChatFormat& format, std::string_view json);

/// Ids of the prompt of a request. Fails the test when it is refused.
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const ChatRequest& request);

/// Ids of a text whose control tokens are spelled.
std::vector<TokenId> marked_ids(const Tokenizer& tokenizer, std::string_view text);

/// What a parser made of an answer, and whether its events say the same.
struct Answer {
  ParsedMessage message;
  std::vector<std::string> events;  ///< Such as "content: text", "call 0", "end of call 0", "end".
};

/// Feeds the ids to a new parser, and ends it. Checks that the events tell the message, and that all text is UTF-8.
Answer parse_answer(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool thinking = true);

/// The message as one text, for comparisons.
std::string described(const ParsedMessage& message);

/// Made-up values from a fixed seed.
class Inventor {
 public:
  explicit Inventor(uint32_t seed) : random_(seed) {}

  size_t below(size_t limit) { return random_() % limit; }
  bool one_in(size_t count) { return below(count) == 0; }
  /// Text with everything that might mean something to a format: quotes, entities, names of control tokens, white
  /// space, many scripts. Maybe empty.
  std::string text();
  /// A JSON value with all types in it.
  JsonValue json(size_t depth);
  /// An object whose keys are different.
  JsonObject object(size_t depth);

 private:
  std::mt19937 random_;
};

}  // namespace headrace::testing
