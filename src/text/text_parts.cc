#include "text/text_parts.h"

#include "text/utf8.h"

namespace headrace {
namespace {

constexpr size_t kSliceCharacters = 400'000;
constexpr size_t kRunCharactersMax = 25'000;

/// What the published encoder counts as white space here: `str.isspace` of Python, which is White_Space and the
/// separators U+001C to U+001F. The pattern that cuts words does not count those four.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::vector<size_t> part_ends(std::string_view text) {
  if (text.size() <= kRunCharactersMax) return {text.size()};
  std::vector<size_t> ends;
  size_t slice_characters = 0;
  size_t run_characters = 0;
  bool run_is_space = false;
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Unit unit = read_utf8(text.substr(offset));
    const bool valid = unit.kind == Utf8Unit::Kind::kCharacter;
    const bool space = valid && is_space(unit.code_point);
    if (slice_characters == kSliceCharacters) {
      ends.push_back(offset);
      slice_characters = 0;
      run_characters = 0;
    }
    ++slice_characters;
    run_characters = space == run_is_space ? run_characters + 1 : 1;
    run_is_space = space;
    if (run_characters > kRunCharactersMax) {
      ends.push_back(offset);
      run_characters = 1;
    }
    offset += valid ? unit.length : 1;
  }
  ends.push_back(text.size());
  return ends;
}

}  // namespace headrace
