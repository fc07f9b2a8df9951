#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/thread_annotations.h"
#include "io/place_line.h"
#include "io/read_backend.h"

namespace headrace {

/// Transfers by threads that block in `read_some`, one for each transfer in flight. Works everywhere.
class ThreadBackend final : public ReadBackend {
 public:
  /// kUnsupported when the system refuses a thread.
  static Result<std::unique_ptr<ReadBackend>> create(size_t depth);
  ~ThreadBackend() override;
  ThreadBackend(const ThreadBackend&) = delete;
  ThreadBackend& operator=(const ThreadBackend&) = delete;

  const char* name() const override { return "threads"; }
  void issue(size_t place, const Transfer& transfer) override;
  void collect(Sink sink) override;
  void wait(Sink sink) override;

 private:
  struct Slot {
    Transfer transfer;
    Result<size_t> outcome = size_t{0};
  };

  explicit ThreadBackend(size_t depth) : slots_(depth), issued_(depth), arrived_(depth) {}
  Status start();
  void work();
  /// The next transfer to do; nothing when the back end is being destroyed.
  std::optional<size_t> next_issued();
  std::optional<size_t> next_arrived();

  /// A slot belongs to whoever took its place out of a line last; only the lines are shared.
  std::vector<Slot> slots_;
  Mutex mutex_;
  std::condition_variable_any issued_changed_;
  std::condition_variable_any arrived_changed_;
  PlaceLine issued_ GUARDED_BY(mutex_);
  PlaceLine arrived_ GUARDED_BY(mutex_);
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace headrace
