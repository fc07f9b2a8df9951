#include "text/tiktoken.h"

#include <bitset>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/byte_pairs.h"
#include "text/control_names.h"
#include "text/kimi_pattern.h"
#include "text/rank_table.h"
#include "text/regex_splitter.h"
#include "text/text_parts.h"
#include "text/utf8.h"

namespace headrace {
namespace {

constexpr size_t kControlCount = 256;

struct Controls {
  ControlNames names;
  std::bitset<kControlCount> special;
};

class Tiktoken final : public Tokenizer {
 public:
  Tiktoken(RankTable ranks, Controls controls, RegexSplitter splitter)
      : ranks_(std::move(ranks)), controls_(std::move(controls)), splitter_(std::move(splitter)) {}

  Result<std::vector<TokenId>> encode(PlainText text) const override;
  Result<std::vector<TokenId>> encode(Markup text) const override;

  std::optional<std::string_view> token_bytes(TokenId id) const override;
  bool is_control(TokenId id) const override {
    return id >= controls_.names.first_id() && id < controls_.names.end_id();
  }
  bool is_special(TokenId id) const override {
    return is_control(id) && controls_.special.test(static_cast<size_t>(id - controls_.names.first_id()));
  }
  std::optional<TokenId> control_id(std::string_view name) const override { return controls_.names.find(name); }
  size_t vocabulary_size() const override { return ranks_.size() + kControlCount; }
  size_t memory_bytes() const override {
    return sizeof(*this) + ranks_.memory_bytes() + controls_.names.memory_bytes() + splitter_.memory_bytes();
  }

 private:
  friend class Encoding;

  const RankTable ranks_;
  const Controls controls_;
  const RegexSplitter splitter_;
};

/// One text on its way to ids.
class Encoding {
 public:
  Encoding(const Tiktoken& tokenizer, std::string_view text)
      : tokenizer_(tokenizer), text_(text), part_ends_(part_ends(text)), pairs_(tokenizer.ranks_) {}

  /// Encodes bytes [begin, end) of the text as ordinary tokens, part by part. Calls go from left to right.
  Status append_plain(size_t begin, size_t end);
  void append_control(TokenId id) { ids_.push_back(id); }
  std::vector<TokenId> take_ids() { return std::move(ids_); }

 private:
  Status append_part(std::string_view part);
  Status append_valid(std::string_view text);

  const Tiktoken& tokenizer_;
  const std::string_view text_;
  const std::vector<size_t> part_ends_;
  size_t part_index_ = 0;  // First part that ends after what is encoded.
  BytePairEncoder pairs_;
  std::vector<TokenId> ids_;
};

Status Encoding::append_plain(size_t begin, size_t end) {
  while (begin < end) {
    while (part_ends_[part_index_] <= begin) ++part_index_;
    const size_t part_end = std::min(end, part_ends_[part_index_]);
    TRY(append_part(text_.substr(begin, part_end - begin)));
    begin = part_end;
  }
  return {};
}

Status Encoding::append_part(std::string_view part) {
  while (!part.empty()) {
    const size_t valid_bytes = valid_utf8_prefix_bytes(part);
    if (valid_bytes > 0) TRY(append_valid(part.substr(0, valid_bytes)));
    part.remove_prefix(valid_bytes);
    if (part.empty()) break;
    pairs_.append(part.substr(0, 1), ids_);
    part.remove_prefix(1);
  }
  return {};
}

Status Encoding::append_valid(std::string_view text) {
  return tokenizer_.splitter_.split(text, [this](std::string_view piece) { pairs_.append(piece, ids_); });
}

Result<std::vector<TokenId>> Tiktoken::encode(PlainText text) const {
  Encoding encoding(*this, text.bytes);
  TRY(encoding.append_plain(0, text.bytes.size()));
  return encoding.take_ids();
}

Result<std::vector<TokenId>> Tiktoken::encode(Markup text) const {
  Encoding encoding(*this, text.bytes);
  size_t begin = 0;
  while (const auto match = controls_.names.find_next(text.bytes, begin)) {
    TRY(encoding.append_plain(begin, match->begin));
    encoding.append_control(match->id);
    begin = match->end;
  }
  TRY(encoding.append_plain(begin, text.bytes.size()));
  return encoding.take_ids();
}

std::optional<std::string_view> Tiktoken::token_bytes(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocabulary_size()) return std::nullopt;
  if (is_control(id)) return controls_.names.name(id);
  return ranks_.bytes(static_cast<uint32_t>(id));
}

std::vector<std::string> reserved_names(TokenId first_id) {
  std::vector<std::string> names;
  for (size_t index = 0; index < kControlCount; ++index) {
    names.push_back("<|reserved_token_" + std::to_string(first_id + static_cast<TokenId>(index)) + "|>");
  }
  return names;
}

Result<Controls> load_controls(std::string_view tokenizer_config, size_t rank_count) {
  if (tokenizer_config.size() > kTokenizerConfigBytesMax) {
    return error(Code::kFormat, "%zu bytes, more than the %zu allowed", tokenizer_config.size(),
                 kTokenizerConfigBytesMax);
  }
  const auto first_id = static_cast<TokenId>(rank_count);
  std::vector<std::string> names = reserved_names(first_id);
  // The publisher registers unnamed slots as special.
  std::bitset<kControlCount> special;
  special.set();
  size_t named_count = 0;
  std::vector<AddedToken> tokens = TRY(parse_added_tokens(tokenizer_config));
  for (AddedToken& token : tokens) {
    if (token.id < first_id) {
      return error(Code::kFormat, "names token %d (%s), which is one of the %zu ordinary ones", token.id,
                   token.name.c_str(), rank_count);
    }
    const auto index = static_cast<size_t>(token.id - first_id);
    if (index >= kControlCount) continue;
    names[index] = std::move(token.name);
    special[index] = token.special;
    ++named_count;
  }
  if (named_count == 0) {
    return error(Code::kFormat, "names none of the control tokens %d to %zu: it belongs to another vocabulary",
                 first_id, rank_count + kControlCount - 1);
  }
  ControlNames built = TRY(ControlNames::build(first_id, std::move(names)));
  return Controls{std::move(built), special};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tiktoken(const NamedText& rank_file, const NamedText& tokenizer_config) {
  RankTable ranks = TRY(RankTable::parse(rank_file.contents, rank_file.name));
  Result<Controls> controls = load_controls(tokenizer_config.contents, ranks.size());
  if (!controls) return with_context(controls.take_error(), "%s", tokenizer_config.name.c_str());
  RegexSplitter splitter = TRY(RegexSplitter::compile(kimi_pattern()));
  return std::unique_ptr<Tokenizer>(
      std::make_unique<Tiktoken>(std::move(ranks), controls.take_value(), std::move(splitter)));
}

}  // namespace headrace
