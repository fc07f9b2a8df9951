#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace::cli {

/// A paste as it enters a message: returns, with or without a newline behind them, are newlines, and what is_harmless
/// does not let through is gone.
std::wstring cleaned_paste(std::wstring_view pasted);

/// Rows of a window of `columns` (at least 2) between the beginning of `text` and the cursor behind it. Wide characters
/// are not split; a full row ends with its last character.
size_t rows_above_end(std::wstring_view text, size_t columns);

/// Follows the escape sequences of keys: ESC and a character, ESC [ or ESC O and all up to a letter or a tilde.
class KeySequence {
 public:
  /// Whether `key` belongs to a sequence.
  bool take(wchar_t key);

 private:
  enum class State { kOutside, kBegun, kInside };
  State state_ = State::kOutside;
};

}  // namespace headrace::cli
