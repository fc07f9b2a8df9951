#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/read_backend.h"

namespace headrace::test {

/// What a scripted back end does, and what it saw. Numbers count transfers as they were issued, from 0.
struct BackendScript {
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr size_t kAll = SIZE_MAX;

  /// A transfer that was issued.
  struct Issued {
    uint64_t offset = 0;
    size_t size = 0;
  };

  size_t arrivals_allowed = kAll;  ///< Transfers that `collect` may hand over; `wait` hands over at least one.
  bool last_first = false;         ///< The last issued arrives first.
  uint64_t fail_at = kNever;       ///< This transfer fails with kIo.
  uint64_t fail_every = kNever;    ///< So does every n-th.
  uint64_t short_every = kNever;   ///< Every n-th stops inside a block, before its end.

  std::vector<Issued> issued;
  size_t in_flight = 0;
  size_t in_flight_peak = 0;
  size_t destroyed_with = kNever;  ///< Transfers in flight when the back end was destroyed.
};

/// Does transfers as `script` says, all by the owner's own thread: bytes are written when a transfer arrives, not
/// before. `script` outlives it.
std::unique_ptr<ReadBackend> make_scripted_backend(BackendScript& script, size_t depth);

}  // namespace headrace::test
