#include "io/read_backend.h"

#include <utility>

#include "io/thread_backend.h"
#include "io/uring_backend.h"

namespace headrace {

Result<std::unique_ptr<ReadBackend>> make_read_backend(ReadBackendKind kind, size_t depth, const Log& log,
                                                       const UringCalls& calls) {
  if (kind == ReadBackendKind::kThreads) return ThreadBackend::create(depth);
  Result<std::unique_ptr<ReadBackend>> uring = UringBackend::create(depth, log, calls);
  if (uring || kind == ReadBackendKind::kUring) return uring;
  log.line(LogLevel::kInfo, "reading by threads, for there is no %s", uring.error().message.c_str());
  return ThreadBackend::create(depth);
}

}  // namespace headrace
