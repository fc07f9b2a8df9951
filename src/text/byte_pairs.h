#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/rank_table.h"
#include "text/tokenizer.h"

namespace headrace {

/// Byte-pair encoding of pieces. Keeps its working memory from piece to piece (at most about 80 bytes per byte of the
/// longest one); on the stack of one thread. The table outlives it.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(const RankTable& ranks) : ranks_(ranks) {}

  /// Appends the ids of one piece: its rank if it is a token; else starts from single bytes and merges the neighbours
  /// whose joined bytes have the lowest rank, leftmost first, until no two neighbours are a token. Takes O(n log n).
  /// Pieces are below 2^32 - 1 bytes.
  void append(std::string_view piece, std::vector<TokenId>& ids);

 private:
  /// A run of bytes of the piece that is one token at the moment, at the index of its first byte.
  struct Symbol {
    uint32_t previous;
    uint32_t end;  // Also the index of the next symbol. kMerged: now part of a symbol to its left.
    uint32_t rank;
  };
  /// Two neighbours, bytes [begin, end), that would become token `rank`.
  struct Candidate {
    uint32_t rank;
    uint32_t begin;
    uint32_t end;
  };

  void start_symbols(std::string_view piece);
  void propose(std::string_view piece, uint32_t begin);
  void merge(std::string_view piece, const Candidate& candidate);
  bool is_current(const Candidate& candidate) const;

  const RankTable& ranks_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // A heap, best first. Holds outdated ones, recognised when they come up.
};

}  // namespace headrace
