#include "text/rank_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using testing::rank_line;

Result<RankTable> parse(std::string_view contents) {
  return RankTable::parse(contents, "toy.model");
}

void expect_refused(const std::string& contents, const std::string& reason) {
  const auto table = parse(contents);
  ASSERT_FALSE(table) << reason;
  EXPECT_EQ(table.error().code, Code::kFormat);
  EXPECT_NE(table.error().message.find(reason), std::string::npos) << table.error().message;
  EXPECT_NE(table.error().message.find("toy.model"), std::string::npos) << table.error().message;
}

/// The single bytes, then `line` as the line of rank 256.
void expect_line_refused(const std::string& line, const std::string& reason) {
  expect_refused(testing::rank_file(testing::single_bytes()) + line, reason);
}

TEST(RankTable, FindsEveryTokenByItsBytesAndItsRank) {
  const std::vector<std::string> tokens = testing::toy_tokens();
  auto table = parse(testing::rank_file(tokens));
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table.value().size(), tokens.size());
  for (uint32_t rank = 0; rank < tokens.size(); ++rank) {
    EXPECT_EQ(table.value().bytes(rank), tokens[rank]);
    EXPECT_EQ(table.value().find(tokens[rank]), rank);
  }
  EXPECT_FALSE(table.value().find("hel"));
  EXPECT_FALSE(table.value().find(""));
  EXPECT_FALSE(table.value().find(std::string(5000, 'a')));
  EXPECT_EQ(table.value().rank_of_byte('a'), 64u);
  EXPECT_EQ(table.value().longest_bytes(), 6u);
}

TEST(RankTable, ReadsALastLineWithoutNewline) {
  std::string file = testing::rank_file(testing::toy_tokens());
  file.pop_back();
  auto table = parse(file);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table.value().size(), 272u);
}

TEST(RankTable, RefusesLinesThatAreNotATokenAndARank) {
  const std::string token = "aGVsbG8=";  // hello
  expect_line_refused("\n", "line 257: no space");
  expect_line_refused(token + "\n", "no space");
  expect_line_refused(token + " \n", "decimal");
  expect_line_refused(token + " x\n", "decimal");
  expect_line_refused(token + " 256x\n", "decimal");
  expect_line_refused(token + " 256 \n", "decimal");
  expect_line_refused(token + " 256\r\n", "decimal");
  expect_line_refused(token + "  256\n", "decimal");
  expect_line_refused(token + " -1\n", "decimal");
  expect_line_refused(token + " +256\n", "decimal");
  expect_line_refused(token + " 99999999999999999999\n", "decimal");
  expect_line_refused(std::string(" 256\n"), "empty");
}

TEST(RankTable, RefusesRanksThatLeaveGapsOrRepeat) {
  const std::string token = "aGVsbG8=";
  expect_line_refused(token + " 257\n", "line 257: rank 257 where 256 is due");
  expect_line_refused(token + " 255\n", "rank 255 where 256 is due");
  expect_line_refused(token + " 2147483647\n", "rank 2147483647 where 256 is due");
  expect_line_refused(token + " 4294967295\n", "rank 4294967295 where 256 is due");
}

TEST(RankTable, RefusesTheSameTokenTwice) {
  expect_line_refused(rank_line("a", "256"), "ranks 64 and 256 are the same token");
}

TEST(RankTable, RefusesBase64ThatIsNotExact) {
  for (const char* token : {"aGVsbG8", "aGVsbG8==", "aGVsbG9=", "aGVsb===", "====", "=aGV", "aG=V", "aGV\x80", "aG-_",
                            "aGVs=bG8", "aA==aA=="}) {
    expect_line_refused(std::string(token) + " 256\n", "base64");
  }
}

TEST(RankTable, RefusesLongTokens) {
  auto longest = parse(testing::rank_file(testing::single_bytes()) + rank_line(std::string(1024, 'a'), "256"));
  ASSERT_TRUE(longest) << longest.error().message;
  EXPECT_EQ(longest.value().find(std::string(1024, 'a')), 256u);
  expect_line_refused(rank_line(std::string(1025, 'a'), "256"), "more than 1024 bytes");
  expect_line_refused(rank_line(std::string(1'000'000, 'a'), "256"), "more than 1024 bytes");
}

TEST(RankTable, RefusesVocabulariesThatLackASingleByte) {
  expect_refused("", "0x00");
  for (size_t missing = 0; missing < 256; missing += 51) {
    std::vector<std::string> tokens = testing::single_bytes();
    const auto byte = static_cast<unsigned char>(tokens[missing][0]);
    tokens[missing] = "longer";
    char reason[8];
    std::snprintf(reason, sizeof(reason), "0x%02X", byte);
    expect_refused(testing::rank_file(tokens), reason);
  }
}

TEST(RankTable, RefusesAFileCutAnywhereInItsLastLines) {
  const std::string file = testing::rank_file(testing::single_bytes());
  // The last token is a single byte, so no proper part of the file but the missing newline is a vocabulary.
  for (size_t size = file.size() - 40; size < file.size() - 1; ++size)
    EXPECT_FALSE(parse(file.substr(0, size))) << size;
}

TEST(RankTable, TakesAMillionTokensAndNoMore) {
  std::string file = testing::rank_file(testing::single_bytes());
  for (size_t rank = 256; rank < RankTable::kRanksMax; ++rank) {
    const char token[4] = {static_cast<char>(rank >> 16), static_cast<char>(rank >> 8), static_cast<char>(rank), 'x'};
    file += rank_line({token, sizeof(token)}, std::to_string(rank));
  }
  auto table = parse(file);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table.value().size(), RankTable::kRanksMax);
  EXPECT_EQ(table.value().find(table.value().bytes(999'999)), 999'999u);
  EXPECT_LT(table.value().memory_bytes(), 20u << 20);
  expect_refused(file + rank_line("one more", "1000000"), "more than 1000000 tokens");
}

TEST(RankTable, RefusesFilesWithoutBound) {
  expect_refused(std::string(RankTable::kFileBytesMax + 1, 'A'), "rank file");
}

/// The inverse of odd `a` modulo 2^64: Newton's iteration doubles the right bits, of which a * a has 3 to begin with.
uint64_t inverse(uint64_t a) {
  uint64_t x = a;
  for (int step = 0; step < 6; ++step) x *= 2 - a * x;
  return x;
}

TEST(RankTable, RefusesTokensCraftedToCollide) {
  // Words of 8 bytes whose hashes agree in the low 32 bits: the table's mixing, run backwards.
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::string file = testing::rank_file(testing::single_bytes());
  for (uint64_t high = 0; high < 3000; ++high) {
    const uint64_t product = high << 32 | (high ^ 0x1234567u);
    const uint64_t word = product * inverse(kMultiplier) ^ 8 * kMultiplier;
    char token[8];
    std::memcpy(token, &word, sizeof(token));
    file += rank_line({token, sizeof(token)}, std::to_string(256 + high));
  }
  expect_refused(file, "crafted to collide");
}

}  // namespace
}  // namespace headrace
