#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/file.h"

namespace headrace {

/// Which reads go first when the drive has room for one more.
enum class ReadPriority : uint8_t {
  kDemand,       ///< The computation waits for it, or is about to.
  kTrunk,        ///< Weights that every token needs, ahead of time.
  kSpeculative,  ///< A guess: in small pieces, one at a time, and its failure matters only when it is waited for.
};
inline constexpr size_t kReadPriorityCount = 3;

/// What a read is for; the counters are kept apart.
enum class ReadPurpose : uint8_t { kTrunk, kExperts, kHead };
inline constexpr size_t kReadPurposeCount = 3;

/// A run of whole blocks of a file, to be read to memory. Offset, length and address of `out` are multiples of
/// file->block_bytes(). `out` may reach past the end of the file, what is needed may not.
struct ReadPart {
  ReadableFile* file = nullptr;  ///< Lives until the read has ended.
  uint64_t offset = 0;
  std::span<std::byte> out;
  size_t needed_bytes = 0;  ///< Leading bytes of `out` that must arrive.
};

/// Names a read of one queue; never used twice.
enum class ReadId : uint64_t {};

/// How a read ended: what the drive delivered, whole blocks, repeated ones counted again.
struct ReadResult {
  uint64_t transferred_bytes = 0;
};

}  // namespace headrace
