#include "engine/snapshot_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "io/alignment.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little, "Numbers are written as they lie in memory.");

/// The header as it lies in the file.
struct StoredHeader {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint64_t model_low = 0;
  uint64_t model_high = 0;
  uint32_t numeric_mode = 0;
  uint32_t flags = 0;
  uint64_t token_count = 0;
  uint64_t position = 0;
  uint64_t vocabulary_size = 0;
  uint64_t recurrent_bytes = 0;
  uint64_t positional_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t note_bytes = 0;
  std::array<uint64_t, 3> reserved{};  // Zero.
  uint64_t hash = 0;                   // Of all before it: the lower half of XXH3-128.
};
static_assert(sizeof(StoredHeader) == SnapshotHeader::kBytes, "There is no padding.");

constexpr std::array<char, 8> kMagic = {'H', 'D', 'R', 'S', 'N', 'A', 'P', '\n'};
constexpr uint32_t kHasLogits = 1;

uint64_t hash_of(const StoredHeader& stored) {
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(&stored, 1)).first(offsetof(StoredHeader, hash)));
  return hasher.digest().low;
}

bool is_part(uint64_t bytes) {
  return bytes <= SnapshotHeader::kPartBytesMax && bytes % sizeof(float) == 0;
}

Status check_ranges(const SnapshotHeader& header) {
  const bool are_counts_fine = header.token_count <= SnapshotHeader::kTokensMax &&
                               header.position <= header.token_count && header.vocabulary_size > 0 &&
                               header.vocabulary_size <= SnapshotHeader::kVocabularyMax;
  const bool are_logits_fine = !header.has_logits || header.position > 0;
  const bool is_note_fine = header.note_bytes <= SnapshotHeader::kNoteBytesMax;
  if (are_counts_fine && are_logits_fine && is_note_fine && is_part(header.recurrent_bytes) &&
      is_part(header.positional_bytes)) {
    return {};
  }
  return error(Code::kFormat, "its header holds impossible numbers");
}

}  // namespace

uint64_t SnapshotHeader::padded_note_bytes() const {
  return align_up(note_bytes, sizeof(float));
}

uint64_t SnapshotHeader::file_bytes() const {
  const uint64_t logits_bytes = has_logits ? vocabulary_size * sizeof(float) : 0;
  return kBytes + token_count * sizeof(int32_t) + logits_bytes + recurrent_bytes + positional_bytes +
         padded_note_bytes() + kHashBytes;
}

std::array<std::byte, SnapshotHeader::kBytes> encode_snapshot_header(const SnapshotHeader& header) {
  StoredHeader stored = {.magic = kMagic,
                         .version = SnapshotHeader::kVersion,
                         .header_bytes = SnapshotHeader::kBytes,
                         .model_low = header.model.low,
                         .model_high = header.model.high,
                         .numeric_mode = static_cast<uint32_t>(header.numeric_mode),
                         .flags = header.has_logits ? kHasLogits : 0,
                         .token_count = header.token_count,
                         .position = header.position,
                         .vocabulary_size = header.vocabulary_size,
                         .recurrent_bytes = header.recurrent_bytes,
                         .positional_bytes = header.positional_bytes,
                         .file_bytes = header.file_bytes(),
                         .note_bytes = header.note_bytes};
  stored.hash = hash_of(stored);
  return std::bit_cast<std::array<std::byte, SnapshotHeader::kBytes>>(stored);
}

Result<SnapshotHeader> parse_snapshot_header(std::span<const std::byte, SnapshotHeader::kBytes> bytes,
                                             uint64_t file_bytes) {
  StoredHeader stored;
  std::memcpy(&stored, bytes.data(), sizeof stored);
  if (stored.magic != kMagic) return error(Code::kFormat, "it is no snapshot of a session");
  if (stored.version > SnapshotHeader::kVersion) {
    return error(Code::kUnsupported, "a newer version of headrace wrote it (format %u; this one reads %u)",
                 stored.version, SnapshotHeader::kVersion);
  }
  const bool is_whole = stored.version == SnapshotHeader::kVersion && stored.header_bytes == SnapshotHeader::kBytes &&
                        stored.hash == hash_of(stored);
  if (!is_whole) return error(Code::kFormat, "its header is damaged");
  const auto is_set = [](uint64_t number) { return number != 0; };
  if (stored.flags > kHasLogits || std::ranges::any_of(stored.reserved, is_set)) {
    return error(Code::kFormat, "its header holds what this version does not know");
  }
  const SnapshotHeader header = {.model = {stored.model_low, stored.model_high},
                                 .numeric_mode = static_cast<NumericMode>(stored.numeric_mode),
                                 .has_logits = stored.flags == kHasLogits,
                                 .token_count = stored.token_count,
                                 .position = stored.position,
                                 .vocabulary_size = stored.vocabulary_size,
                                 .recurrent_bytes = stored.recurrent_bytes,
                                 .positional_bytes = stored.positional_bytes,
                                 .note_bytes = stored.note_bytes};
  TRY(check_ranges(header));
  if (stored.file_bytes != header.file_bytes()) return error(Code::kFormat, "its header holds impossible numbers");
  if (stored.file_bytes == file_bytes) return header;
  return error(Code::kFormat, "it has %llu bytes, and should have %llu", static_cast<unsigned long long>(file_bytes),
               static_cast<unsigned long long>(stored.file_bytes));
}

}  // namespace headrace
