#include "cli/line_history.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

TEST(LineHistory, ForgetsTheOldestBeyondItsBounds) {
  cli::LineHistory history;
  for (size_t entry = 0; entry < cli::LineHistory::kEntriesMax + 5; ++entry) history.add(std::to_wstring(entry));
  const std::wstring* oldest = nullptr;
  size_t count = 0;
  while (const std::wstring* entry = history.older(L"")) {
    oldest = entry;
    ++count;
  }
  EXPECT_EQ(count, cli::LineHistory::kEntriesMax);
  ASSERT_NE(oldest, nullptr);
  EXPECT_EQ(*oldest, L"5");
  history.add(std::wstring(cli::LineHistory::kCharactersMax, L'x'));
  history.rewind();
  EXPECT_NE(history.older(L""), nullptr);
  EXPECT_EQ(history.older(L""), nullptr);
}

TEST(LineHistory, KeepsNoEmptyEntriesAndNoRepetitions) {
  cli::LineHistory history;
  for (const wchar_t* entry : {L"a", L"a", L"", L"b"}) history.add(entry);
  EXPECT_EQ(*history.older(L"draft"), L"b");
  EXPECT_EQ(*history.older(L"b"), L"a");
  EXPECT_EQ(history.older(L"a"), nullptr);
  EXPECT_EQ(*history.newer(), L"b");
  EXPECT_EQ(*history.newer(), L"draft");
  EXPECT_EQ(history.newer(), nullptr);
}

}  // namespace
}  // namespace headrace
