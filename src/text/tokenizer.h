#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

using TokenId = int32_t;

/// Text of users, documents, tools and models: control tokens in it are ordinary characters (P6). Bytes, by intention
/// UTF-8; invalid bytes encode as themselves.
struct PlainText {
  std::string_view bytes;
};

/// Text that the engine composed itself: spellings of control tokens become their ids.
struct Markup {
  std::string_view bytes;
};

/// Text to token ids and back. Immutable once loaded: every member may be called from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of plain text; never a control id.
  virtual Result<std::vector<TokenId>> encode(PlainText text) const = 0;
  /// Ids of text in which control tokens are recognised anywhere, leftmost match, longest name first.
  virtual Result<std::vector<TokenId>> encode(Markup text) const = 0;

  /// The bytes of one token (control tokens: their name); nothing when the id is outside the vocabulary.
  virtual std::optional<std::string_view> token_bytes(TokenId id) const = 0;
  virtual bool is_control(TokenId id) const = 0;
  /// A control token that its publisher flags as special: display of the text leaves it out. Prompts and parsers must
  /// not depend on this; every control token is one id.
  virtual bool is_special(TokenId id) const = 0;
  /// The id of the control token called `name`.
  virtual std::optional<TokenId> control_id(std::string_view name) const = 0;
  /// Ids are 0 <= id < vocabulary_size().
  virtual size_t vocabulary_size() const = 0;
  /// Memory it holds, for the budget.
  virtual size_t memory_bytes() const = 0;
};

/// The bytes of all `ids`, joined; control tokens as their names. kArgument when an id is outside the vocabulary.
Result<std::string> decode(const Tokenizer& tokenizer, std::span<const TokenId> ids);

}  // namespace headrace
