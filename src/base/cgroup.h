#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// What the control groups of a process allow it. Unlimited where no group says anything.
struct CgroupLimits {
  /// Processor time per wall time; 1.5 means one and a half processors.
  double cpu_count = std::numeric_limits<double>::infinity();
  /// Bytes that may stay resident.
  size_t memory_bytes = std::numeric_limits<size_t>::max();
};

/// One line of /proc/self/cgroup: the group of this process in one hierarchy.
struct CgroupMembership {
  std::string controllers;  ///< Comma-separated; empty for the unified (v2) hierarchy.
  std::string path;         ///< As seen from the process's cgroup namespace; may begin with "/..".
};

/// One cgroup mount of /proc/self/mountinfo.
struct CgroupMount {
  bool is_unified = false;  ///< v2 when true.
  std::string controllers;  ///< v1: the super options, in which the controllers' names stand.
  std::string root;         ///< The group that the mount point shows.
  std::string mount_point;
};

/// Malformed lines are passed over: a limit that cannot be read is no limit.
std::vector<CgroupMembership> parse_cgroup_memberships(std::string_view proc_self_cgroup);
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view proc_self_mountinfo);

/// Folders that hold the limits of the group and of its visible ancestors, innermost first; empty when no mount shows
/// the hierarchy. A group that lies outside the mount (another namespace's view) gives the mount point alone.
std::vector<std::string> cgroup_folders(const CgroupMembership& membership, const std::vector<CgroupMount>& mounts);

/// Limits of this process: the smallest over all its groups (v1, v2, or both) and their visible ancestors. `root` is
/// the folder that stands for "/" (tests), empty for the real one.
CgroupLimits read_cgroup_limits(const std::string& root);

/// Whole content of a small text file of the kernel; nullopt when it is missing, unreadable or larger than 16 MiB.
std::optional<std::string> read_system_file(const std::string& path);

}  // namespace headrace
