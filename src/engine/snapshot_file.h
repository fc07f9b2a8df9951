#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/snapshot_format.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "models/model.h"

namespace headrace {

/// What a snapshot holds, or is read into; somebody else owns it.
struct SnapshotContents {
  SequenceState& state;
  std::span<int32_t> ids;   ///< When reading: room for all that the sequence may have.
  std::span<float> logits;  ///< [vocabulary]
  std::string note;         ///< Of the caller.
};

/// What a snapshot has to fit.
struct SnapshotTarget {
  Hash128 model;
  NumericMode numeric_mode = NumericMode::kExact;
  size_t vocabulary_size = 0;
  size_t capacity_tokens = 0;
  const SequenceState& state;
  bool (*all_finite)(std::span<const float> numbers);
};

/// Appends a snapshot to `file`, which the caller commits. `buffer` is where small pieces are collected, of any size.
Status write_snapshot(AtomicFile& file, const SnapshotHeader& header, const SnapshotContents& contents,
                      std::span<std::byte> buffer);

/// A snapshot file, read from its first byte to its last through a buffer of the caller: page-aligned, whole pages.
class SnapshotReader {
 public:
  /// kFormat when it is too short to be one. Errors name the path.
  static Result<SnapshotReader> open(const std::string& path, const FileOpener& opener, std::span<std::byte> buffer);

  /// Reads everything, and looks at it: header, its hash, whether it fits `target`, every id, every number, and the
  /// hash of the whole. kFormat: damaged; kArgument: a sound one, but not for this session; kUnsupported: of a newer
  /// version.
  Result<SnapshotHeader> check(const SnapshotTarget& target);
  /// Reads everything again, into `contents`, whose state is then that of the file. `header` is what `check` gave.
  /// After an error `contents` are neither what they were nor what the file holds: kFormat when the file has changed
  /// since.
  Status read(const SnapshotHeader& header, SnapshotContents& contents);

 private:
  SnapshotReader(std::unique_ptr<ReadableFile> file, std::span<std::byte> buffer)
      : file_(std::move(file)), buffer_(buffer) {}

  void rewind();
  Status fill();
  Result<std::span<const std::byte>> next(uint64_t bytes_max);
  Status copy_next(std::span<std::byte> out);
  Result<SnapshotHeader> read_header();
  Status check_ids(const SnapshotHeader& header);
  Status check_numbers(uint64_t bytes, const SnapshotTarget& target);
  Status copy_sections(const SnapshotHeader& header, SnapshotContents& contents);
  Status skip(uint64_t bytes);
  Result<Hash128> check_hash();
  template <class Body>
  auto with_path(Body&& body);

  std::unique_ptr<ReadableFile> file_;
  std::span<std::byte> buffer_;
  uint64_t offset_ = 0;                // Of what comes after `left_`.
  std::span<const std::byte> left_{};  // In the buffer, not yet handed out.
  Hasher hasher_;                      // Of what was handed out.
  Hash128 checked_hash_;               // Of the file that `check` found sound.
};

}  // namespace headrace
