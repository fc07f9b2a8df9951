#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/float_environment.h"

namespace headrace {
namespace {

// Polls before sleeping: the gap between two matrix products of a layer is a few microseconds, a futex wake-up tens.
constexpr int kSpinCount = 2000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool bind_to_cpu(pthread_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

}  // namespace

IndexRange split_range(size_t total, size_t grain, size_t index, size_t count) {
  const size_t block_count = (total + grain - 1) / grain;
  const size_t blocks_each = block_count / count;
  const size_t extra = block_count % count;
  const size_t first = index * blocks_each + std::min(index, extra);
  const size_t last = first + blocks_each + (index < extra ? 1 : 0);
  return {std::min(first * grain, total), std::min(last * grain, total)};
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(size_t thread_count, const std::vector<int>& cpus) {
  thread_count = std::clamp<size_t>(thread_count, 1, kThreadsMax);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(thread_count));
  for (size_t index = 1; index < thread_count; ++index) {
    // The only call below `cli` that can throw; caught at once.
    try {
      pool->workers_.emplace_back([&self = *pool, index] { self.work(index); });
    } catch (const std::system_error& failure) {
      return error(Code::kArgument, "thread %zu of %zu cannot be started: %s", index + 1, thread_count, failure.what());
    }
  }
  if (cpus.empty()) return pool;
  for (size_t index = 0; index < thread_count; ++index) {
    const pthread_t thread = index == 0 ? pthread_self() : pool->workers_[index - 1].native_handle();
    const int cpu = cpus[index % cpus.size()];
    if (!bind_to_cpu(thread, cpu)) return error(Code::kArgument, "processor %d cannot be used by this process", cpu);
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  // Pairs with the acquire in `work`: whoever sees the new generation sees `stopping_`.
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void ThreadPool::run(size_t total, size_t grain, FunctionRef<void(IndexRange)> body) {
  if (total == 0) return;
  if (thread_count_ == 1 || total <= grain) {
    body({0, total});
    return;
  }
  job_ = {total, grain, &body};
  unfinished_.store(thread_count_ - 1, std::memory_order_relaxed);
  // Pairs with the acquire in `work`: publishes job_ and unfinished_.
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  body(split_range(total, grain, 0, thread_count_));
  // Pairs with the release decrement in `work`: what the workers wrote is visible when this reads 0.
  for (int spin = 0;; ++spin) {
    const size_t unfinished = unfinished_.load(std::memory_order_acquire);
    if (unfinished == 0) return;
    if (spin < kSpinCount) {
      pause_briefly();
    } else {
      unfinished_.wait(unfinished, std::memory_order_acquire);
    }
  }
}

void ThreadPool::work(size_t worker_index) {
  const FloatEnvironment float_environment;
  uint64_t seen_generation = 0;
  for (;;) {
    for (int spin = 0; generation_.load(std::memory_order_acquire) == seen_generation; ++spin) {
      if (spin < kSpinCount) {
        pause_briefly();
      } else {
        generation_.wait(seen_generation, std::memory_order_acquire);
      }
    }
    ++seen_generation;
    if (stopping_.load(std::memory_order_relaxed)) return;
    const IndexRange range = split_range(job_.total, job_.grain, worker_index, thread_count_);
    if (range.size() > 0) (*job_.body)(range);
    if (unfinished_.fetch_sub(1, std::memory_order_release) == 1) unfinished_.notify_one();
  }
}

}  // namespace headrace
