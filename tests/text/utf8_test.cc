#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

using Kind = Utf8Unit::Kind;

/// UTF-8 of a code point by the bit pattern alone, valid or not.
std::string raw_utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
}

TEST(Utf8, ReadsEveryCodePointAndNoSurrogate) {
  for (char32_t c = 0; c < 0x140000; ++c) {
    const std::string bytes = raw_utf8(c);
    const Utf8Unit unit = read_utf8(bytes + "x");
    const bool valid = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
    ASSERT_EQ(unit.kind == Kind::kCharacter, valid) << std::hex << static_cast<uint32_t>(c);
    if (!valid) continue;
    ASSERT_EQ(unit.length, bytes.size());
    ASSERT_EQ(unit.code_point, c);
  }
}

TEST(Utf8, RefusesOverlongForms) {
  for (const char* bytes :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF"}) {
    const Utf8Unit unit = read_utf8(bytes);
    EXPECT_EQ(unit.kind, Kind::kInvalid);
    EXPECT_EQ(unit.length, 1);
  }
}

TEST(Utf8, TellsWhatMayBeCompletedFromWhatMayNot) {
  for (const char* bytes : {"\xC3", "\xE4", "\xE4\xB8", "\xF0", "\xF0\x9F", "\xF0\x9F\x91", "\xED\x9F", "\xF4\x8F"}) {
    const Utf8Unit unit = read_utf8(bytes);
    EXPECT_EQ(unit.kind, Kind::kIncomplete);
    EXPECT_EQ(unit.length, std::string(bytes).size());
  }
  for (const char* bytes : {"\x80", "\xBF", "\xFF", "\xF5", "\xED\xA0", "\xF4\x90"}) {
    EXPECT_EQ(read_utf8(bytes).kind, Kind::kInvalid);
    EXPECT_EQ(read_utf8(bytes).length, 1);
  }
}

TEST(Utf8, MeasuresTheValidBeginning) {
  EXPECT_EQ(valid_utf8_prefix_bytes(""), 0u);
  EXPECT_EQ(valid_utf8_prefix_bytes("a中👍"), 8u);
  EXPECT_EQ(valid_utf8_prefix_bytes("a中\xF0\x9F\x91"), 4u);
  EXPECT_EQ(valid_utf8_prefix_bytes("a\xFF中"), 1u);
}

}  // namespace
}  // namespace headrace
