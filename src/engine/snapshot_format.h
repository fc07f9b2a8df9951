#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "models/fingerprint.h"

namespace headrace {

/// Arithmetic of the states in a snapshot: `fast` ones do not go on with the same bits.
enum class NumericMode : uint32_t { kExact = 0 };

/// What stands at the beginning of a snapshot file. All numbers are little-endian; every section is a multiple of four
/// bytes:
///
///     header      128 bytes, see snapshot_format.cc
///     ids         4 bytes each, the whole sequence
///     logits      4 bytes for each entry of the vocabulary, if there are any
///     recurrent   SequenceState's parts, as it hands them out
///     positional
///     note        of the caller, with zeros up to a multiple of four bytes
///     hash        16 bytes: XXH3-128 of everything before
struct SnapshotHeader {
  static constexpr size_t kBytes = 128;
  static constexpr size_t kHashBytes = 16;
  static constexpr uint32_t kVersion = 1;
  /// Bounds of what a file may claim, far above any model: sums of its sizes stay far below 64 bits.
  static constexpr uint64_t kTokensMax = uint64_t{1} << 31;
  static constexpr uint64_t kVocabularyMax = uint64_t{1} << 31;
  static constexpr uint64_t kNoteBytesMax = uint64_t{16} << 20;
  static constexpr uint64_t kPartBytesMax = uint64_t{1} << 50;

  Hash128 model;  ///< Model::fingerprint, which says what it covers.
  NumericMode numeric_mode = NumericMode::kExact;
  bool has_logits = false;   ///< Those that follow `position` tokens.
  uint64_t token_count = 0;  ///< Of the sequence.
  uint64_t position = 0;     ///< Of them, those that the state has taken in.
  uint64_t vocabulary_size = 0;
  uint64_t recurrent_bytes = 0;
  uint64_t positional_bytes = 0;
  uint64_t note_bytes = 0;  ///< Without the zeros.

  /// Of the section of the note.
  uint64_t padded_note_bytes() const;
  /// Of the whole file.
  uint64_t file_bytes() const;
  bool operator==(const SnapshotHeader&) const = default;
};

/// The header as it is written.
std::array<std::byte, SnapshotHeader::kBytes> encode_snapshot_header(const SnapshotHeader& header);

/// Pure. A header in range, that fits itself and a file of `file_bytes` bytes; or kFormat, and kUnsupported for one of
/// a newer version.
Result<SnapshotHeader> parse_snapshot_header(std::span<const std::byte, SnapshotHeader::kBytes> bytes,
                                             uint64_t file_bytes);

}  // namespace headrace
