#include "weights/extent.h"

#include <algorithm>
#include <cstdint>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {

Result<BlockMemory> BlockMemory::allocate(Budget& budget, size_t bytes, size_t block_bytes, const char* purpose) {
  const size_t slack_bytes = std::max(block_bytes, AlignedMemory::kAlignment) - AlignedMemory::kAlignment;
  if (bytes > SIZE_MAX - slack_bytes)
    return error(Code::kBudget, "%s: %zu bytes do not fit any memory", purpose, bytes);
  BlockMemory memory;
  memory.memory_ = TRY(AlignedMemory::allocate(budget, bytes + slack_bytes, purpose));
  memory.start_ = align_address(memory.memory_.data(), block_bytes);
  memory.size_bytes_ = bytes;
  return memory;
}

size_t BlockMemory::budgeted_bytes(size_t bytes, size_t block_bytes) {
  const size_t slack_bytes = std::max(block_bytes, AlignedMemory::kAlignment) - AlignedMemory::kAlignment;
  return AlignedMemory::budgeted_bytes(bytes + slack_bytes);
}

size_t extent_memory_bytes(ByteRange range, size_t block_bytes) {
  return static_cast<size_t>(widen(range, block_bytes).size);
}

WidenedRead widened_read(ReadableFile& file, ByteRange range, std::span<std::byte> memory) {
  const ByteRange blocks = widen(range, file.block_bytes());
  const std::span<std::byte> out = memory.first(static_cast<size_t>(blocks.size));
  const size_t before = static_cast<size_t>(range.offset - blocks.offset);
  return {{&file, blocks.offset, out, before + static_cast<size_t>(range.size)}, out.data() + before};
}

}  // namespace headrace
