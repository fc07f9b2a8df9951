#include "text/rank_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "text/base64.h"

namespace headrace {
namespace {

constexpr uint32_t kRankBits = 20;
constexpr uint32_t kRankMask = (1u << kRankBits) - 1;
static_assert(RankTable::kRanksMax <= kRankMask, "rank + 1 must fit its bits of a slot");

/// Slots that one look-up may visit. At 2/3 load a million honest tokens need about a hundred; a file made of colliding
/// tokens would make loading quadratic.
constexpr size_t kProbesMax = 1024;

uint64_t hash_of(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio.
  uint64_t hash = bytes.size() * kMultiplier;
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, std::min(sizeof(word), bytes.size() - offset));
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Tag of a hash, in the bits of a slot above the rank. The slot's index comes from the low bits.
uint32_t tag_of(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 32) & ~kRankMask;
}

Result<uint32_t> parse_rank(std::string_view text) {
  uint32_t rank = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) {
    return error(Code::kFormat, "the rank is not a decimal number below 2^32");
  }
  return rank;
}

/// Takes the first line off `rest`, without its newline.
std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

Result<RankTable> RankTable::parse(std::string_view contents, const std::string& file_name) {
  if (contents.size() > kFileBytesMax) {
    return error(Code::kFormat, "%s: %zu bytes, more than the %zu that a rank file may have", file_name.c_str(),
                 contents.size(), kFileBytesMax);
  }
  RankTable table;
  std::string_view rest = contents;
  for (size_t line_number = 1; !rest.empty(); ++line_number) {
    Status status = table.append_line(take_line(rest));
    if (!status) return with_context(status.take_error(), "%s, line %zu", file_name.c_str(), line_number);
  }
  table.arena_.shrink_to_fit();
  table.starts_.shrink_to_fit();
  Status status = table.build_index();
  if (status) status = table.find_single_bytes();
  if (!status) return with_context(status.take_error(), "%s", file_name.c_str());
  return table;
}

Status RankTable::append_line(std::string_view line) {
  if (size() == kRanksMax) return error(Code::kFormat, "more than %zu tokens", kRanksMax);
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return error(Code::kFormat, "no space between token and rank");
  if (space > base64_bytes(kTokenBytesMax)) {
    return error(Code::kFormat, "a token of more than %zu bytes", kTokenBytesMax);
  }
  const size_t start = arena_.size();
  TRY(append_base64(line.substr(0, space), arena_));
  const size_t token_bytes = arena_.size() - start;
  if (token_bytes == 0) return error(Code::kFormat, "an empty token");
  if (token_bytes > kTokenBytesMax) return error(Code::kFormat, "a token of more than %zu bytes", kTokenBytesMax);
  const uint32_t rank = TRY(parse_rank(line.substr(space + 1)));
  if (rank != size()) return error(Code::kFormat, "rank %u where %zu is due: ranks ascend by one from 0", rank, size());
  starts_.push_back(static_cast<uint32_t>(arena_.size()));
  longest_bytes_ = std::max(longest_bytes_, token_bytes);
  return {};
}

Status RankTable::build_index() {
  size_t slot_count = 512;
  while (slot_count * 2 < size() * 3) slot_count *= 2;
  slots_.assign(slot_count, 0);
  for (uint32_t rank = 0; rank < size(); ++rank) {
    const uint64_t hash = hash_of(bytes(rank));
    size_t slot = hash & (slot_count - 1);
    size_t probes = 1;
    for (; slots_[slot] != 0; slot = (slot + 1) & (slot_count - 1), ++probes) {
      const uint32_t other = (slots_[slot] & kRankMask) - 1;
      if (bytes(other) == bytes(rank)) return error(Code::kFormat, "ranks %u and %u are the same token", other, rank);
      if (probes == kProbesMax) return error(Code::kFormat, "tokens crafted to collide, the last one of rank %u", rank);
    }
    slots_[slot] = tag_of(hash) | (rank + 1);
  }
  return {};
}

Status RankTable::find_single_bytes() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const std::optional<uint32_t> rank = find({&text, 1});
    if (!rank) return error(Code::kFormat, "no token for the single byte 0x%02X", byte);
    byte_ranks_[byte] = *rank;
  }
  return {};
}

std::string_view RankTable::bytes(uint32_t rank) const {
  ENSURE(rank < size());
  return std::string_view(arena_).substr(starts_[rank], starts_[rank + 1] - starts_[rank]);
}

std::optional<uint32_t> RankTable::find(std::string_view wanted) const {
  if (wanted.size() > longest_bytes_) return std::nullopt;
  const uint64_t hash = hash_of(wanted);
  const uint32_t tag = tag_of(hash);
  for (size_t slot = hash & (slots_.size() - 1); slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if ((slots_[slot] & ~kRankMask) != tag) continue;
    const uint32_t rank = (slots_[slot] & kRankMask) - 1;
    if (bytes(rank) == wanted) return rank;
  }
  return std::nullopt;
}

size_t RankTable::memory_bytes() const {
  return sizeof(*this) + arena_.capacity() + (starts_.capacity() + slots_.capacity()) * sizeof(uint32_t);
}

}  // namespace headrace
