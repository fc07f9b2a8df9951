#include "weights/extent.h"

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {

size_t extent_memory_bytes(ByteRange range, size_t block_bytes) {
  return static_cast<size_t>(widen(range, block_bytes).size);
}

Result<ReadExtent> read_extent(ReadableFile& file, ByteRange range, std::span<std::byte> memory) {
  const ByteRange blocks = widen(range, file.block_bytes());
  ENSURE(blocks.size <= memory.size());
  // The last block may reach past the end of the file; the range does not.
  const size_t needed_bytes = static_cast<size_t>(range.end() - blocks.offset);
  const ReadOutcome outcome =
      TRY(read_at_least(file, blocks.offset, memory.first(static_cast<size_t>(blocks.size)), needed_bytes));
  return ReadExtent{memory.data() + (range.offset - blocks.offset), outcome.transferred_bytes};
}

}  // namespace headrace
