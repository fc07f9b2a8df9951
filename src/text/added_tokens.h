#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// One entry of `added_tokens_decoder`.
struct AddedToken {
  TokenId id;
  std::string name;
  bool special;
};

/// The entries of `added_tokens_decoder` in the contents of a `tokenizer_config.json`. kFormat when it is not JSON, has
/// no such object, or an entry is malformed; kUnsupported for entries that would match only in some surroundings
/// (`lstrip`, `rstrip`, `single_word`).
Result<std::vector<AddedToken>> parse_added_tokens(std::string_view tokenizer_config);

}  // namespace headrace
