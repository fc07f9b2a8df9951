#include "text/control_names.h"

#include <algorithm>
#include <numeric>

namespace headrace {

Result<ControlNames> ControlNames::build(TokenId first_id, std::vector<std::string> names) {
  ControlNames result;
  result.first_id_ = first_id;
  result.names_ = std::move(names);
  for (const std::string& name : result.names_) {
    if (name.empty()) return error(Code::kFormat, "a control token without a name");
    if (name.size() > kNameBytesMax) {
      return error(Code::kFormat, "the name of a control token has %zu bytes, more than %zu", name.size(),
                   kNameBytesMax);
    }
  }
  result.sorted_.resize(result.names_.size());
  std::iota(result.sorted_.begin(), result.sorted_.end(), first_id);
  const auto name_of = [&result](TokenId id) -> const std::string& { return result.name(id); };
  std::ranges::sort(result.sorted_, {}, name_of);
  const auto twice = std::ranges::adjacent_find(result.sorted_, {}, name_of);
  if (twice != result.sorted_.end()) {
    return error(Code::kFormat, "control tokens %d and %d have the same name %s", *twice, *(twice + 1),
                 result.name(*twice).c_str());
  }
  return result;
}

std::optional<TokenId> ControlNames::find(std::string_view name) const {
  const auto match = longest_at(name, 0);
  if (!match || match->end != name.size()) return std::nullopt;
  return match->id;
}

std::optional<ControlNames::Match> ControlNames::find_next(std::string_view text, size_t begin) const {
  for (; begin < text.size(); ++begin) {
    if (const auto match = longest_at(text, begin)) return match;
  }
  return std::nullopt;
}

/// Walks the sorted names like a tree: after `depth` bytes of text, [first, last) are the names that begin with them.
std::optional<ControlNames::Match> ControlNames::longest_at(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  auto first = sorted_.begin();
  auto last = sorted_.end();
  for (size_t depth = 0; begin + depth < text.size(); ++depth) {
    // Names that end here sort before those that go on, and their next byte counts as -1.
    const auto next_byte = [this, depth](TokenId id) {
      return depth < name(id).size() ? static_cast<int>(static_cast<unsigned char>(name(id)[depth])) : -1;
    };
    const int wanted = static_cast<unsigned char>(text[begin + depth]);
    first = std::ranges::lower_bound(first, last, wanted, {}, next_byte);
    last = std::ranges::upper_bound(first, last, wanted, {}, next_byte);
    if (first == last) break;
    if (name(*first).size() == depth + 1) longest = Match{begin, begin + depth + 1, *first};
  }
  return longest;
}

size_t ControlNames::memory_bytes() const {
  size_t bytes = sizeof(*this) + names_.capacity() * sizeof(std::string) + sorted_.capacity() * sizeof(TokenId);
  for (const std::string& name : names_) bytes += name.capacity() + 1;
  return bytes;
}

}  // namespace headrace
