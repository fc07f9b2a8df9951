#include "base/buffer.h"

#include <sys/mman.h>

#include <utility>

namespace headrace {

Result<AlignedMemory> AlignedMemory::allocate(Budget& budget, size_t bytes, const char* purpose) {
  AlignedMemory memory;
  if (bytes == 0) return memory;
  const size_t size_bytes = budgeted_bytes(bytes);
  if (size_bytes < bytes) return error(Code::kBudget, "%s: %zu bytes do not fit any memory", purpose, bytes);
  memory.reservation_ = TRY(budget.reserve(size_bytes, purpose));
  // Private mappings instead of the heap: the kernel takes the pages back at once when they are freed.
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return error(Code::kBudget, "%s: the system refused %zu bytes of memory", purpose, size_bytes);
  }
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_bytes_ = size_bytes;
  return memory;
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept
    : reservation_(std::move(other.reservation_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  if (this == &other) return *this;
  if (data_) munmap(data_, size_bytes_);
  reservation_ = std::move(other.reservation_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

AlignedMemory::~AlignedMemory() {
  if (data_) munmap(data_, size_bytes_);
}

}  // namespace headrace
