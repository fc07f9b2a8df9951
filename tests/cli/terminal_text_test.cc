#include "cli/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

using cli::TerminalText;
constexpr auto shown = cli::terminal_text;

TEST(TerminalText, ControlsBecomeVisible) {
  EXPECT_EQ(shown("a\x1b]0;title\x07"), "a\xe2\x90\x9b]0;title\xe2\x90\x87");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)),
            "a\xe2\x90\x80"
            "b");
  EXPECT_EQ(shown("a\x08"
                  "b\x7f"),
            "a\xe2\x90\x88"
            "b\xe2\x90\xa1");
}

TEST(TerminalText, LinesAndTabsStay) {
  EXPECT_EQ(shown("a\n\tb\r\nc\rd"), "a\n\tb\ncd");
}

TEST(TerminalText, C1ControlsAndTurnsOfDirectionBecomeReplacements) {
  EXPECT_EQ(shown("\xc2\x9b"
                  "2J\xc2\x85"),
            "\xef\xbf\xbd"
            "2J\xef\xbf\xbd");
  EXPECT_EQ(shown("\xe2\x80\xae"
                  "abc\xe2\x80\xac"),
            "\xef\xbf\xbd"
            "abc\xef\xbf\xbd");
  EXPECT_EQ(shown("\xe2\x81\xa6"
                  "abc\xe2\x81\xa9"),
            "\xef\xbf\xbd"
            "abc\xef\xbf\xbd");
}

// A lone byte 0x9B is the beginning of a sequence for terminals that take bytes for Latin-1.
TEST(TerminalText, BytesThatAreNoUtf8BecomeReplacements) {
  EXPECT_EQ(shown("a\x9b"
                  "2J"),
            "a\xef\xbf\xbd"
            "2J");
  EXPECT_EQ(shown("a\xe6\x97"), "a\xef\xbf\xbd");
}

TEST(TerminalText, TextOfEveryScriptStays) {
  const std::string text = "h\xc3\xa9llo \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d";
  EXPECT_EQ(shown(text), text);
}

TEST(TerminalText, PiecesCutAnywhereGiveTheSame) {
  const std::string text = "h\xc3\xa9 \xe6\x97\xa5\x1b[1m\xf0\x9f\x98\x80\xff\xe6\x97\xc2\x9b\r\n\xed\xa0\x80.";
  TerminalText filter;
  std::string pieces;
  for (const char byte : text) pieces += filter.filter({&byte, 1});
  pieces += filter.finish();
  EXPECT_EQ(pieces, shown(text));
  EXPECT_EQ(filter.filter("next"), "next");
}

}  // namespace
}  // namespace headrace
