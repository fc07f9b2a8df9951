#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

/// Ends a stream of bytes at the first of some strings. Bytes that may belong to one of them are held back, so neither
/// the string nor a part of it is ever let through. What passes does not depend on how the bytes were cut: the string
/// that is complete first wins, of those complete at the same byte the longest.
class StopMatcher {
 public:
  /// Most strings, and most bytes of one.
  static constexpr size_t kStringsMax = 16;
  static constexpr size_t kStringBytesMax = 256;

  /// kArgument for too many, too long or empty strings.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  /// Takes `bytes` in and appends to `passed` what can no longer belong to a stop string. True when one is complete:
  /// then nothing more passes.
  bool push(std::string_view bytes, std::string& passed);
  /// Ends the stream without a match: appends to `passed` what is held back.
  void finish(std::string& passed);

 private:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  size_t longest_stop_at_end() const;
  size_t longest_beginning_at_end() const;

  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace headrace
