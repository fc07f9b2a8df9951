#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace::cli {

/// What the stream behind a file descriptor can show. A value, read once: the environment and the stream at that time.
class Terminal {
 public:
  /// Of something that is no terminal.
  Terminal() = default;
  explicit Terminal(int descriptor);

  bool is_terminal() const { return is_terminal_; }
  /// A terminal whose cursor can be moved: TERM is set, and not "dumb".
  bool has_cursor() const { return has_cursor_; }
  /// As has_cursor, and NO_COLOR is unset or empty.
  bool has_styles() const { return has_styles_; }
  /// Width of the window as it is now; 80 where nobody knows.
  size_t columns() const;

  // The text in a style, which ends with it, so that a program that ends at any time leaves no style behind; the text
  // as it stands without styles, and nothing for nothing.
  std::string dim(std::string_view text) const;  // Reasoning, statistics.
  std::string red(std::string_view text) const;  // Errors.

 private:
  int descriptor_ = -1;
  bool is_terminal_ = false;
  bool has_cursor_ = false;
  bool has_styles_ = false;
};

}  // namespace headrace::cli
