#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <span>
#include <system_error>

#include "base/float_environment.h"
#include "base/machine.h"

namespace headrace {
namespace {

// Polls before sleeping: the gap between two matrix products of a layer is a few microseconds, a futex wake-up tens.
constexpr uint32_t kSpinCount = 2000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Confines `thread` to `cpus`; false when the process may use none of them.
bool bind_to_cpus(pthread_t thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

/// Where there are more threads than processors, polling keeps the thread that is waited for from running.
uint32_t choose_spin_count(size_t thread_count) {
  return thread_count <= usable_thread_count() ? kSpinCount : 0;
}

}  // namespace

IndexRange split_range(size_t total, size_t grain, size_t index, size_t count) {
  ENSURE(grain > 0 && index < count);
  const size_t block_count = total / grain + (total % grain == 0 ? 0 : 1);
  const size_t blocks_each = block_count / count;
  const size_t extra = block_count % count;
  const size_t first = index * blocks_each + std::min(index, extra);
  const size_t last = first + blocks_each + (index < extra ? 1 : 0);
  // The last block may be short, and its end as a product may not fit.
  const auto item = [&](size_t block) { return block == block_count ? total : block * grain; };
  return {item(first), item(last)};
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(size_t thread_count, const std::vector<int>& cpus) {
  thread_count = std::clamp<size_t>(thread_count, 1, kThreadsMax);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= kCpuCountMax) return error(Code::kArgument, "there is no processor %d", cpu);
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(thread_count));
  TRY(pool->start());
  if (!cpus.empty()) TRY(pool->bind(cpus));
  return pool;
}

ThreadPool::ThreadPool(size_t thread_count)
    : thread_count_(thread_count), spin_count_(choose_spin_count(thread_count)) {}

Status ThreadPool::start() {
  workers_.reserve(thread_count_ - 1);
  for (size_t index = 1; index < thread_count_; ++index) {
    // The only call below `cli` that can throw; caught at once.
    try {
      workers_.emplace_back([this, index] { work(index); });
    } catch (const std::system_error& failure) {
      return error(Code::kArgument, "thread %zu of %zu cannot be started: %s", index + 1, thread_count_,
                   failure.what());
    }
  }
  return {};
}

Status ThreadPool::bind(const std::vector<int>& cpus) {
  for (size_t index = 1; index < thread_count_; ++index) {
    const int cpu = cpus[index % cpus.size()];
    if (bind_to_cpus(workers_[index - 1].native_handle(), {&cpu, 1})) continue;
    return error(Code::kArgument, "processor %d cannot be used by this process", cpu);
  }
  if (!bind_to_cpus(pthread_self(), cpus)) {
    return error(Code::kArgument, "none of the %zu processors can be used by this process", cpus.size());
  }
  return {};
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  // Pairs with the load in `work`: whoever sees the new generation sees `stopping_`.
  generation_.fetch_add(1);
  generation_.notify_all();
}

void ThreadPool::run(size_t total, size_t grain, FunctionRef<void(IndexRange)> body) {
  ENSURE(grain > 0);
  if (total == 0) return;
  // Orders nothing; it only finds a second or a nested caller.
  ENSURE(!running_.exchange(true, std::memory_order_relaxed));
  if (thread_count_ == 1 || total <= grain) {
    body({0, total});
  } else {
    run_on_all({total, grain, &body});
  }
  running_.store(false, std::memory_order_relaxed);
}

void ThreadPool::run_on_all(const Job& job) {
  job_ = job;
  unfinished_.store(static_cast<uint32_t>(thread_count_ - 1), std::memory_order_relaxed);
  // Pairs with the load in `wait_for_change`: publishes job_ and unfinished_.
  generation_.fetch_add(1);
  generation_.notify_all();
  (*job.body)(split_range(job.total, job.grain, 0, thread_count_));
  // Pairs with the decrement in `work`: what the workers wrote is visible when this reads 0.
  while (const uint32_t unfinished = unfinished_.load(std::memory_order_acquire)) {
    wait_for_change(unfinished_, unfinished);
  }
}

void ThreadPool::work(size_t worker_index) {
  const FloatEnvironment float_environment;
  // Compared for equality only, so that wrapping around is harmless: `run` never gets a generation ahead.
  for (uint32_t seen_generation = 0;; ++seen_generation) {
    wait_for_change(generation_, seen_generation);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const IndexRange range = split_range(job_.total, job_.grain, worker_index, thread_count_);
    if (range.size() > 0) (*job_.body)(range);
    // Only the last one wakes `run_on_all`, which sleeps until the count changes AND it is told.
    if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_one();
  }
}

void ThreadPool::wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) const {
  for (uint32_t spin = 0; spin < spin_count_; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace headrace
