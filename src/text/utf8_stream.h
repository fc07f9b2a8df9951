#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace headrace {

/// Turns the bytes of tokens, which do not respect the borders of characters, into pieces of valid UTF-8.
///
/// A tail that later bytes may still complete (at most 3 bytes) is held back. Bytes that nothing can complete become
/// U+FFFD as soon as that is certain: one for each maximal subpart (Unicode standard, section 3.9), so the pieces
/// joined are the same however the bytes were cut, and the same as replacing in the whole output at once. A tail that
/// is still open when the stream ends becomes one U+FFFD, at `finish`. One thread at a time.
class Utf8Stream {
 public:
  /// Appends to `text` what `bytes` make certain.
  void push(std::string_view bytes, std::string& text);
  /// Ends the stream: appends U+FFFD when bytes are held back. The object is then as new.
  void finish(std::string& text);
  /// Bytes held back.
  size_t held_bytes() const { return held_count_; }

 private:
  static constexpr size_t kCharacterBytesMax = 4;

  size_t complete_held(std::string_view bytes, std::string& text);

  char held_[kCharacterBytesMax] = {};
  size_t held_count_ = 0;
};

}  // namespace headrace
