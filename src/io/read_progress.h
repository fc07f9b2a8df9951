#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "io/read_request.h"

namespace headrace {

/// One part's way to its end across short reads: what to ask for next, and whether that is all. Who asks, and when, is
/// the caller's business. One thread.
class ReadProgress {
 public:
  /// Bytes to ask the file for, once.
  struct Attempt {
    uint64_t offset = 0;
    std::span<std::byte> out;
  };

  ReadProgress() = default;
  explicit ReadProgress(const ReadPart& part);

  const ReadPart& part() const { return part_; }
  /// kFormat when the file was too short already when it was opened.
  Status check_size() const;
  bool is_complete() const { return outcome_.available_bytes >= part_.needed_bytes; }
  const ReadOutcome& outcome() const { return outcome_; }

  /// Not when complete.
  Attempt next() const;
  /// Takes what the attempt brought. kFormat at the end of the file ("file ends N bytes early"), kIo when attempts
  /// bring nothing new again and again.
  Status advance(size_t size);

 private:
  ReadPart part_;
  ReadOutcome outcome_;
  int idle_attempts_ = 0;
};

}  // namespace headrace
