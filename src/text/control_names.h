#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// The names of control tokens, whose ids are consecutive, and the search for them in text. Immutable.
class ControlNames {
 public:
  static constexpr size_t kNameBytesMax = 256;

  struct Match {
    size_t begin;
    size_t end;
    TokenId id;
  };

  /// `names[i]` belongs to id `first_id` + i. kFormat when one is empty, too long, or there twice.
  static Result<ControlNames> build(TokenId first_id, std::vector<std::string> names);

  /// Ids are first_id() <= id < end_id().
  TokenId first_id() const { return first_id_; }
  TokenId end_id() const { return first_id_ + static_cast<TokenId>(names_.size()); }
  const std::string& name(TokenId id) const { return names_.at(static_cast<size_t>(id - first_id_)); }
  std::optional<TokenId> find(std::string_view name) const;

  /// The leftmost name in `text` at or after `begin`; of several that start there, the longest.
  std::optional<Match> find_next(std::string_view text, size_t begin) const;
  size_t memory_bytes() const;

 private:
  std::optional<Match> longest_at(std::string_view text, size_t begin) const;

  TokenId first_id_ = 0;
  std::vector<std::string> names_;  // By id.
  std::vector<TokenId> sorted_;     // Ids in the order of their names' bytes.
};

}  // namespace headrace
