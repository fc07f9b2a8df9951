#include "base/machine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace headrace {
namespace {

TEST(Machine, AllowsAtLeastOneThreadAndNoMoreThanTheProcessors) {
  EXPECT_GE(usable_thread_count(), 1u);
  EXPECT_LE(usable_thread_count(), static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

TEST(Machine, CountsOnlyTheProcessorsOfTheAffinityMask) {
  std::jthread([] {
    cpu_set_t set;
    ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    for (int cpu = 0, seen_count = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set) && ++seen_count > 1) CPU_CLR(cpu, &set);
    }
    ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
    EXPECT_EQ(usable_thread_count(), 1u);
  }).join();
}

TEST(Machine, HasAsMuchMemoryAsTheKernelSaysOrLess) {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  size_t total_kib = 0;
  ASSERT_TRUE(meminfo >> name >> total_kib);
  ASSERT_EQ(name, "MemTotal:");
  EXPECT_GT(usable_memory_bytes(), size_t{1} << 20);
  EXPECT_LE(usable_memory_bytes(), total_kib * 1024);
}

TEST(Machine, PeakGrowsWithTouchedMemory) {
  const size_t before_bytes = peak_resident_bytes();
  if (before_bytes == 0) GTEST_SKIP() << "SKIP: this kernel does not report VmHWM";
  constexpr size_t kBytes = size_t{64} << 20;
  {
    std::string block(kBytes, 'x');
    ASSERT_EQ(std::strlen(block.c_str()), kBytes);
  }
  EXPECT_GE(peak_resident_bytes(), kBytes);
}

TEST(Machine, ReadsThePeakOutOfTheStatusText) {
  EXPECT_EQ(parse_peak_resident_bytes("Name:\theadrace\nVmPeak:\t 9 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 5 kB\n"),
            1234u * 1024);
  EXPECT_EQ(parse_peak_resident_bytes("Name:\theadrace\nVmHWM:\n"), 0u);
  EXPECT_EQ(parse_peak_resident_bytes("Name:\theadrace\nVmHWM:"), 0u);
  EXPECT_EQ(parse_peak_resident_bytes("Name:\tVmHWM: 7\n"), 0u);
  EXPECT_EQ(parse_peak_resident_bytes(""), 0u);
}

TEST(CpuList, TakesNumbersAndRangesInTheOrderGiven) {
  EXPECT_EQ(parse_cpu_list("5").value(), std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list("0-5").value(), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(parse_cpu_list("0-2,6-8").value(), (std::vector<int>{0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(parse_cpu_list("6,0-1").value(), (std::vector<int>{6, 0, 1}));
  EXPECT_EQ(parse_cpu_list("3-3,1023").value(), (std::vector<int>{3, 1023}));
}

TEST(CpuList, RefusesAnythingElseAndNamesThePart) {
  for (const char* const bad : {"", "x", "-", "-1", "1-", "1-2-3", "2-1", "0x1", "1 ", " 1", "+1", "1.5", "1024",
                                "0-1024", "99999999999999999999", "1--2", "\n"}) {
    for (const std::string& text : {std::string(bad), "0," + std::string(bad), std::string(bad) + ",0"}) {
      const Result<std::vector<int>> refused = parse_cpu_list(text);
      ASSERT_FALSE(refused) << text;
      EXPECT_EQ(refused.error().code, Code::kArgument);
      EXPECT_NE(refused.error().message.find("'" + std::string(bad) + "'"), std::string::npos)
          << refused.error().message;
    }
  }
}

TEST(CpuList, RefusesAProcessorNamedTwice) {
  for (const char* const text : {"1,1", "0-3,2", "2,0-3", "0-3,3-5"}) {
    const Result<std::vector<int>> refused = parse_cpu_list(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find("again"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
