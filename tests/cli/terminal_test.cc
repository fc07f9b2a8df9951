#include "cli/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/pseudo_terminal.h"

namespace headrace {
namespace {

using cli::Terminal;

using TerminalOfTests = test::OnATerminal;

TEST_F(TerminalOfTests, StylesEndWithTheText) {
  const Terminal terminal(terminal_);
  EXPECT_TRUE(terminal.is_terminal());
  EXPECT_EQ(terminal.dim("text"), "\x1b[2mtext\x1b[22m");
  EXPECT_EQ(terminal.red("text"), "\x1b[31mtext\x1b[39m");
  EXPECT_EQ(terminal.dim(""), "");
}

TEST_F(TerminalOfTests, NoColorTurnsStylesOffUnlessItIsEmpty) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(Terminal(terminal_).has_styles());
  EXPECT_TRUE(Terminal(terminal_).has_cursor());
  EXPECT_EQ(Terminal(terminal_).dim("text"), "text");
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(Terminal(terminal_).has_styles());
}

TEST_F(TerminalOfTests, ADumbTerminalHasNeitherCursorNorStyles) {
  setenv("TERM", "dumb", 1);
  EXPECT_TRUE(Terminal(terminal_).is_terminal());
  EXPECT_FALSE(Terminal(terminal_).has_cursor());
  EXPECT_FALSE(Terminal(terminal_).has_styles());
  unsetenv("TERM");
  EXPECT_FALSE(Terminal(terminal_).has_cursor());
}

TEST_F(TerminalOfTests, APipeHasNoStyles) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Terminal terminal(ends[1]);
  EXPECT_FALSE(terminal.is_terminal());
  EXPECT_EQ(terminal.red("text"), "text");
  EXPECT_EQ(terminal.columns(), 80u);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TerminalOfTests, ColumnsAreThoseOfTheWindowOrElse80) {
  set_columns(132);
  EXPECT_EQ(Terminal(terminal_).columns(), 132u);
  set_columns(0);
  EXPECT_EQ(Terminal(terminal_).columns(), 80u);
  EXPECT_EQ(Terminal().columns(), 80u);
}

}  // namespace
}  // namespace headrace
