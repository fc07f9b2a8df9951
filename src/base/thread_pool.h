#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace headrace {

/// Items [begin, end) of a parallel loop.
struct IndexRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

/// Part `index` of `count` nearly equal parts of [0, total), cut at multiples of `grain`.
IndexRange split_range(size_t total, size_t grain, size_t index, size_t count);

/// Fork-join workers. The calling thread takes part. One thread at a time may call `run`; `run` does not nest.
class ThreadPool {
 public:
  /// At most this many threads, callers included.
  static constexpr size_t kThreadsMax = 256;

  /// Starts `thread_count` - 1 workers (thread_count is clamped to 1..kThreadsMax), bound to `cpus` in order when that
  /// is not empty. kArgument when a worker cannot be started or bound.
  static Result<std::unique_ptr<ThreadPool>> create(size_t thread_count, const std::vector<int>& cpus);
  ~ThreadPool();

  size_t thread_count() const { return thread_count_; }

  /// Cuts [0, total) into one range per thread at multiples of `grain`, calls `body(range)` for the non-empty ones,
  /// and returns when all are done. Which thread gets what must not change any result.
  void run(size_t total, size_t grain, FunctionRef<void(IndexRange)> body);

 private:
  explicit ThreadPool(size_t thread_count) : thread_count_(thread_count) {}
  void work(size_t worker_index);

  struct Job {
    size_t total = 0;
    size_t grain = 1;
    const FunctionRef<void(IndexRange)>* body = nullptr;
  };

  const size_t thread_count_;
  Job job_;  // Written by `run` before it raises `generation_`; read by workers after they saw it raised.
  std::atomic<uint64_t> generation_{0};
  std::atomic<size_t> unfinished_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace headrace
