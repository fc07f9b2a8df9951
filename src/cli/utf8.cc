#include "cli/utf8.h"

namespace headrace::cli {

// The table of well-formed sequences of the Unicode standard (3.9, table 3-7): only the second byte has special bounds.
void Utf8Decoder::push(uint8_t byte, std::u32string& characters) {
  if (missing_bytes_ > 0) {
    if (byte < least_ || byte > most_) {
      finish(characters);
      return push(byte, characters);
    }
    value_ = value_ << 6 | (byte & 0x3F);
    least_ = 0x80;
    most_ = 0xBF;
    if (--missing_bytes_ == 0) characters += static_cast<char32_t>(value_);
    return;
  }
  if (byte < 0x80) {
    characters += static_cast<char32_t>(byte);
  } else if (byte < 0xC2 || byte > 0xF4) {
    characters += kReplacement;
  } else {
    missing_bytes_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    value_ = byte & (0x3Fu >> missing_bytes_);
    least_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    most_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  }
}

void Utf8Decoder::finish(std::u32string& characters) {
  if (missing_bytes_ > 0) characters += kReplacement;
  *this = Utf8Decoder();
}

size_t utf8_bytes(char32_t character) {
  return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}

void append_utf8(char32_t character, std::string& text) {
  const size_t bytes = utf8_bytes(character);
  if (bytes == 1) {
    text += static_cast<char>(character);
    return;
  }
  constexpr uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[bytes] | character >> 6 * (bytes - 1));
  for (size_t left = bytes - 1; left > 0; --left)
    text += static_cast<char>(0x80 | (character >> 6 * (left - 1) & 0x3F));
}

std::string utf8_of(std::wstring_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const wchar_t character : text) append_utf8(static_cast<char32_t>(character), utf8);
  return utf8;
}

std::wstring wide_of(std::string_view utf8) {
  Utf8Decoder decoder;
  std::u32string characters;
  for (const char byte : utf8) decoder.push(static_cast<uint8_t>(byte), characters);
  decoder.finish(characters);
  return {characters.begin(), characters.end()};
}

size_t utf8_bytes(std::wstring_view text) {
  size_t bytes = 0;
  for (const wchar_t character : text) bytes += utf8_bytes(static_cast<char32_t>(character));
  return bytes;
}

}  // namespace headrace::cli
