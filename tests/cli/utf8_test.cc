#include "cli/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

/// The characters of `bytes` as numbers.
std::u32string decoded(std::string_view bytes) {
  cli::Utf8Decoder decoder;
  std::u32string characters;
  for (const char byte : bytes) decoder.push(static_cast<uint8_t>(byte), characters);
  decoder.finish(characters);
  return characters;
}

TEST(Utf8, DecodesTheEndsOfEveryRange) {
  EXPECT_EQ(decoded("\x7f\xc2\x80\xdf\xbf"), U"\x7f\x80\x7ff");
  EXPECT_EQ(decoded("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), U"\x800\xd7ff\xe000\xffff");
  EXPECT_EQ(decoded("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), U"\x10000\x10ffff");
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ReplacesTheLongestBeginningsOfCharacters) {
  const char32_t r = cli::kReplacement;
  EXPECT_EQ(decoded("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), (std::u32string{r, r, r, r, r, r, r, r, U'A'}));
  EXPECT_EQ(decoded("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), (std::u32string{r, r, r, r, r, r, r, r, U'A'}));
  EXPECT_EQ(decoded("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), (std::u32string{r, r, r, r, r, U'A', r, r, U'B'}));
  EXPECT_EQ(decoded("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), (std::u32string{r, r, r, r, U'A'}));
}

TEST(Utf8, EncodesWhatItDecodes) {
  for (char32_t character = 0; character <= 0x10FFFF; character += character < 0x3000 ? 1 : 251) {
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    std::string bytes;
    cli::append_utf8(character, bytes);
    ASSERT_EQ(decoded(bytes), std::u32string(1, character));
    ASSERT_EQ(cli::utf8_bytes(character), bytes.size());
  }
}

}  // namespace
}  // namespace headrace
