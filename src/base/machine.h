#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace {

// What this process may use of the machine. Callable from any thread; each call reads the system afresh.

/// Threads that this process may use at once: the affinity mask, cut by the CPU quota of its cgroups (v1 or v2, the
/// tightest of the visible ancestors, rounded up). At least 1.
size_t usable_thread_count();

/// Most bytes this process can keep resident: physical memory, cut by the memory limits of its cgroups and their
/// visible ancestors.
size_t usable_memory_bytes();

/// Largest resident size of this process so far, in bytes; 0 where the system does not tell.
size_t peak_resident_bytes();

/// The same out of the text of /proc/<pid>/status.
size_t parse_peak_resident_bytes(const std::string& proc_self_status);

/// Processors have numbers below this, as in the C library's cpu_set_t.
constexpr int kCpuCountMax = 1024;

/// Parses a list of processors such as "0-3,6", in the order given. kArgument with the offending part: anything but
/// numbers, ranges and single commas (no blanks), an empty list, a falling range, a processor named twice.
Result<std::vector<int>> parse_cpu_list(const std::string& text);

}  // namespace headrace
