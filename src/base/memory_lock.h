#pragma once

#include <cstddef>
#include <span>

namespace headrace {

/// Asks the system to keep `memory` (whole pages) resident; false where its limits forbid that. Freeing the memory ends
/// it.
bool lock_in_memory(std::span<std::byte> memory);

}  // namespace headrace
