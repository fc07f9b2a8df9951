#include "text/text_parts.h"

#include <gtest/gtest.h>

#include <string>

#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::repeat;

using Ends = std::vector<size_t>;

TEST(TextParts, LeavesShortTextWhole) {
  EXPECT_EQ(part_ends(""), (Ends{0}));
  EXPECT_EQ(part_ends("hello"), (Ends{5}));
  EXPECT_EQ(part_ends(repeat("a", 25'000)), (Ends{25'000}));
  EXPECT_EQ(part_ends(repeat("a b ", 50'000)), (Ends{200'000}));
}

TEST(TextParts, CutsRunsAfter25000Characters) {
  EXPECT_EQ(part_ends(repeat("a", 25'001)), (Ends{25'000, 25'001}));
  EXPECT_EQ(part_ends(repeat("a", 50'000)), (Ends{25'000, 50'000}));
  EXPECT_EQ(part_ends(repeat("a", 50'001)), (Ends{25'000, 50'000, 50'001}));
  EXPECT_EQ(part_ends(repeat(" ", 25'001)), (Ends{25'000, 25'001}));
  EXPECT_EQ(part_ends(repeat("\n", 25'001)), (Ends{25'000, 25'001}));
}

TEST(TextParts, StartsARunAnewWhereWhiteSpaceBeginsOrEnds) {
  EXPECT_EQ(part_ends(repeat("a", 25'000) + repeat(" ", 25'000)), (Ends{50'000}));
  EXPECT_EQ(part_ends("x y" + repeat("a", 25'000)), (Ends{25'002, 25'003}));
  EXPECT_EQ(part_ends(repeat("a", 25'001) + " " + repeat("b", 25'001)), (Ends{25'000, 50'002, 50'003}));
}

TEST(TextParts, CountsCharactersNotBytes) {
  EXPECT_EQ(part_ends(repeat("中", 25'000)), (Ends{75'000}));
  EXPECT_EQ(part_ends(repeat("中", 25'001)), (Ends{75'000, 75'003}));
  EXPECT_EQ(part_ends(repeat("\xFF", 25'001)), (Ends{25'000, 25'001}));
}

TEST(TextParts, CountsTheInformationSeparatorsAsWhiteSpace) {
  EXPECT_EQ(part_ends(repeat("\x1C\x1F ", 8'334)), (Ends{25'000, 25'002}));
  EXPECT_EQ(part_ends(repeat("\u0085\u3000", 12'501)), (Ends{62'500, 62'505}));
  EXPECT_EQ(part_ends(repeat("a", 24'999) + "\u200Bb"), (Ends{25'002, 25'003})) << "not white space";
  EXPECT_EQ(part_ends(repeat("a", 24'999) + "\u180Eb"), (Ends{25'002, 25'003})) << "not white space";
}

TEST(TextParts, CutsSlicesOf400000CharactersAndStartsRunsAnewThere) {
  EXPECT_EQ(part_ends(repeat("ab ", 133'334)), (Ends{400'000, 400'002}));
  EXPECT_EQ(part_ends(repeat("ab ", 133'333) + "c"), (Ends{400'000}));
  // 399,990 characters in short words, then a run that the slice cuts after 10 of them.
  EXPECT_EQ(part_ends(repeat("a ", 199'995) + repeat("b", 25'011)), (Ends{400'000, 425'000, 425'001}));
}

}  // namespace
}  // namespace headrace
