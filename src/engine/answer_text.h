#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/stop_matcher.h"
#include "text/utf8_stream.h"

namespace headrace {

/// Bytes of generated tokens to pieces of valid UTF-8 that end before the first stop string.
class AnswerText {
 public:
  /// kArgument as StopMatcher::create.
  static Result<AnswerText> create(std::vector<std::string> stops);

  /// Takes the bytes of a token; `piece()` is then the text that became certain. True when a stop string is complete.
  bool push(std::string_view bytes);
  /// What is held back cannot become a stop string any more: `piece()` is then that, and matching begins anew.
  void release();
  /// Ends the text; `piece()` is then what was held back.
  void finish();

  const std::string& piece() const { return piece_; }

 private:
  explicit AnswerText(StopMatcher matcher) : matcher_(std::move(matcher)) {}

  StopMatcher matcher_;
  Utf8Stream utf8_;
  bool stopped_ = false;
  std::string passed_;
  std::string piece_;
};

}  // namespace headrace
