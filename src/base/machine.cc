#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/cgroup.h"

namespace headrace {
namespace {

/// Processors in the affinity mask; 1 when the kernel does not tell.
size_t affinity_cpu_count() {
  // One cpu_set_t holds 1024; the kernel refuses masks that are smaller than its own, and allows 8192.
  std::array<cpu_set_t, 8> mask{};
  if (sched_getaffinity(0, sizeof mask, mask.data()) != 0) return 1;
  return static_cast<size_t>(std::max(CPU_COUNT_S(sizeof mask, mask.data()), 1));
}

/// Reads a number below kCpuCountMax off the front of `rest`; false when there is none.
bool take_cpu(std::string_view& rest, int& cpu) {
  // from_chars would take a minus sign.
  if (rest.empty() || rest.front() == '-') return false;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), cpu);
  if (failure != std::errc() || cpu >= kCpuCountMax) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

/// "3" or "0-3" as its two ends; false when `part` is anything else.
bool parse_cpu_range(std::string_view part, int& first, int& last) {
  if (!take_cpu(part, first)) return false;
  last = first;
  if (part.starts_with('-')) {
    part.remove_prefix(1);
    if (!take_cpu(part, last)) return false;
  }
  return part.empty() && first <= last;
}

}  // namespace

size_t usable_thread_count() {
  const size_t cpu_count = affinity_cpu_count();
  const double quota = read_cgroup_limits("").cpu_count;
  // Rounded up: with one and a half processors, two threads that are paused now and then beat one.
  if (quota < static_cast<double>(cpu_count)) return std::max<size_t>(static_cast<size_t>(std::ceil(quota)), 1);
  return cpu_count;
}

size_t usable_memory_bytes() {
  const size_t physical_bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min(physical_bytes, read_cgroup_limits("").memory_bytes);
}

size_t peak_resident_bytes() {
  // Not getrusage: its maximum survives exec, so a small program started by a large one inherits the large one's.
  const std::optional<std::string> status = read_system_file("/proc/self/status");
  return status ? parse_peak_resident_bytes(*status) : 0;
}

size_t parse_peak_resident_bytes(const std::string& proc_self_status) {
  // The newline keeps a process that calls itself "VmHWM:" out: its name stands in the first line.
  constexpr std::string_view kName = "\nVmHWM:";
  const size_t found = proc_self_status.find(kName);
  if (found == std::string::npos) return 0;
  std::string_view rest = std::string_view(proc_self_status).substr(found + kName.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  size_t kibibytes = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kibibytes);
  return kibibytes * 1024;
}

Result<std::vector<int>> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::bitset<kCpuCountMax> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    int first = 0;
    int last = 0;
    if (!parse_cpu_range(part, first, last)) {
      return error(Code::kArgument, "processor list '%s': '%s' is not a number or range below %d, such as 3 or 0-3",
                   text.c_str(), part.c_str(), kCpuCountMax);
    }
    for (int cpu = first; cpu <= last; ++cpu) {
      if (seen[static_cast<size_t>(cpu)]) {
        return error(Code::kArgument, "processor list '%s': '%s' names processor %d again", text.c_str(), part.c_str(),
                     cpu);
      }
      seen.set(static_cast<size_t>(cpu));
      cpus.push_back(cpu);
    }
    begin = end + 1;
  }
  return cpus;
}

}  // namespace headrace
