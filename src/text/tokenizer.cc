#include "text/tokenizer.h"

namespace headrace {

Result<std::string> decode(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string bytes;
  for (const TokenId id : ids) {
    const auto token = tokenizer.token_bytes(id);
    if (!token) {
      return error(Code::kArgument, "token id %d is outside the vocabulary of %zu", id, tokenizer.vocabulary_size());
    }
    bytes.append(*token);
  }
  return bytes;
}

}  // namespace headrace
