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
  /// Each becomes a token or more: beyond this no context has room. An argument of six bytes becomes sixteen segments,
  /// so without bound a small request could take much memory.
  static constexpr size_t kSegmentsMax = 1'000'000;

  void append_control(ControlLiteral control) { append(control); }
  /// Empty text is no segment.
  void append_text(std::string text) {
    if (!text.empty()) append(TextSegment{std::move(text)});
  }
  /// False when more was appended than there is room for; the rest was dropped, and encode_segments will refuse.
  bool is_whole() const { return is_whole_; }
  std::span<const Segment> list() const { return segments_; }

 private:
  void append(Segment segment) {
    is_whole_ = segments_.size() < kSegmentsMax;
    if (is_whole_) segments_.push_back(std::move(segment));
  }

  std::vector<Segment> segments_;
  bool is_whole_ = true;
};

/// Ids of all segments, each encoded on its own. kFormat when the vocabulary lacks a control token; kArgument when
/// there are too many segments.
Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer, const Segments& segments);

}  // namespace headrace
