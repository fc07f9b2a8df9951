#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "io/file.h"

namespace headrace {

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
