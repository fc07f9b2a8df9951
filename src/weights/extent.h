#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "io/file.h"
#include "io/read_request.h"

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

/// Bytes of the blocks that `range` touches.
size_t extent_memory_bytes(ByteRange range, size_t block_bytes);

/// A range of a file as the queue reads it: in whole blocks, to the start of memory that is aligned to them.
struct WidenedRead {
  ReadPart part;
  const std::byte* data = nullptr;  ///< Where the range itself begins, once it is read.
};

/// `memory` holds extent_memory_bytes() at least. The last block may reach past the end of the file; the range does
/// not.
WidenedRead widened_read(ReadableFile& file, ByteRange range, std::span<std::byte> memory);

}  // namespace headrace
