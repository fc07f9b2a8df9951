#include "text/byte_pairs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

RankTable toy_table() {
  auto table = RankTable::parse(testing::rank_file(testing::toy_tokens()), "toy.model");
  EXPECT_TRUE(table);
  return table.take_value();
}

/// The definition, word for word: look for the pair of lowest rank, leftmost on ties, merge it, start over.
Ids merged_by_definition(const RankTable& ranks, std::string_view piece) {
  if (const auto rank = ranks.find(piece)) return {static_cast<TokenId>(*rank)};
  std::vector<std::string> symbols;
  for (const char byte : piece) symbols.emplace_back(1, byte);
  for (;;) {
    std::optional<uint32_t> best;
    size_t place = 0;
    for (size_t index = 0; index + 1 < symbols.size(); ++index) {
      const auto rank = ranks.find(symbols[index] + symbols[index + 1]);
      if (!rank || (best && *rank >= *best)) continue;
      best = rank;
      place = index;
    }
    if (!best) break;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) ids.push_back(static_cast<TokenId>(ranks.find(symbol).value()));
  return ids;
}

TEST(BytePairs, MergesAsDefinedOnRandomPieces) {
  const RankTable ranks = toy_table();
  BytePairEncoder encoder(ranks);
  std::mt19937 random(3);
  const std::string letters = "helowrdtxyz  l";
  for (int round = 0; round < 2000; ++round) {
    std::string piece(1 + random() % 40, '\0');
    for (char& byte : piece) byte = letters[random() % letters.size()];
    Ids ids;
    encoder.append(piece, ids);
    EXPECT_EQ(ids, merged_by_definition(ranks, piece)) << piece;
  }
}

TEST(BytePairs, MergesAsDefinedOverARandomVocabulary) {
  // Short strings over three letters in random order of rank: many ties, overlaps and pairs that die before their turn.
  std::mt19937 random(4);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> words;
    for (int code = 3; code < 120; ++code) {
      std::string word;
      for (int rest = code; rest > 0; rest /= 3) word += static_cast<char>('a' + rest % 3);
      if (word.size() > 1) words.push_back(word);
    }
    std::shuffle(words.begin(), words.end(), random);
    words.resize(40);
    std::vector<std::string> tokens = testing::single_bytes();
    tokens.insert(tokens.end(), words.begin(), words.end());
    auto ranks = RankTable::parse(testing::rank_file(tokens), "random.model");
    ASSERT_TRUE(ranks);
    BytePairEncoder encoder(ranks.value());
    for (int piece_index = 0; piece_index < 50; ++piece_index) {
      std::string piece(1 + random() % 60, '\0');
      for (char& byte : piece) byte = static_cast<char>('a' + random() % 3);
      Ids ids;
      encoder.append(piece, ids);
      EXPECT_EQ(ids, merged_by_definition(ranks.value(), piece)) << piece;
    }
  }
}

TEST(BytePairs, MergesLeftmostFirstOnTies) {
  const RankTable ranks = toy_table();
  BytePairEncoder encoder(ranks);
  Ids ids;
  encoder.append("lll", ids);
  EXPECT_EQ(ids, (Ids{257, 75}));
}

double seconds_of_piece(BytePairEncoder& encoder, size_t size) {
  std::string piece(size, '\0');
  for (size_t index = 0; index < size; ++index) piece[index] = "hello world"[index * 7 % 11];
  Ids ids;
  const auto start = std::chrono::steady_clock::now();
  encoder.append(piece, ids);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_GT(ids.size(), size / 8);
  return taken.count();
}

TEST(BytePairs, MergesOnePieceOfAMegabyteInAboutLinearTime) {
  const RankTable ranks = toy_table();
  BytePairEncoder encoder(ranks);
  seconds_of_piece(encoder, 1 << 20);  // First touch of the working memory.
  const double small = seconds_of_piece(encoder, 1 << 17);
  const double large = seconds_of_piece(encoder, 1 << 20);
  // Quadratic merging of a megabyte takes minutes and grows 64-fold here; the slack is for sanitizers and busy
  // machines.
  EXPECT_LT(large, 20.0);
  EXPECT_LT(large, small * 32 + 0.1);
}

}  // namespace
}  // namespace headrace
