#include "io/file.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"
#include "io/disk_file.h"

namespace headrace {
namespace {

/// Reads in a row that may bring nothing new (a short read inside a block) before the drive counts as broken.
constexpr int kIdleReadsMax = 16;

/// Bytes that `read_text_file` reads at once.
constexpr size_t kTextChunkBytes = 64 * 1024;

Error ends_early(const ReadableFile& file, ByteRange wanted, uint64_t end) {
  return error(Code::kFormat, "read %s @%llu, %llu bytes: file ends %llu bytes early", file.path().c_str(),
               static_cast<unsigned long long>(wanted.offset), static_cast<unsigned long long>(wanted.size),
               static_cast<unsigned long long>(wanted.size - (end - std::min(end, wanted.offset))));
}

struct FreeMemory {
  void operator()(std::byte* data) const { std::free(data); }
};

}  // namespace

Result<std::unique_ptr<ReadableFile>> open_file(const std::string& path, ReadMode mode) {
  return DiskFile::open(path, mode);
}

Result<ReadOutcome> read_at_least(ReadableFile& file, uint64_t offset, std::span<std::byte> out, size_t needed_bytes) {
  ENSURE(needed_bytes <= out.size());
  const ByteRange needed{offset, needed_bytes};
  if (offset > file.size_bytes() || needed_bytes > file.size_bytes() - offset) {
    return ends_early(file, needed, file.size_bytes());
  }
  const size_t block_bytes = file.block_bytes();
  ReadOutcome outcome;
  for (int idle_reads = 0; outcome.available_bytes < needed_bytes;) {
    // A short read may stop inside a block: go on from the start of that block.
    const size_t begin = static_cast<size_t>(align_down(outcome.available_bytes, block_bytes));
    const size_t size = TRY(file.read_some(offset + begin, out.subspan(begin)));
    outcome.transferred_bytes += align_up(size, block_bytes);
    if (begin + size > outcome.available_bytes) {
      outcome.available_bytes = begin + size;
      idle_reads = 0;
    } else if (size == 0) {
      return ends_early(file, needed, offset + outcome.available_bytes);
    } else if (++idle_reads == kIdleReadsMax) {
      return error(Code::kIo, "read %s @%llu: %d reads in a row brought nothing new", file.path().c_str(),
                   static_cast<unsigned long long>(offset), kIdleReadsMax);
    }
  }
  return outcome;
}

Status read_exactly(ReadableFile& file, uint64_t offset, std::span<std::byte> out) {
  TRY(read_at_least(file, offset, out, out.size()));
  return {};
}

Result<std::string> read_text_file(const FileOpener& opener, const std::string& path, size_t size_bytes_max) {
  // Past the page cache like everything else, so that no page of it counts against the budget.
  const std::unique_ptr<ReadableFile> file = TRY(opener(path, ReadMode::kDirect));
  if (file->size_bytes() > size_bytes_max) {
    return error(Code::kFormat, "%s: %llu bytes are more than the %zu that such a file may have", path.c_str(),
                 static_cast<unsigned long long>(file->size_bytes()), size_bytes_max);
  }
  const size_t size_bytes = static_cast<size_t>(file->size_bytes());
  const size_t chunk_bytes = std::max(kTextChunkBytes, file->block_bytes());
  const std::unique_ptr<std::byte, FreeMemory> chunk(
      static_cast<std::byte*>(std::aligned_alloc(std::max<size_t>(file->block_bytes(), 64), chunk_bytes)));
  if (!chunk) return error(Code::kBudget, "read %s: the system refused %zu bytes of memory", path.c_str(), chunk_bytes);
  std::string text;
  text.reserve(size_bytes);
  while (text.size() < size_bytes) {
    const size_t wanted = std::min(size_bytes - text.size(), chunk_bytes);
    const std::span<std::byte> out(chunk.get(), static_cast<size_t>(align_up(wanted, file->block_bytes())));
    TRY(read_at_least(*file, text.size(), out, wanted));
    text.append(reinterpret_cast<const char*>(chunk.get()), wanted);
  }
  return text;
}

}  // namespace headrace
