#pragma once

#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "io/atomic_file.h"

namespace headrace::test {

// Calls of an AtomicFile of which one fails. Plain functions, so what they count is global: one test at a time.

inline int g_calls = 0;       // So far,
inline int g_fail_at = 0;     // the one that fails,
inline int g_error = ENOSPC;  // and how.

inline bool fails() {
  errno = g_error;
  return g_calls++ == g_fail_at;
}

inline constexpr WriteCalls kFailingCalls = {
    .create = [](char* path) { return fails() ? -1 : kWriteCalls.create(path); },
    .write = [](int fd, const void* bytes, size_t size) -> ssize_t { return fails() ? -1 : ::write(fd, bytes, size); },
    .sync = [](int fd) { return fails() ? -1 : ::fsync(fd); },
    .rename = [](const char* from, const char* to) { return fails() ? -1 : ::rename(from, to); },
};

}  // namespace headrace::test
