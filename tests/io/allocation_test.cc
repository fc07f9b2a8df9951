#include <gtest/gtest.h>

#include "io/allocation_count.h"
#include "io/queue_files.h"
#include "io/read_queue.h"

namespace headrace {
namespace {

class ReadQueueAllocation : public testing::TestWithParam<ReadBackendKind> {};

TEST_P(ReadQueueAllocation, ReadingAllocatesNothing) {
  const test::TempFolder folder;
  folder.write("data", test::numbered_bytes(4 << 20));
  const auto file = open_file(folder.file("data"), ReadMode::kDirect).take_value();
  const test::TestMemory memory(4);
  Budget budget(size_t{8} << 20);
  auto created = ReadQueue::create({.backend = GetParam(), .depth = 3, .piece_bytes = 65'536}, budget, Log());
  if (!created) GTEST_SKIP() << created.error().message;
  const auto queue = created.take_value();
  const ReadPart part = test::part_of(*file, {1000, 1 << 20}, memory.all());
  const ReadPart other = test::part_of(*file, {1 << 20, 1 << 20}, memory.from(2));
  bool is_fine = true;
  const std::optional<size_t> before = test::allocation_count();
  if (!before) GTEST_SKIP() << "a sanitizer allocates in our place";
  for (int i = 0; i < 20; ++i) {
    const ReadId ids[] = {queue->submit({&part, 1}, ReadPriority::kTrunk, ReadPurpose::kTrunk),
                          queue->submit({&other, 1}, ReadPriority::kSpeculative, ReadPurpose::kExperts)};
    queue->pump();
    queue->promote(ids[1], ReadPriority::kDemand);
    const size_t first = queue->wait_any(ids);
    is_fine = is_fine && queue->take(ids[first]) && queue->wait(ids[1 - first]);
    queue->drain();
  }
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_TRUE(is_fine);
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadQueueAllocation,
                         testing::Values(ReadBackendKind::kUring, ReadBackendKind::kThreads),
                         [](const auto& kind) { return test::name_of(kind.param); });

}  // namespace
}  // namespace headrace
