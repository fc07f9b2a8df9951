#pragma once

#include <array>
#include <string>
#include <vector>

#include "text/chat/chat_format.h"
#include "text/tokenizer.h"

namespace headrace::fuzz {

/// One token per byte, id by its value, and behind them the control tokens of one format, its stops, and one that means
/// nothing to it.
class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(const ChatFormat& format) {
    for (int byte = 0; byte < 256; ++byte) names_.emplace_back(1, static_cast<char>(byte));
    for (const auto& controls : {format.controls, format.stops}) {
      for (const ControlLiteral& control : controls) {
        if (!control_id(control.name())) names_.emplace_back(control.name());
      }
    }
    names_.emplace_back("[PAD]");
  }

  Result<std::vector<TokenId>> encode(PlainText text) const override {
    std::vector<TokenId> ids;
    for (const char byte : text.bytes) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  Result<std::vector<TokenId>> encode(Markup) const override { return error(Code::kUnsupported, "no markup"); }
  std::optional<std::string_view> token_bytes(TokenId id) const override {
    if (id < 0 || static_cast<size_t>(id) >= names_.size()) return std::nullopt;
    return names_[static_cast<size_t>(id)];
  }
  bool is_control(TokenId id) const override { return id >= 256; }
  bool is_special(TokenId id) const override { return is_control(id); }
  std::optional<TokenId> control_id(std::string_view name) const override {
    for (size_t id = 256; id < names_.size(); ++id) {
      if (names_[id] == name) return static_cast<TokenId>(id);
    }
    return std::nullopt;
  }
  size_t vocabulary_size() const override { return names_.size(); }
  size_t memory_bytes() const override { return 0; }

 private:
  std::vector<std::string> names_;
};

/// The tokenizer of the format with this place in the table.
inline const ByteTokenizer& tokenizer_of(size_t format_index) {
  static const std::vector<ByteTokenizer> tokenizers = [] {
    std::vector<ByteTokenizer> all;
    for (const ChatFormat* format : chat_formats()) all.emplace_back(*format);
    return all;
  }();
  return tokenizers[format_index];
}

}  // namespace headrace::fuzz
