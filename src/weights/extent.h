#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// Budgeted memory that starts at a multiple of a block, as reads of that block want it. Move-only.
class BlockMemory {
 public:
  /// At least `bytes`; blocks of up to a page cost nothing extra.
  static Result<BlockMemory> allocate(Budget& budget, size_t bytes, size_t block_bytes, const char* purpose);

  BlockMemory() = default;
  std::span<std::byte> bytes() const { return {start_, size_bytes_}; }
  /// What `allocate` takes of the budget.
  static size_t budgeted_bytes(size_t bytes, size_t block_bytes);

 private:
  AlignedMemory memory_;
  std::byte* start_ = nullptr;
  size_t size_bytes_ = 0;
};

/// Bytes of a file that were read in whole blocks.
struct ReadExtent {
  const std::byte* data = nullptr;  ///< First byte of the range asked for, inside the memory given.
  uint64_t bytes_read = 0;          ///< From the drive, widening included.
};

/// Memory that `read_extent` needs for `range`, starting at a multiple of `block_bytes`.
size_t extent_memory_bytes(ByteRange range, size_t block_bytes);

/// Reads the blocks that `range` touches to the start of `memory`, which is aligned to the block of the file, so that
/// no byte is copied: data lands with its own offset in its block. kIo and kFormat as `read_at_least`.
Result<ReadExtent> read_extent(ReadableFile& file, ByteRange range, std::span<std::byte> memory);

}  // namespace headrace
