#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cfloat>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/machine.h"

namespace headrace {
namespace {

std::unique_ptr<ThreadPool> make_pool(size_t thread_count) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(thread_count, {});
  EXPECT_TRUE(pool);
  return pool.take_value();
}

TEST(SplitRange, PartsCoverEverythingOnceInOrderAtMultiplesOfTheGrain) {
  for (const size_t total : {0u, 1u, 2u, 7u, 64u, 100u, 1001u}) {
    for (const size_t grain : {1u, 3u, 16u, 2000u}) {
      for (const size_t count : {1u, 2u, 3u, 8u, 200u}) {
        size_t end = 0;
        for (size_t index = 0; index < count; ++index) {
          const IndexRange range = split_range(total, grain, index, count);
          ASSERT_EQ(range.begin, end);
          ASSERT_TRUE(range.begin % grain == 0 || range.begin == total);
          end = range.end;
        }
        ASSERT_EQ(end, total);
      }
    }
  }
}

TEST(SplitRange, PartsDifferByAtMostOneGrain) {
  for (size_t index = 0; index < 7; ++index) {
    const size_t size = split_range(100, 1, index, 7).size();
    EXPECT_TRUE(size == 14 || size == 15);
  }
}

TEST(SplitRange, HugeTotalsDoNotWrapAround) {
  EXPECT_EQ(split_range(SIZE_MAX, 1000, 0, 1).end, SIZE_MAX);
}

class ThreadPoolOfSize : public testing::TestWithParam<size_t> {};

TEST_P(ThreadPoolOfSize, VisitsEveryItemOnceInManyTinyJobs) {
  const std::unique_ptr<ThreadPool> pool = make_pool(GetParam());
  EXPECT_EQ(pool->thread_count(), GetParam());
  constexpr size_t kItemCountMax = 70;
  std::vector<uint32_t> visits(kItemCountMax);
  std::vector<uint32_t> expected(kItemCountMax);
  for (size_t job = 0; job < 3000; ++job) {
    const size_t total = job % (kItemCountMax + 1);
    // Plain increments: ranges must not overlap, and jobs must not reach into each other.
    pool->run(total, 1 + job % 3, [&](IndexRange range) {
      for (size_t item = range.begin; item < range.end; ++item) ++visits[item];
    });
    for (size_t item = 0; item < total; ++item) ++expected[item];
    ASSERT_EQ(visits, expected) << "job " << job;
  }
}

TEST_P(ThreadPoolOfSize, CallsTheBodyWithNonEmptyRangesAtMultiplesOfTheGrain) {
  const std::unique_ptr<ThreadPool> pool = make_pool(GetParam());
  std::atomic<size_t> calls{0};
  std::atomic<bool> is_fine{true};
  pool->run(50, 16, [&](IndexRange range) {
    calls.fetch_add(1);
    if (range.size() == 0 || range.begin % 16 != 0) is_fine.store(false);
  });
  EXPECT_TRUE(is_fine.load());
  EXPECT_EQ(calls.load(), std::min<size_t>(GetParam(), 4));
}

// More threads than any test machine's processors are among them.
INSTANTIATE_TEST_SUITE_P(, ThreadPoolOfSize, testing::Values(1, 2, 3, 8, 33), testing::PrintToStringParamName());

TEST(ThreadPool, WakesWorkersThatFellAsleep) {
  const std::unique_ptr<ThreadPool> pool = make_pool(4);
  for (int round = 0; round < 5; ++round) {
    // Long past the polling phase, so that workers sleep in the kernel. No assertion depends on the time.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<size_t> items{0};
    pool->run(100, 1, [&](IndexRange range) { items.fetch_add(range.size()); });
    ASSERT_EQ(items.load(), 100u);
  }
}

TEST(ThreadPool, WaitsForWorkersSlowerThanTheCaller) {
  const std::unique_ptr<ThreadPool> pool = make_pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  bool is_done = false;
  pool->run(2, 1, [&](IndexRange) {
    if (std::this_thread::get_id() == caller) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_done = true;
  });
  EXPECT_TRUE(is_done);
}

TEST(ThreadPool, StartsAndStopsWithoutAJob) {
  for (int round = 0; round < 50; ++round) make_pool(4);
}

TEST(ThreadPool, ServesOneThreadAfterAnother) {
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  size_t sum = 0;
  for (int round = 0; round < 20; ++round) {
    std::jthread([&] {
      std::vector<size_t> values(100, 1);
      pool->run(100, 1, [&](IndexRange range) {
        for (size_t i = range.begin; i < range.end; ++i) values[i] += i;
      });
      sum += std::accumulate(values.begin(), values.end(), size_t{0});
    }).join();
  }
  EXPECT_EQ(sum, 20u * (100 + 4950));
}

TEST(ThreadPool, CountsAreClampedToItsLimits) {
  EXPECT_EQ(make_pool(0)->thread_count(), 1u);
  EXPECT_EQ(make_pool(SIZE_MAX)->thread_count(), ThreadPool::kThreadsMax);
}

/// 1 plus a third of the distance to the next number: 1 when rounded to nearest.
float rounded_sum() {
  volatile float one = 1.0F;
  volatile float sum = one + FLT_EPSILON / 3;
  return sum;
}

TEST(ThreadPool, WorkersRunInTheDefinedFloatEnvironment) {
  // Threads inherit the rounding mode of their creator.
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const std::unique_ptr<ThreadPool> pool = make_pool(3);
  std::vector<float> sums(3);
  pool->run(3, 1, [&](IndexRange range) { sums[range.begin] = rounded_sum(); });
  std::fesetround(FE_TONEAREST);
  // The caller brings its own.
  EXPECT_EQ(sums, (std::vector<float>{1.0F + FLT_EPSILON, 1.0F, 1.0F}));
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(ThreadPool, BindsEachWorkerToItsProcessorAndTheCallerToAll) {
  // On a thread of its own: the binding of the creator stays.
  std::jthread([] {
    std::vector<int> cpus = allowed_cpus();
    if (cpus.size() < 2) GTEST_SKIP() << "SKIP: needs two processors";
    cpus.resize(2);
    const std::unique_ptr<ThreadPool> pool = ThreadPool::create(4, cpus).take_value();
    EXPECT_EQ(allowed_cpus(), cpus);
    const std::thread::id caller = std::this_thread::get_id();
    std::vector<std::vector<int>> bound(4);
    pool->run(4, 1, [&](IndexRange range) {
      if (std::this_thread::get_id() != caller) bound[range.begin] = allowed_cpus();
    });
    EXPECT_EQ(bound[1], std::vector<int>{cpus[1]});
    EXPECT_EQ(bound[2], std::vector<int>{cpus[0]});
    EXPECT_EQ(bound[3], std::vector<int>{cpus[1]});
  }).join();
}

TEST(ThreadPool, RefusesProcessorsThatAreNotThere) {
  const std::vector<int> before = allowed_cpus();
  for (const int cpu : {-1, kCpuCountMax, kCpuCountMax - 1}) {
    if (std::ranges::find(before, cpu) != before.end()) GTEST_SKIP() << "SKIP: this machine has processor " << cpu;
    for (const size_t thread_count : {1, 3}) {
      const Result<std::unique_ptr<ThreadPool>> refused = ThreadPool::create(thread_count, {cpu});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::kArgument);
    }
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(ThreadPoolDeathTest, NestedRunsAreABugForEveryThreadCount) {
  for (const size_t thread_count : {1, 2}) {
    const auto nest = [&] {
      const std::unique_ptr<ThreadPool> pool = make_pool(thread_count);
      pool->run(2, 1, [&](IndexRange) { pool->run(2, 1, [](IndexRange) {}); });
    };
    EXPECT_EXIT(nest(), testing::ExitedWithCode(70), "thread_pool.cc");
  }
}

TEST(ThreadPoolDeathTest, AGrainOfNothingIsABug) {
  EXPECT_EXIT(make_pool(1)->run(2, 0, [](IndexRange) {}), testing::ExitedWithCode(70), "thread_pool.cc");
  EXPECT_EXIT(split_range(2, 0, 0, 1), testing::ExitedWithCode(70), "thread_pool.cc");
}

}  // namespace
}  // namespace headrace
