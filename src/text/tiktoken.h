#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// A file that the caller has read: `name` is for messages.
struct NamedText {
  std::string name;
  std::string_view contents;
};

/// Longest tokenizer_config.json that is accepted.
inline constexpr size_t kTokenizerConfigBytesMax = size_t{16} << 20;

/// The tokenizer of Kimi-Linear and Kimi K3, from the contents of `tiktoken.model` (see RankTable::parse) and
/// `tokenizer_config.json`. With N ranks, ids N to N + 255 are control tokens: `added_tokens_decoder` names them, and
/// those it leaves out are called `<|reserved_token_ID|>`. Ids past those are ignored, as the publisher's code does.
/// kFormat for anything malformed, and when the configuration names no control token of this vocabulary: prompts would
/// silently lose their markers. Nothing refers to the two texts afterwards.
///
/// Encoding follows the publisher's code, including how it cuts long input (see part_ends); a cut that would go through
/// the name of a control token is not made. Text that is not UTF-8: valid stretches are encoded as text of their own,
/// each other byte as its single-byte token. Decoding the ids always gives the bytes of the text again.
/// Besides the ids it needs at most about 10 MB of working memory (the longest piece of a part), normally a few KB.
Result<std::unique_ptr<Tokenizer>> load_tiktoken(const NamedText& rank_file, const NamedText& tokenizer_config);

}  // namespace headrace
