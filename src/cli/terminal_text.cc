#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

constexpr char32_t kDelete = 0x7F;

bool is_c1_control(char32_t character) {
  return character >= 0x80 && character <= 0x9F;
}

/// Embeddings, overrides and isolates: with them a line can read other than it is.
bool turns_direction(char32_t character) {
  return (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

bool is_harmless(char32_t character) {
  if (character == U'\n' || character == U'\t') return true;
  return character >= U' ' && character != kDelete && !is_c1_control(character) && !turns_direction(character);
}

std::string TerminalText::filter(std::string_view piece) {
  std::u32string characters;
  for (const char byte : piece) decoder_.push(static_cast<uint8_t>(byte), characters);
  return shown(characters);
}

std::string TerminalText::finish() {
  std::u32string characters;
  decoder_.finish(characters);
  return shown(characters);
}

std::string TerminalText::shown(const std::u32string& characters) {
  // Unicode has a picture of each control of ASCII.
  constexpr char32_t kPictureOfNull = 0x2400;
  constexpr char32_t kPictureOfDelete = 0x2421;
  std::string text;
  for (const char32_t character : characters) {
    if (is_harmless(character)) {
      append_utf8(character, text);
    } else if (character < U' ') {
      if (character != U'\r') append_utf8(kPictureOfNull + character, text);
    } else {
      append_utf8(character == kDelete ? kPictureOfDelete : kReplacement, text);
    }
  }
  return text;
}

std::string terminal_text(std::string_view text) {
  TerminalText filter;
  std::string result = filter.filter(text);
  return result += filter.finish();
}

}  // namespace headrace::cli
