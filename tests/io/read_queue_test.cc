#include "io/read_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "io/disk_file.h"
#include "io/queue_files.h"
#include "support/kernel_counts.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;
using test::holds;
using test::numbered_bytes;
using test::part_of;
using test::TempFolder;
using test::TestMemory;
using test::total_bytes;

constexpr size_t kFileBytes = 5'300'123;
constexpr size_t kSmallPieceBytes = ReadQueue::kPieceBytesMin;

/// The same behaviour is asked of each back end.
class ReadQueueTest : public testing::TestWithParam<ReadBackendKind> {
 protected:
  ReadQueueTest() : contents_(numbered_bytes(kFileBytes)) { folder_.write("data", contents_); }

  /// Null, with the test marked as skipped, where the back end does not work.
  void SetUp() override {
    const auto queue = ReadQueue::create({.backend = GetParam()}, budget_, Log());
    if (!queue) GTEST_SKIP() << queue.error().message;
  }

  std::unique_ptr<ReadQueue> make_queue(size_t depth = 0, size_t piece_bytes = 0) {
    return ReadQueue::create({.backend = GetParam(), .depth = depth, .piece_bytes = piece_bytes}, budget_, Log())
        .take_value();
  }
  std::unique_ptr<ReadableFile> open(ReadMode mode) const { return open_file(folder_.file("data"), mode).take_value(); }
  ReadId submit(ReadQueue& queue, const ReadPart& part) {
    return queue.submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kExperts);
  }

  const std::string contents_;
  TempFolder folder_;
  Budget budget_{size_t{32} << 20};
  TestMemory memory_{16};
};

TEST_P(ReadQueueTest, TellsWhichBackEndItHas) {
  EXPECT_EQ(make_queue()->backend_name(), test::name_of(GetParam()));
  EXPECT_EQ(make_queue(7)->depth(), 7u);
  EXPECT_EQ(make_queue()->depth(), ReadQueue::kDefaultDepth);
}

TEST_P(ReadQueueTest, ReadsWhatAPlainReadReads) {
  for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kDirect}) {
    for (const size_t piece_bytes : {kSmallPieceBytes, size_t{1} << 20, size_t{0}}) {
      memory_.fill(std::byte{0});
      const auto file = open(mode);
      const auto queue = make_queue(3, piece_bytes);
      const ReadPart parts[] = {part_of(*file, {0, kFileBytes}, memory_.all()),
                                part_of(*file, {1'234'567, 777}, memory_.from(6)),
                                part_of(*file, {3'000'001, 1'500'000}, memory_.from(8))};
      const ReadId id = queue->submit(parts, ReadPriority::kDemand, ReadPurpose::kExperts);
      const Result<ReadResult> result = queue->wait(id);
      ASSERT_TRUE(result) << result.error().message;
      uint64_t expected_bytes = 0;
      for (const ReadPart& part : parts) {
        EXPECT_TRUE(holds(part, contents_)) << "at " << part.offset;
        expected_bytes += part.out.size();
      }
      EXPECT_EQ(result.value().transferred_bytes, expected_bytes);
      EXPECT_EQ(queue->counters().bytes_read[static_cast<size_t>(ReadPurpose::kExperts)], expected_bytes);
      EXPECT_EQ(total_bytes(queue->counters()), expected_bytes);
    }
  }
}

TEST_P(ReadQueueTest, ReadsFromFilesOfAnyBlock) {
  const Files files = {{"a", numbered_bytes(700'001, 1)}, {"b", numbered_bytes(300'003, 2)}};
  const size_t blocks[] = {1, 512, 4096};
  for (const size_t first : blocks) {
    for (const size_t second : blocks) {
      const FileOpener opener = test::mixed_block_opener(files, {first, second});
      const auto a = opener("a", ReadMode::kDirect).take_value();
      const auto b = opener("b", ReadMode::kDirect).take_value();
      const auto queue = make_queue(4, kSmallPieceBytes);
      const ReadPart parts[] = {part_of(*a, {10'001, 600'000}, memory_.all()),
                                part_of(*b, {5, 300'003 - 5}, memory_.from(1))};
      const ReadId id = queue->submit(parts, ReadPriority::kTrunk, ReadPurpose::kTrunk);
      ASSERT_TRUE(queue->wait(id)) << first << " " << second;
      EXPECT_TRUE(holds(parts[0], files.at("a"))) << first << " " << second;
      EXPECT_TRUE(holds(parts[1], files.at("b"))) << first << " " << second;
    }
  }
}

TEST_P(ReadQueueTest, ManyReadsEndInAnyOrderAndAreAllThere) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue();
  std::vector<ReadPart> parts;
  std::vector<ReadId> ids;
  for (size_t i = 0; i < 100; ++i) {
    parts.push_back(part_of(*file, {i * 50'001, 40'000}, memory_.all().subspan(i << 16)));
    ids.push_back(queue->submit({&parts.back(), 1}, static_cast<ReadPriority>(i % 3), ReadPurpose::kTrunk));
  }
  while (!ids.empty()) {
    const size_t index = queue->wait_any(ids);
    ASSERT_TRUE(queue->take(ids[index]));
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(index));
  }
  for (const ReadPart& part : parts) EXPECT_TRUE(holds(part, contents_));
}

TEST_P(ReadQueueTest, EndsWithoutBeingWaitedFor) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue(2, kSmallPieceBytes);
  const ReadPart part = part_of(*file, {0, 1 << 20}, memory_.all());
  const ReadId id = submit(*queue, part);
  while (!queue->has_ended(id)) {
  }
  EXPECT_TRUE(queue->has_ended(id)) << "until it is taken";
  ASSERT_TRUE(queue->take(id));
  EXPECT_TRUE(holds(part, contents_));
}

