#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

namespace headrace {
namespace {

constexpr size_t kSystemFileBytesMax = size_t{16} << 20;

/// Takes the text up to `separator` (all of it when there is none) off the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

/// Whether the comma-separated `list` holds `name`.
bool list_holds(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    if (take_until(list, ',') == name) return true;
  }
  return false;
}

/// The kernel writes blanks, tabs, newlines and backslashes of a mount path as \ooo.
std::string decode_mount_path(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() &&
                           std::from_chars(&text[i + 1], &text[i + 1] + 3, value, 8).ptr == &text[i + 1] + 3;
    path += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 3;
  }
  return path;
}

std::optional<CgroupMount> parse_mount(std::string_view line) {
  // "36 35 98:0 /root /mount/point options optional... - type source super-options"
  for (int skipped = 0; skipped < 3; ++skipped) take_until(line, ' ');
  CgroupMount mount;
  mount.root = decode_mount_path(take_until(line, ' '));
  mount.mount_point = decode_mount_path(take_until(line, ' '));
  const size_t separator = line.find(" - ");
  if (separator == std::string_view::npos || mount.root.empty() || mount.mount_point.empty()) return std::nullopt;
  line.remove_prefix(separator + 3);
  const std::string_view type = take_until(line, ' ');
  take_until(line, ' ');
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  mount.is_unified = type == "cgroup2";
  mount.controllers = line;
  return mount;
}

bool mount_shows(const CgroupMount& mount, const CgroupMembership& membership) {
  if (membership.controllers.empty()) return mount.is_unified;
  if (mount.is_unified) return false;
  std::string_view names = membership.controllers;
  while (!names.empty()) {
    if (list_holds(mount.controllers, take_until(names, ','))) return true;
  }
  return false;
}

/// The group's path below the mount's root ("" for the root itself); nullopt when it lies elsewhere.
std::optional<std::string> path_below(const std::string& root, const std::string& path) {
  const std::string_view prefix = root == "/" ? std::string_view() : std::string_view(root);
  if (!path.starts_with(prefix)) return std::nullopt;
  std::string below = path.substr(prefix.size());
  if (below == "/") below.clear();
  const bool is_inside = below.empty() || (below.front() == '/' && (below + "/").find("/../") == std::string::npos);
  return is_inside ? std::optional(std::move(below)) : std::nullopt;
}

/// First whole number in `text`; nullopt for "max", negative numbers and anything else.
std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || (end != text.data() + text.size() && *end != '\n')) return std::nullopt;
  return value;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_system_file(path);
  return text ? parse_number(*text) : std::nullopt;
}

void lower_memory(CgroupLimits& limits, std::optional<uint64_t> bytes) {
  if (bytes) limits.memory_bytes = std::min<size_t>(limits.memory_bytes, *bytes);
}

void lower_cpus(CgroupLimits& limits, std::optional<uint64_t> quota_us, std::optional<uint64_t> period_us) {
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) return;
  limits.cpu_count = std::min(limits.cpu_count, static_cast<double>(*quota_us) / static_cast<double>(*period_us));
}

/// A folder holds the files of one version only, so both are asked.
void lower_by_folder(CgroupLimits& limits, const std::string& folder) {
  lower_memory(limits, read_number(folder + "/memory.max"));
  // Above `memory.high` the kernel reclaims and stalls: as good as a limit for memory that is meant to stay resident.
  lower_memory(limits, read_number(folder + "/memory.high"));
  lower_memory(limits, read_number(folder + "/memory.limit_in_bytes"));
  lower_cpus(limits, read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"));
  if (const std::optional<std::string> text = read_system_file(folder + "/cpu.max")) {
    std::string_view rest = *text;
    const std::string_view quota_us = take_until(rest, ' ');
    lower_cpus(limits, parse_number(quota_us), parse_number(rest));
  }
}

}  // namespace

std::vector<CgroupMembership> parse_cgroup_memberships(std::string_view proc_self_cgroup) {
  std::vector<CgroupMembership> memberships;
  while (!proc_self_cgroup.empty()) {
    // "4:memory:/path"; the path may hold colons.
    std::string_view path = take_until(proc_self_cgroup, '\n');
    take_until(path, ':');
    const std::string_view controllers = take_until(path, ':');
    if (path.starts_with('/')) memberships.push_back({std::string(controllers), std::string(path)});
  }
  return memberships;
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view proc_self_mountinfo) {
  std::vector<CgroupMount> mounts;
  while (!proc_self_mountinfo.empty()) {
    std::optional<CgroupMount> mount = parse_mount(take_until(proc_self_mountinfo, '\n'));
    if (mount) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

std::vector<std::string> cgroup_folders(const CgroupMembership& membership, const std::vector<CgroupMount>& mounts) {
  const CgroupMount* chosen = nullptr;
  std::string below;
  for (const CgroupMount& mount : mounts) {
    if (!mount_shows(mount, membership)) continue;
    std::optional<std::string> inside = path_below(mount.root, membership.path);
    if (!chosen || inside) chosen = &mount;
    if (!inside) continue;
    below = std::move(*inside);
    break;
  }
  std::vector<std::string> folders;
  if (!chosen) return folders;
  for (; !below.empty(); below.resize(below.rfind('/'))) folders.push_back(chosen->mount_point + below);
  folders.push_back(chosen->mount_point);
  return folders;
}

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::optional<std::string> memberships = read_system_file(root + "/proc/self/cgroup");
  const std::optional<std::string> mounts = read_system_file(root + "/proc/self/mountinfo");
  if (!memberships || !mounts) return limits;
  const std::vector<CgroupMount> cgroup_mounts = parse_cgroup_mounts(*mounts);
  for (const CgroupMembership& membership : parse_cgroup_memberships(*memberships)) {
    for (const std::string& folder : cgroup_folders(membership, cgroup_mounts)) lower_by_folder(limits, root + folder);
  }
  return limits;
}

std::optional<std::string> read_system_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  char part[4096];
  while (const size_t read_bytes = std::fread(part, 1, sizeof part, file.get())) {
    if (text.size() + read_bytes > kSystemFileBytesMax) return std::nullopt;
    text.append(part, read_bytes);
  }
  if (std::ferror(file.get())) return std::nullopt;
  return text;
}

}  // namespace headrace
