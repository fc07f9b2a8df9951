#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::cli {

/// U+FFFD, which stands for what is no character.
inline constexpr char32_t kReplacement = 0xFFFD;

/// Makes characters of the bytes of a stream, in pieces cut anywhere. What is no UTF-8 (overlong forms, surrogates and
/// numbers beyond U+10FFFF too) becomes U+FFFD, one for each longest beginning of a character. One thread at a time.
class Utf8Decoder {
 public:
  /// Appends the characters that `byte` completes, at most two.
  void push(uint8_t byte, std::u32string& characters);
  /// At the end of the stream: a character that was not completed becomes U+FFFD.
  void finish(std::u32string& characters);

 private:
  uint32_t value_ = 0;
  int missing_bytes_ = 0;
  // What the next byte may be: narrower after the first byte of some sequences.
  uint8_t least_ = 0x80;
  uint8_t most_ = 0xBF;
};

void append_utf8(char32_t character, std::string& text);
/// Bytes of a character in UTF-8.
size_t utf8_bytes(char32_t character);

// wchar_t is a character of 32 bits on the systems that this is built for.
static_assert(sizeof(wchar_t) == sizeof(char32_t));
std::string utf8_of(std::wstring_view text);
std::wstring wide_of(std::string_view utf8);
size_t utf8_bytes(std::wstring_view text);

}  // namespace headrace::cli
