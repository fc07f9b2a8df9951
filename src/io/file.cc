#include "io/file.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "io/alignment.h"
#include "io/disk_file.h"
#include "io/read_progress.h"

namespace headrace {
namespace {

/// Bytes that `read_text_file` reads at once.
constexpr size_t kTextChunkBytes = 64 * 1024;

struct FreeMemory {
  void operator()(std::byte* data) const { std::free(data); }
};

}  // namespace

Result<size_t> ReadableFile::finish_read(uint64_t offset, std::span<std::byte> out, int64_t) {
  return read_some(offset, out);
}

Result<std::unique_ptr<ReadableFile>> open_file(const std::string& path, ReadMode mode) {
  return DiskFile::open(path, mode);
}

Result<ReadOutcome> read_at_least(ReadableFile& file, uint64_t offset, std::span<std::byte> out, size_t needed_bytes) {
  ReadProgress progress(ReadPart{&file, offset, out, needed_bytes});
  TRY(progress.check_size());
  while (!progress.is_complete()) {
    const ReadProgress::Attempt attempt = progress.next();
    const size_t size = TRY(file.read_some(attempt.offset, attempt.out));
    TRY(progress.advance(size));
  }
  return progress.outcome();
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
