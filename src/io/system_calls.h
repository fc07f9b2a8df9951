#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

namespace headrace {

/// Blocks that the kernel names for direct reads of an open file; 0 where it says that there are none.
using DirectBlockBytes = std::optional<size_t>;

/// The calls of the kernel that reading needs, so that tests can put refusals and interruptions in their place. All
/// but `direct_block_bytes` return what the call of the same name does, with the reason in errno.
struct SystemCalls {
  int (*open)(const char* path, int flags);
  ssize_t (*pread)(int fd, void* out, size_t size, off_t offset);
  /// Turns reading past the page cache on or off.
  int (*set_direct)(int fd, bool direct);
  /// Nothing where the kernel or the file system does not tell.
  DirectBlockBytes (*direct_block_bytes)(int fd);
  int (*drop_pages)(int fd, off_t offset, off_t size);
};

/// The real ones.
extern const SystemCalls kSystemCalls;

}  // namespace headrace
