#include "io/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "support/sanitizers.h"

#if HEADRACE_TEST_IS_SANITIZED

std::optional<size_t> headrace::test::allocation_count() {
  return std::nullopt;
}

#else

// In a file of its own: compilers that see these and a use of them warn of memory that is freed in another way.

namespace {
std::atomic<size_t> g_allocation_count{0};
}  // namespace

std::optional<size_t> headrace::test::allocation_count() {
  return g_allocation_count;
}

// The library's other forms of `new` for memory of ordinary alignment end in this one.
void* operator new(std::size_t size) {
  g_allocation_count.fetch_add(1, std::memory_order_relaxed);
  void* const data = std::malloc(size > 0 ? size : 1);
  if (!data) std::abort();
  return data;
}
void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}

#endif
