#include "text/chat/white_space.h"

#include "text/utf8.h"

namespace headrace {
namespace {

bool is_white(const Utf8Unit& unit) {
  if (unit.kind != Utf8Unit::Kind::kCharacter) return false;
  const char32_t point = unit.code_point;
  if (point < 0x80) return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20);
  return point == 0x85 || point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
         point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

/// Bytes of white space at the front.
size_t white_prefix_bytes(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Unit unit = read_utf8(text.substr(offset));
    if (!is_white(unit)) break;
    offset += unit.length;
  }
  return offset;
}

}  // namespace

std::string_view strip(std::string_view text) {
  text.remove_prefix(white_prefix_bytes(text));
  // From the back: a white character is at most three bytes, and no other ends with all bytes of one.
  constexpr size_t kWhiteBytesMax = 3;
  for (size_t length = 1; length <= kWhiteBytesMax && length <= text.size();) {
    const std::string_view tail = text.substr(text.size() - length);
    const Utf8Unit unit = read_utf8(tail);
    if (unit.length == length && is_white(unit)) {
      text.remove_suffix(length);
      length = 1;
    } else {
      ++length;
    }
  }
  return text;
}

bool is_blank(std::string_view text) {
  return white_prefix_bytes(text) == text.size();
}

}  // namespace headrace
