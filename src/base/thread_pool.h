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

/// Part `index` of `count` nearly equal parts of [0, total), cut at multiples of `grain`. The first parts are the
/// larger ones; the last may be empty.
IndexRange split_range(size_t total, size_t grain, size_t index, size_t count);

/// Fork-join workers. The calling thread takes part. Any thread may call `run`, one at a time, and never from inside a
/// body: a second or nested caller stops the process. Workers run in the FloatEnvironment that results are defined for;
/// the caller of `run` brings its own.
class ThreadPool {
 public:
  /// At most this many threads, callers included.
  static constexpr size_t kThreadsMax = 256;

  /// Starts `thread_count` - 1 workers (thread_count is clamped to 1..kThreadsMax). When `cpus` is not empty, worker i
  /// is bound to the i-th of them (in a circle, from 1), and the thread that calls `create`, with all threads that it
  /// starts later, is confined to all of them for good. kArgument when a worker cannot be started or bound.
  static Result<std::unique_ptr<ThreadPool>> create(size_t thread_count, const std::vector<int>& cpus);
  /// Not while `run` is active. Joins the workers.
  ~ThreadPool();

  size_t thread_count() const { return thread_count_; }

  /// Cuts [0, total) into one range per thread at multiples of `grain` (at least 1), calls `body(range)` for the
  /// non-empty ones, each on another thread, and returns when all are done. `body` does not throw. Which thread gets
  /// what must not change any result.
  void run(size_t total, size_t grain, FunctionRef<void(IndexRange)> body);

 private:
  struct Job {
    size_t total = 0;
    size_t grain = 1;
    const FunctionRef<void(IndexRange)>* body = nullptr;
  };

  explicit ThreadPool(size_t thread_count);
  Status start();
  Status bind(const std::vector<int>& cpus);
  void run_on_all(const Job& job);
  void work(size_t worker_index);
  /// Polls, then sleeps, until `value` is not `old`.
  void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) const;

  const size_t thread_count_;
  const uint32_t spin_count_;
  Job job_;  // Written by `run` before it raises `generation_`; read by workers after they saw it raised.
  // 32 bits: the kernel can sleep on these directly. Changes are sequentially consistent, because the C++ library looks
  // for sleepers after them and must not look before.
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> unfinished_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace headrace
