#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace {

/// Threads that this process may use at once: the affinity mask, cut by the CPU quota of its cgroup (v1 or v2, the
/// tightest of its ancestors). At least 1.
size_t usable_thread_count();

/// Most bytes this process can keep resident: physical memory, cut by the memory limits of its cgroup and ancestors.
size_t usable_memory_bytes();

/// Largest resident size of this process so far, in bytes; 0 where the system does not tell.
size_t peak_resident_bytes();

/// Parses a list of processors such as "0-3,6". kArgument with the offending part.
Result<std::vector<int>> parse_cpu_list(const std::string& text);

}  // namespace headrace
