#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

/// Byte strings numbered 0, 1, 2, ... and the way back from bytes to number: the ordinary tokens of a tiktoken file.
/// Immutable. Bytes stand in one block; the index is a table of 4-byte slots at most 2/3 full.
class RankTable {
 public:
  static constexpr size_t kRanksMax = 1'000'000;
  static constexpr size_t kTokenBytesMax = 1024;
  static constexpr size_t kFileBytesMax = size_t{64} << 20;

  /// Parses lines of "<base64 of the token> <decimal rank>", ranks ascending by one from 0. Every single byte must be a
  /// token, so that any text can be encoded. kFormat with `file_name`, line and reason.
  static Result<RankTable> parse(std::string_view contents, const std::string& file_name);

  size_t size() const { return starts_.size() - 1; }
  /// Bytes of token `rank` < size(). Valid while the table lives.
  std::string_view bytes(uint32_t rank) const;
  std::optional<uint32_t> find(std::string_view bytes) const;
  uint32_t rank_of_byte(uint8_t byte) const { return byte_ranks_[byte]; }
  /// Length of the longest token: no longer string needs to be looked up.
  size_t longest_bytes() const { return longest_bytes_; }
  size_t memory_bytes() const;

 private:
  Status append_line(std::string_view line);
  Status build_index();
  Status find_single_bytes();

  std::string arena_;
  std::vector<uint32_t> starts_ = {0};  // Token r is arena_[starts_[r], starts_[r + 1]).
  std::vector<uint32_t> slots_;         // 0: empty; else a tag of the hash above kRankBits bits of rank + 1.
  std::array<uint32_t, 256> byte_ranks_ = {};
  size_t longest_bytes_ = 0;
};

}  // namespace headrace
