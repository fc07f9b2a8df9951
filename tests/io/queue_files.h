#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "io/alignment.h"
#include "io/read_queue.h"
#include "support/test_files.h"

namespace headrace::test {

/// Bytes in which no two blocks are alike.
inline std::string numbered_bytes(size_t size, unsigned seed = 0) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + (i >> 8) * 7 + (i >> 16) * 3 + seed);
  return bytes;
}

/// A part that reads bytes [offset, offset + size) of a file, widened to its blocks, to the start of `memory`.
inline ReadPart part_of(ReadableFile& file, ByteRange range, std::span<std::byte> memory) {
  const ByteRange blocks = widen(range, file.block_bytes());
  return {&file, blocks.offset, memory.first(static_cast<size_t>(blocks.size)),
          static_cast<size_t>(range.end() - blocks.offset)};
}

/// Whether a part holds what the file has there.
inline bool holds(const ReadPart& part, const std::string& contents) {
  return part.offset + part.needed_bytes <= contents.size() &&
         std::memcmp(part.out.data(), contents.data() + part.offset, part.needed_bytes) == 0;
}

/// Memory to read to, of which the n-th megabyte is easily named.
class TestMemory {
 public:
  explicit TestMemory(size_t megabytes)
      : budget_(megabytes << 20), memory_(AlignedMemory::allocate(budget_, megabytes << 20, "test").take_value()) {}

  std::span<std::byte> all() const { return memory_.bytes(); }
  std::span<std::byte> from(size_t megabyte) const { return memory_.bytes().subspan(megabyte << 20); }
  void fill(std::byte value) const { std::memset(memory_.data(), std::to_integer<int>(value), memory_.size_bytes()); }

 private:
  Budget budget_;
  AlignedMemory memory_;
};

inline std::string name_of(ReadBackendKind kind) {
  return kind == ReadBackendKind::kUring ? "io_uring" : "threads";
}

inline uint64_t total_bytes(const ReadQueueCounters& counters) {
  uint64_t total = 0;
  for (const uint64_t bytes : counters.bytes_read) total += bytes;
  return total;
}

}  // namespace headrace::test
