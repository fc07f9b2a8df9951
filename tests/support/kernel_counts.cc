#include "support/kernel_counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/ensure.h"

namespace headrace::test {
namespace {
constexpr size_t kPageBytes = 4096;
}

uint64_t kernel_read_bytes() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

size_t cached_pages(const std::string& path) {
  const size_t size_bytes = std::filesystem::file_size(path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ENSURE(fd >= 0);
  void* const map = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  ENSURE(map != MAP_FAILED);
  std::vector<unsigned char> resident((size_bytes + kPageBytes - 1) / kPageBytes);
  ENSURE(mincore(map, size_bytes, resident.data()) == 0);
  munmap(map, size_bytes);
  return static_cast<size_t>(std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) != 0; }));
}

void evict(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ENSURE(fd >= 0);
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace headrace::test
