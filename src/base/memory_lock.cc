#include "base/memory_lock.h"

#include <sys/mman.h>

namespace headrace {

bool lock_in_memory(std::span<std::byte> memory) {
  return memory.empty() || mlock(memory.data(), memory.size()) == 0;
}

}  // namespace headrace
