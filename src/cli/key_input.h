#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/utf8.h"

namespace headrace::cli {

/// Characters and lines of a descriptor that nobody else reads: it reads ahead. One thread at a time.
class KeyInput {
 public:
  explicit KeyInput(int descriptor) : descriptor_(descriptor) {}

  enum class Event { kCharacter, kEnd, kWoken };
  /// Waits for a character, the end of the input (a terminal that hung up, too), or until `wake_descriptor` is
  /// readable, which comes first.
  Event next(int wake_descriptor, char32_t& character);

  /// Whether a character is there already, or on its way.
  bool has_more() const;

  /// The next line, byte for byte, without its newline; nothing at the end. UsageError when it is longer than
  /// `bytes_max`, StreamError when reading fails.
  std::optional<std::string> line(size_t bytes_max);

 private:
  /// Reads what is there, waiting for it; false at the end.
  bool fill();

  const int descriptor_;
  Utf8Decoder decoder_;
  std::u32string characters_;  // Decoded, not yet given out.
  std::string bytes_;          // Read, not yet used, from `position_` on.
  size_t position_ = 0;
};

}  // namespace headrace::cli
