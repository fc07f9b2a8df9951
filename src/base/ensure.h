#pragma once

namespace headrace {

/// Prints the broken condition to stderr and ends the process with status 70: a bug of ours, never bad input.
[[noreturn]] void ensure_failed(const char* condition, const char* file, int line);

}  // namespace headrace

/// Stops the process when `condition` is false. For our own bugs, always on. Input gets an Error instead.
#define ENSURE(condition)                                        \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::headrace::ensure_failed(#condition, __FILE__, __LINE__); \
  } while (false)

/// ENSURE for hot loops: checked in debug and sanitizer builds only, compiled everywhere.
#ifdef NDEBUG
#define DEBUG_ENSURE(condition) static_cast<void>(sizeof(!(condition)))
#else
#define DEBUG_ENSURE(condition) ENSURE(condition)
#endif
