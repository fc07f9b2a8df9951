#include "io/system_calls.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace headrace {
namespace {

int set_direct(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return flags;
  return fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

DirectBlockBytes direct_block_bytes(int fd) {
  struct statx status = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return std::nullopt;
  if ((status.stx_mask & STATX_DIOALIGN) == 0) return std::nullopt;
  if (status.stx_dio_offset_align == 0) return 0;
  return std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
}

}  // namespace

const SystemCalls kSystemCalls = {
    .open = [](const char* path, int flags) { return ::open(path, flags); },
    .pread = ::pread,
    .set_direct = set_direct,
    .direct_block_bytes = direct_block_bytes,
    .drop_pages = [](int fd, off_t offset, off_t size) { return posix_fadvise(fd, offset, size, POSIX_FADV_DONTNEED); },
};

}  // namespace headrace
