#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ensure.h"
#include "io/file.h"

namespace headrace {

/// Largest block that direct reads are done in; a file that wants more is read through the page cache.
inline constexpr size_t kBlockBytesMax = 64 * 1024;

/// The greatest multiple of `block_bytes`, a power of two, that is not above `value`.
constexpr uint64_t align_down(uint64_t value, size_t block_bytes) {
  return value & ~(uint64_t{block_bytes} - 1);
}

/// The least multiple of `block_bytes`, a power of two, that is not below `value`.
constexpr uint64_t align_up(uint64_t value, size_t block_bytes) {
  return align_down(value + block_bytes - 1, block_bytes);
}

/// The whole blocks that `range` touches. It may end past the end of the file, by less than a block.
inline ByteRange widen(ByteRange range, size_t block_bytes) {
  const uint64_t begin = align_down(range.offset, block_bytes);
  return {begin, align_up(range.end(), block_bytes) - begin};
}

/// The first address not below `data` that is a multiple of `block_bytes`.
inline std::byte* align_address(std::byte* data, size_t block_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return data + (align_up(uint64_t{address}, block_bytes) - address);
}

}  // namespace headrace
