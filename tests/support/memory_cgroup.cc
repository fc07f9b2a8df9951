#include "support/memory_cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace headrace::test {
namespace {

constexpr const char* kFolderV1 = "/sys/fs/cgroup/memory";
constexpr const char* kFolderV2 = "/sys/fs/cgroup";
/// A group whose last process has just ended may be busy for a moment.
constexpr int kRemoveAttemptsMax = 100000;

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write_to(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

std::optional<MemoryCgroup> MemoryCgroup::create(std::string& reason) {
  const bool is_v1 = exists(std::string(kFolderV1) + "/memory.limit_in_bytes");
  const std::string controllers = contents(std::string(kFolderV2) + "/cgroup.subtree_control");
  if (!is_v1 && controllers.find("memory") == std::string::npos) {
    reason = "no hierarchy of control groups has the memory controller";
    return std::nullopt;
  }
  const std::string path = std::string(is_v1 ? kFolderV1 : kFolderV2) + "/headrace-test-" + std::to_string(getpid());
  if (mkdir(path.c_str(), 0755) != 0) {
    reason = "a control group cannot be made: " + path + ": " + std::strerror(errno);
    return std::nullopt;
  }
  MemoryCgroup group(path, !is_v1);
  if (exists(path + (is_v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"))) return group;
  reason = "this kernel does not tell the peak of a control group";
  return std::nullopt;
}

MemoryCgroup::MemoryCgroup(MemoryCgroup&& other) noexcept
    : path_(std::exchange(other.path_, {})), is_v2_(other.is_v2_) {}

MemoryCgroup::~MemoryCgroup() {
  if (path_.empty()) return;
  for (int i = 0; i < kRemoveAttemptsMax; ++i) {
    if (rmdir(path_.c_str()) == 0 || errno != EBUSY) return;
  }
}

bool MemoryCgroup::set_limit(uint64_t bytes) const {
  const std::string limit = std::to_string(bytes);
  if (!is_v2_) return write_to(path_ + "/memory.limit_in_bytes", limit);
  return write_to(path_ + "/memory.max", limit) && write_to(path_ + "/memory.swap.max", "0");
}

bool MemoryCgroup::enter() const {
  return write_to(path_ + "/cgroup.procs", std::to_string(getpid()));
}

uint64_t MemoryCgroup::peak_bytes() const {
  return std::stoull(contents(path_ + (is_v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes")));
}

uint64_t MemoryCgroup::usage_bytes() const {
  return std::stoull(contents(path_ + (is_v2_ ? "/memory.current" : "/memory.usage_in_bytes")));
}

std::string MemoryCgroup::statistics() const {
  return contents(path_ + "/memory.stat");
}

}  // namespace headrace::test
