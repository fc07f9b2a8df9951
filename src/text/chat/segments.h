#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// The name of one control token, from a literal in the source: nothing that is only known at run time, such as the
/// text of a user, can become one (P6).
class ControlLiteral {
 public:
  template <size_t kSize>
  // NOLINTNEXTLINE(google-explicit-constructor, modernize-avoid-c-arrays): only literals fit.
  consteval ControlLiteral(const char (&name)[kSize]) : name_(name, kSize - 1) {}

  constexpr std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

/// Text of anybody: ordinary tokens, whatever it spells.
struct TextSegment {
  std::string text;
};

using Segment = std::variant<ControlLiteral, TextSegment>;

/// A prompt before it is tokens. Segments are encoded one by one: where one text ends and the next begins changes ids.
class Segments {
 public:
  void append_control(ControlLiteral control) { segments_.emplace_back(control); }
  /// Empty text is no segment.
  void append_text(std::string text) {
    if (!text.empty()) segments_.emplace_back(TextSegment{std::move(text)});
  }
  std::span<const Segment> list() const { return segments_; }

 private:
  std::vector<Segment> segments_;
};

/// Ids of all segments, each encoded on its own. kFormat when the vocabulary lacks a control token.
Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer, const Segments& segments);

}  // namespace headrace
