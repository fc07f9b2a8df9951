#include "cli/typed_text.h"

#include <algorithm>
#include <cwchar>

#include "cli/terminal_text.h"

namespace headrace::cli {

std::wstring cleaned_paste(std::wstring_view pasted) {
  std::wstring text;
  wchar_t before = 0;
  for (const wchar_t character : pasted) {
    const bool ends_line = character == L'\r' || (character == L'\n' && before != L'\r');
    if (ends_line) {
      text += L'\n';
    } else if (character != L'\n' && is_harmless(static_cast<char32_t>(character))) {
      text += character;
    }
    before = character;
  }
  return text;
}

size_t rows_above_end(std::wstring_view text, size_t columns) {
  constexpr size_t kTabStop = 8;
  size_t row = 0;
  size_t column = 0;
  for (const wchar_t character : text) {
    const auto width = static_cast<size_t>(std::max(wcwidth(character), 0));
    if (character == L'\n' || column + width > columns) {
      ++row;
      column = 0;
    }
    column += character == L'\t' ? kTabStop - column % kTabStop : width;
    column = std::min(column, columns);
  }
  return row + column / columns;
}

bool KeySequence::take(wchar_t key) {
  constexpr wchar_t kEscape = L'\x1B';
  const State before = state_;
  if (key == kEscape) {
    state_ = State::kBegun;
  } else if (before == State::kBegun) {
    state_ = key == L'[' || key == L'O' ? State::kInside : State::kOutside;
  } else if (before == State::kInside && key >= L'@') {
    state_ = State::kOutside;
  }
  return before != State::kOutside || state_ != State::kOutside;
}

}  // namespace headrace::cli
