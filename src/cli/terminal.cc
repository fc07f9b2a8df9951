#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace headrace::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// `begin` and `end` are parameters of the sequence that selects a style.
std::string styled(bool has_styles, std::string_view text, int begin, int end) {
  return has_styles && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[{}m", begin, text, end) : std::string(text);
}

}  // namespace

Terminal::Terminal(int descriptor) : descriptor_(descriptor), is_terminal_(isatty(descriptor) == 1) {
  const std::string_view kind = environment("TERM");
  has_cursor_ = is_terminal_ && !kind.empty() && kind != "dumb";
  has_styles_ = has_cursor_ && environment("NO_COLOR").empty();
}

size_t Terminal::columns() const {
  constexpr size_t kColumnsDefault = 80;
  winsize size{};
  return ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kColumnsDefault;
}

std::string Terminal::dim(std::string_view text) const {
  return styled(has_styles_, text, 2, 22);
}

std::string Terminal::red(std::string_view text) const {
  return styled(has_styles_, text, 31, 39);
}

}  // namespace headrace::cli
