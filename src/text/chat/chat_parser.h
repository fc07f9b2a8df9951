#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace headrace {

/// A call that a model wrote.
struct ParsedCall {
  std::string id;
  std::string name;       ///< Never empty.
  std::string arguments;  ///< By intention a JSON object; there once the call has ended.
  /// False while the call is being written, and for good when the generation ended inside it: half a call must not be
  /// carried out.
  bool is_complete = false;
};

/// What a model said. All text is UTF-8.
struct ParsedMessage {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  bool is_finished = false;  ///< The model ended its message itself.
};

/// Something new in the message.
struct ChatEvent {
  enum class Kind : uint8_t {
    kReasoning,  ///< `text` was appended to the reasoning.
    kContent,    ///< `text` was appended to the content.
    kCallBegun,  ///< Call `call_index` has its name and id.
    kCallEnded,  ///< Call `call_index` has its arguments, and is complete or will never be.
    kEnded,      ///< Nothing will follow.
  };

  Kind kind;
  std::string text;
  size_t call_index = 0;
};

/// Takes a model's answer token by token. Structure are control tokens only: the same characters from ordinary tokens
/// are text. Whatever a model writes is taken: text that stands nowhere in particular is content, and what is beyond a
/// bound goes on as content. Control tokens without meaning for the format are left out. One thread at a time.
class ChatParser {
 public:
  virtual ~ChatParser() = default;

  /// Takes the next token, and tells what became certain. After the end tokens are ignored, as are ids outside the
  /// vocabulary.
  virtual std::vector<ChatEvent> push(TokenId id) = 0;
  /// The generation has ended: delivers what was held back. Nothing when the model ended its message itself.
  virtual std::vector<ChatEvent> finish() = 0;
  /// All of it so far.
  virtual const ParsedMessage& message() const = 0;
};

}  // namespace headrace
