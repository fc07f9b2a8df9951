#include "cli/typed_text.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace headrace {
namespace {

using cli::cleaned_paste;
using cli::rows_above_end;

TEST(CleanedPaste, EveryEndOfALineIsANewline) {
  EXPECT_EQ(cleaned_paste(L"a\rb\r\nc\nd\r\r\n\n"), L"a\nb\nc\nd\n\n\n");
}

TEST(CleanedPaste, ControlsAreGone) {
  EXPECT_EQ(cleaned_paste(L"\ta\x1b[A\x03\x7f\x9b\x202e"
                          L"b\xe9\x65e5"),
            L"\ta[Ab\xe9\x65e5");
}

TEST(RowsAboveEnd, CountsFullRowsNewlinesTabsAndWideCharacters) {
  const std::string before = setlocale(LC_CTYPE, nullptr);
  ASSERT_NE(setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  EXPECT_EQ(rows_above_end(L"", 10), 0u);
  EXPECT_EQ(rows_above_end(L"123456789", 10), 0u);
  EXPECT_EQ(rows_above_end(L"1234567890", 10), 1u);
  EXPECT_EQ(rows_above_end(L"12345678901", 10), 1u);
  EXPECT_EQ(rows_above_end(L"1\n2\n", 10), 2u);
  EXPECT_EQ(rows_above_end(L"\t12", 10), 1u);
  EXPECT_EQ(rows_above_end(L"1\t2", 10), 0u);
  EXPECT_EQ(rows_above_end(L"\x65e5\x65e5\x65e5", 5), 1u);  // The third does not fit into the fifth column.
  EXPECT_EQ(rows_above_end(L"e\x301"
                           L"e\x301",
                           3),
            0u);  // An accent has no width of its own.
  setlocale(LC_CTYPE, before.c_str());
}

std::string sequences_of(std::wstring_view keys) {
  cli::KeySequence sequence;
  std::string result;
  for (const wchar_t key : keys) result += sequence.take(key) ? 's' : '.';
  return result;
}

TEST(KeySequence, EndsWithItsLetter) {
  EXPECT_EQ(sequences_of(L"a\x1b[Ab"), ".sss.");
  EXPECT_EQ(sequences_of(L"\x1b[1;5Dx"), "ssssss.");
  EXPECT_EQ(sequences_of(L"\x1bOHx"), "sss.");
  EXPECT_EQ(sequences_of(L"\x1b[3~x"), "ssss.");
  EXPECT_EQ(sequences_of(L"\x1b"
                         L"bx"),
            "ss.");
  EXPECT_EQ(sequences_of(L"\x1b\x1b[Ax"), "ssss.");
}

}  // namespace
}  // namespace headrace