TEST_P(ReadQueueTest, PartsOfWhichNothingIsNeededCostNothing) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue();
  const ReadPart empty{file.get(), 0, memory_.all().first(65'536), 0};
  const ReadPart parts[] = {empty, part_of(*file, {65'536, 100}, memory_.from(1)), empty};
  const ReadId id = queue->submit(parts, ReadPriority::kDemand, ReadPurpose::kHead);
  EXPECT_EQ(queue->wait(id).value().transferred_bytes, parts[1].out.size());
  EXPECT_TRUE(holds(parts[1], contents_));
  const ReadId nothing = submit(*queue, empty);
  EXPECT_TRUE(queue->has_ended(nothing));
  EXPECT_EQ(queue->take(nothing).value().transferred_bytes, 0u);
}

TEST_P(ReadQueueTest, ReadsNothingBeyondTheBlockThatIsNeeded) {
  const auto file = open(ReadMode::kDirect);
  if (!file->is_direct()) GTEST_SKIP() << "the file system of " << file->path() << " refuses direct reads";
  const auto queue = make_queue();
  const ReadPart part{file.get(), 0, memory_.all().first(1 << 20), 1000};
  EXPECT_EQ(queue->wait(submit(*queue, part)).value().transferred_bytes, align_up(1000, file->block_bytes()));
}

TEST_P(ReadQueueTest, ContinuesAfterShortReads) {
  const Files files = {{"f", numbered_bytes(400'001)}};
  for (const size_t block : {1u, 512u, 4096u}) {
    for (uint64_t short_at = 0; short_at < 6; ++short_at) {
      FaultPlan plan;
      plan.short_at = short_at;
      plan.bytes_per_read_max = 50'000;
      const auto file = test::memory_opener(files, block, &plan)("f", ReadMode::kDirect).take_value();
      const auto queue = make_queue(1);
      const ReadPart part = part_of(*file, {777, 300'000}, memory_.all());
      ASSERT_TRUE(queue->wait(submit(*queue, part))) << block << " " << short_at;
      EXPECT_TRUE(holds(part, files.at("f"))) << block << " " << short_at;
    }
  }
}

TEST_P(ReadQueueTest, ReturnsTheErrorOfEveryFailingRead) {
  const Files files = {{"f", numbered_bytes(400'001)}};
  for (uint64_t fail_at = 0; fail_at < 5; ++fail_at) {
    FaultPlan plan;
    plan.fail_at = fail_at;
    const auto file = test::memory_opener(files, 512, &plan)("f", ReadMode::kDirect).take_value();
    const auto queue = make_queue(2, kSmallPieceBytes);
    const ReadPart part = part_of(*file, {0, 5 * kSmallPieceBytes}, memory_.all());
    const Result<ReadResult> result = queue->wait(submit(*queue, part));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kIo);
    EXPECT_NE(result.error().message.find("read f @"), std::string::npos) << result.error().message;
    queue->drain();
    // The next read is a new one.
    EXPECT_TRUE(queue->wait(submit(*queue, part)));
  }
}

TEST_P(ReadQueueTest, NamesTheFileThatEndsEarly) {
  const auto file = open(ReadMode::kBuffered);
  const auto queue = make_queue();
  const ReadId id = submit(*queue, {file.get(), kFileBytes - 10, memory_.all().first(30), 30});
  EXPECT_TRUE(queue->has_ended(id)) << "nothing need be read to know it";
  const Result<ReadResult> result = queue->take(id);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kFormat);
  EXPECT_EQ(result.error().message, "read " + file->path() + " @5300113, 30 bytes: file ends 20 bytes early");
  EXPECT_EQ(total_bytes(queue->counters()), 0u);
}

TEST_P(ReadQueueTest, FindsAFileThatWasCutAfterOpening) {
  for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kDirect}) {
    folder_.write("data", contents_);
    const auto file = open(mode);
    const auto queue = make_queue(2, kSmallPieceBytes);
    ASSERT_EQ(truncate(file->path().c_str(), 100'000), 0);
    const Result<ReadResult> result = queue->wait(submit(*queue, part_of(*file, {0, 1 << 20}, memory_.all())));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kFormat) << result.error().message;
    EXPECT_NE(result.error().message.find("bytes early"), std::string::npos) << result.error().message;
  }
}

TEST_P(ReadQueueTest, TellsFilesApartThatGetTheSameDescriptor) {
  const auto queue = make_queue();
  for (unsigned i = 0; i < 20; ++i) {
    const std::string contents = numbered_bytes(100'000, i);
    folder_.write("file", contents);
    const auto file = open_file(folder_.file("file"), ReadMode::kBuffered).take_value();
    const ReadPart part = part_of(*file, {0, contents.size()}, memory_.all());
    ASSERT_TRUE(queue->wait(submit(*queue, part)));
    EXPECT_TRUE(holds(part, contents)) << i;
    ASSERT_EQ(unlink(file->path().c_str()), 0);
  }
}

TEST_P(ReadQueueTest, CancelledReadsGiveTheirMemoryBack) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue(1, kSmallPieceBytes);
  for (const ReadPriority priority : {ReadPriority::kDemand, ReadPriority::kSpeculative}) {
    const ReadPart parts[] = {part_of(*file, {0, 1 << 20}, memory_.all()),
                              part_of(*file, {1 << 20, 1 << 20}, memory_.from(1))};
    const ReadId first = submit(*queue, parts[0]);
    const ReadId second = queue->submit({&parts[1], 1}, priority, ReadPurpose::kTrunk);
    if (!queue->cancel(second)) {
      while (!queue->has_ended(second)) {
      }
      EXPECT_EQ(queue->take(second).error().code, Code::kCancelled);
    }
    EXPECT_TRUE(queue->wait(first));
    EXPECT_TRUE(holds(parts[0], contents_));
  }
}

TEST_P(ReadQueueTest, WaitsForItsReadsWhenDestroyed) {
  const auto file = open(ReadMode::kDirect);
  for (size_t pumps = 0; pumps < 5; ++pumps) {
    auto queue = make_queue(3, kSmallPieceBytes);
    // Memory that ends with the block: a late write would be found by AddressSanitizer.
    const TestMemory memory(4);
    submit(*queue, part_of(*file, {0, 4 << 20}, memory.all()));
    for (size_t i = 0; i < pumps; ++i) queue->pump();
    queue.reset();
  }
}

TEST_P(ReadQueueTest, ReadsToRegisteredMemoryAndPastItsEnds) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue(2, kSmallPieceBytes);
  const auto registered = memory_.all().subspan(100 * 4096, size_t{2} << 20);
  for (int round = 0; round < 2; ++round) {
    memory_.fill(std::byte{0});
    queue->register_memory(registered);
    const ReadPart part = part_of(*file, {12'345, 4'000'000}, memory_.all());
    ASSERT_TRUE(queue->wait(submit(*queue, part)));
    EXPECT_TRUE(holds(part, contents_));
    queue->unregister_memory(registered);
    memory_.fill(std::byte{0});
    ASSERT_TRUE(queue->wait(submit(*queue, part)));
    EXPECT_TRUE(holds(part, contents_));
  }
}

TEST_P(ReadQueueTest, FallsBackWhenATransferIsRefused) {
  // The file claims any alignment; the kernel then refuses what is not aligned.
  SystemCalls calls = kSystemCalls;
  calls.direct_block_bytes = [](int) -> DirectBlockBytes { return size_t{1}; };
  const auto file = DiskFile::open(folder_.file("data"), ReadMode::kDirect, calls).take_value();
  if (!file->is_direct()) GTEST_SKIP() << "the file system of " << file->path() << " refuses direct reads";
  const auto queue = make_queue(4, kSmallPieceBytes);
  const ReadPart part{file.get(), 13, memory_.all().subspan(7, 1'000'001), 1'000'001};
  const Result<ReadResult> result = queue->wait(submit(*queue, part));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(holds(part, contents_));
  EXPECT_FALSE(file->is_direct());
}

TEST_P(ReadQueueTest, LeavesNoPagesBehindWhereDirectReadsAreRefused) {
  test::evict(folder_.file("data"));
  if (test::cached_pages(folder_.file("data")) > 0) GTEST_SKIP() << "this file system lives in the page cache";
  SystemCalls calls = kSystemCalls;
  calls.direct_block_bytes = [](int) -> DirectBlockBytes { return size_t{0}; };
  const auto file = DiskFile::open(folder_.file("data"), ReadMode::kDirect, calls).take_value();
  const auto queue = make_queue(1, kSmallPieceBytes);
  ASSERT_TRUE(queue->wait(submit(*queue, part_of(*file, {0, kFileBytes}, memory_.all()))));
  // Read-ahead may leave pages that nobody has asked for yet.
  EXPECT_LT(test::cached_pages(folder_.file("data")), kFileBytes / 4096 / 4);
}

TEST_P(ReadQueueTest, CountsTheBytesThatTheKernelCounts) {
  test::evict(folder_.file("data"));
  const auto file = open(ReadMode::kDirect);
  if (!file->is_direct()) GTEST_SKIP() << "the file system of " << file->path() << " refuses direct reads";
  const auto queue = make_queue(3, size_t{256} << 10);
  queue->register_memory(memory_.from(8));
  const uint64_t before = test::kernel_read_bytes();
  const ReadPart parts[] = {part_of(*file, {0, 10}, memory_.all()),
                            part_of(*file, {100'000, 3'000'000}, memory_.from(1)),
                            part_of(*file, {kFileBytes - 5, 5}, memory_.from(8))};
  for (const ReadPriority priority : {ReadPriority::kDemand, ReadPriority::kTrunk, ReadPriority::kSpeculative}) {
    const ReadId id = queue->submit(parts, priority, ReadPurpose::kTrunk);
    queue->drain();
    ASSERT_TRUE(queue->take(id));
  }
  const uint64_t kernel = test::kernel_read_bytes() - before;
  if (kernel == 0) GTEST_SKIP() << "the kernel does not count reads of this file system";
  EXPECT_EQ(total_bytes(queue->counters()), kernel);
}

TEST_P(ReadQueueTest, MeasuresTheTimeOfReadingAndOfWaiting) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue();
  EXPECT_EQ(queue->counters().busy_s, 0);
  const ReadId id = submit(*queue, part_of(*file, {0, 4 << 20}, memory_.all()));
  ASSERT_TRUE(queue->wait(id));
  const ReadQueueCounters counters = queue->counters();
  EXPECT_GT(counters.busy_s, 0);
  EXPECT_GT(counters.wait_s, 0);
  EXPECT_EQ(counters.busy_s, queue->counters().busy_s) << "nothing is in flight any more";
}

TEST_P(ReadQueueTest, TakesWhatItSaysOfTheBudgetAndGivesItBack) {
  const ReadQueueOptions options{.backend = GetParam(), .depth = 5};
  const size_t bytes = ReadQueue::memory_bytes(options);
  Budget enough(bytes);
  {
    const auto queue = ReadQueue::create(options, enough, Log());
    ASSERT_TRUE(queue);
    EXPECT_EQ(enough.used_bytes(), bytes);
  }
  EXPECT_EQ(enough.used_bytes(), 0u);
  Budget little(bytes - 1);
  const auto refused = ReadQueue::create(options, little, Log());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_EQ(little.used_bytes(), 0u);
}

TEST_P(ReadQueueTest, RefusesDepthsAndPiecesOutOfRange) {
  const ReadQueueOptions wrong[] = {{.backend = GetParam(), .depth = ReadQueue::kDepthMax + 1},
                                    {.backend = GetParam(), .piece_bytes = 1000},
                                    {.backend = GetParam(), .piece_bytes = kSmallPieceBytes + 512},
                                    {.backend = GetParam(), .piece_bytes = 2 * ReadQueue::kPieceBytesMax}};
  for (const ReadQueueOptions& options : wrong) {
    const auto queue = ReadQueue::create(options, budget_, Log());
    ASSERT_FALSE(queue);
    EXPECT_EQ(queue.error().code, Code::kArgument) << queue.error().message;
  }
  EXPECT_EQ(make_queue(ReadQueue::kDepthMax)->depth(), ReadQueue::kDepthMax);
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadQueueTest, testing::Values(ReadBackendKind::kUring, ReadBackendKind::kThreads),
                         [](const auto& kind) { return test::name_of(kind.param); });

}  // namespace
}  // namespace headrace
