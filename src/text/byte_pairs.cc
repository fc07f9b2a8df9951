#include "text/byte_pairs.h"

#include <algorithm>
#include <limits>

namespace headrace {
namespace {

constexpr uint32_t kMerged = std::numeric_limits<uint32_t>::max();

}  // namespace

void BytePairEncoder::append(std::string_view piece, std::vector<TokenId>& ids) {
  if (const auto rank = ranks_.find(piece)) {
    ids.push_back(static_cast<TokenId>(*rank));
    return;
  }
  // Best first: the lowest rank, then the leftmost.
  constexpr auto kWorse = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.begin > b.begin;
  };
  start_symbols(piece);
  std::make_heap(candidates_.begin(), candidates_.end(), kWorse);
  while (!candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), kWorse);
    const Candidate candidate = candidates_.back();
    candidates_.pop_back();
    if (!is_current(candidate)) continue;
    const size_t count_before = candidates_.size();
    merge(piece, candidate);
    for (size_t count = count_before + 1; count <= candidates_.size(); ++count) {
      std::push_heap(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count), kWorse);
    }
  }
  for (uint32_t begin = 0; begin < piece.size(); begin = symbols_[begin].end) {
    ids.push_back(static_cast<TokenId>(symbols_[begin].rank));
  }
}

void BytePairEncoder::start_symbols(std::string_view piece) {
  ENSURE(piece.size() < kMerged);
  symbols_.clear();
  candidates_.clear();
  for (uint32_t begin = 0; begin < piece.size(); ++begin) {
    const uint32_t rank = ranks_.rank_of_byte(static_cast<uint8_t>(piece[begin]));
    symbols_.push_back({begin == 0 ? 0 : begin - 1, begin + 1, rank});
  }
  for (uint32_t begin = 0; begin < piece.size(); ++begin) propose(piece, begin);
}

/// Adds the symbol at `begin` and its right neighbour as a candidate when they make a token.
void BytePairEncoder::propose(std::string_view piece, uint32_t begin) {
  const uint32_t middle = symbols_[begin].end;
  if (middle == piece.size()) return;
  const uint32_t end = symbols_[middle].end;
  if (const auto rank = ranks_.find(piece.substr(begin, end - begin))) candidates_.push_back({*rank, begin, end});
}

/// A candidate is outdated when one of its symbols was merged with another one since.
bool BytePairEncoder::is_current(const Candidate& candidate) const {
  const uint32_t middle = symbols_[candidate.begin].end;
  return middle != kMerged && middle < candidate.end && symbols_[middle].end == candidate.end;
}

void BytePairEncoder::merge(std::string_view piece, const Candidate& candidate) {
  Symbol& left = symbols_[candidate.begin];
  symbols_[left.end].end = kMerged;
  left.end = candidate.end;
  left.rank = candidate.rank;
  if (candidate.end < piece.size()) symbols_[candidate.end].previous = candidate.begin;
  propose(piece, candidate.begin);
  if (candidate.begin > 0) propose(piece, left.previous);
}

}  // namespace headrace
