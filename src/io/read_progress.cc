#include "io/read_progress.h"

#include <algorithm>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {
namespace {

/// Attempts in a row that may bring nothing new (a short read inside a block) before the drive counts as broken.
constexpr int kIdleAttemptsMax = 16;

Error ends_early(const ReadPart& part, uint64_t end) {
  const uint64_t available = end - std::min(end, part.offset);
  return error(Code::kFormat, "read %s @%llu, %zu bytes: file ends %llu bytes early", part.file->path().c_str(),
               static_cast<unsigned long long>(part.offset), part.needed_bytes,
               static_cast<unsigned long long>(part.needed_bytes - available));
}

}  // namespace

ReadProgress::ReadProgress(const ReadPart& part) : part_(part) {
  ENSURE(part.file && part.needed_bytes <= part.out.size());
}

Status ReadProgress::check_size() const {
  const uint64_t size_bytes = part_.file->size_bytes();
  if (part_.offset > size_bytes || part_.needed_bytes > size_bytes - part_.offset) return ends_early(part_, size_bytes);
  return {};
}

ReadProgress::Attempt ReadProgress::next() const {
  // A short read may stop inside a block: go on from the start of that block.
  const auto begin = static_cast<size_t>(align_down(outcome_.available_bytes, part_.file->block_bytes()));
  return {part_.offset + begin, part_.out.subspan(begin)};
}

Status ReadProgress::advance(size_t size) {
  const size_t block_bytes = part_.file->block_bytes();
  const size_t end = static_cast<size_t>(align_down(outcome_.available_bytes, block_bytes)) + size;
  outcome_.transferred_bytes += align_up(size, block_bytes);
  if (end > outcome_.available_bytes) {
    outcome_.available_bytes = end;
    idle_attempts_ = 0;
    return {};
  }
  if (size == 0) return ends_early(part_, part_.offset + outcome_.available_bytes);
  if (++idle_attempts_ < kIdleAttemptsMax) return {};
  return error(Code::kIo, "read %s @%llu: %d reads in a row brought nothing new", part_.file->path().c_str(),
               static_cast<unsigned long long>(part_.offset), kIdleAttemptsMax);
}

}  // namespace headrace
