#include "io/read_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "io/alignment.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;
using test::TempFolder;

constexpr size_t kFileBytes = 5'300'123;

std::string numbered_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + (i >> 8) * 7 + (i >> 16));
  return bytes;
}

/// A queue on each of the back ends, a file on disk, and memory to read it into.
class ReadQueueTest : public testing::TestWithParam<ReadBackendKind> {
 protected:
  ReadQueueTest() {
    folder_.write("data", numbered_bytes(kFileBytes));
    memory_ = AlignedMemory::allocate(budget_, size_t{16} << 20, "test").take_value();
  }

  std::unique_ptr<ReadQueue> make_queue(size_t depth = 0, size_t piece_bytes = 0) {
    return ReadQueue::create({.backend = GetParam(), .depth = depth, .piece_bytes = piece_bytes}, budget_, Log())
        .take_value();
  }
  std::unique_ptr<ReadableFile> open(ReadMode mode) const { return open_file(folder_.file("data"), mode).take_value(); }
  /// A part for bytes [offset, offset + size) widened to blocks, at `at` bytes of the memory.
  ReadPart part_of(ReadableFile& file, ByteRange range, size_t at) const {
    const ByteRange blocks = widen(range, file.block_bytes());
    return {&file, blocks.offset, memory_.bytes().subspan(at, static_cast<size_t>(blocks.size)),
            static_cast<size_t>(range.end() - blocks.offset)};
  }
  void expect_arrived(const ReadPart& part) const {
    const std::string expected = test::plain_read(folder_.file("data"), part.offset, part.needed_bytes);
    EXPECT_EQ(std::memcmp(part.out.data(), expected.data(), expected.size()), 0) << "at " << part.offset;
  }

  TempFolder folder_;
  Budget budget_{size_t{64} << 20};
  AlignedMemory memory_;
};

TEST_P(ReadQueueTest, ReadsWhatAPlainReadReads) {
  for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kDirect}) {
    for (const size_t piece_bytes : {size_t{64} << 10, size_t{1} << 20, size_t{0}}) {
      const auto file = open(mode);
      const auto queue = make_queue(3, piece_bytes);
      const ReadPart parts[] = {part_of(*file, {0, kFileBytes}, 0), part_of(*file, {1'234'567, 777}, 6 << 20),
                                part_of(*file, {3'000'001, 1'500'000}, 8 << 20)};
      const ReadId id = queue->submit(parts, ReadPriority::kDemand, ReadPurpose::kExperts);
      const Result<ReadResult> result = queue->wait(id);
      ASSERT_TRUE(result) << result.error().message;
      uint64_t blocks_bytes = 0;
      for (const ReadPart& part : parts) {
        expect_arrived(part);
        blocks_bytes += part.out.size();
      }
      EXPECT_EQ(result.value().transferred_bytes, blocks_bytes);
      EXPECT_EQ(queue->counters().bytes_read[static_cast<size_t>(ReadPurpose::kExperts)], blocks_bytes);
    }
  }
}

TEST_P(ReadQueueTest, ManyReadsEndInAnyOrderAndAreAllThere) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue();
  std::vector<ReadPart> parts;
  std::vector<ReadId> ids;
  for (size_t i = 0; i < 100; ++i) {
    parts.push_back(part_of(*file, {i * 50'001, 40'000}, i << 16));
    ids.push_back(queue->submit({&parts.back(), 1}, static_cast<ReadPriority>(i % 3), ReadPurpose::kTrunk));
  }
  while (!ids.empty()) {
    const size_t index = queue->wait_any(ids);
    ASSERT_TRUE(queue->take(ids[index]));
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(index));
  }
  for (const ReadPart& part : parts) expect_arrived(part);
}

TEST_P(ReadQueueTest, NamesTheFileThatEndsEarly) {
  const auto file = open(ReadMode::kBuffered);
  const auto queue = make_queue();
  const ReadPart part{file.get(), kFileBytes - 10, memory_.bytes().first(30), 30};
  const ReadId id = queue->submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kHead);
  EXPECT_TRUE(queue->has_ended(id));
  const Result<ReadResult> result = queue->take(id);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kFormat);
  EXPECT_NE(result.error().message.find("file ends 20 bytes early"), std::string::npos) << result.error().message;
}

TEST_P(ReadQueueTest, CancelledReadsGiveTheirMemoryBack) {
  const auto file = open(ReadMode::kDirect);
  const auto queue = make_queue(1);
  const ReadPart parts[] = {part_of(*file, {0, 1 << 20}, 0), part_of(*file, {1 << 20, 1 << 20}, 1 << 20)};
  const ReadId first = queue->submit({&parts[0], 1}, ReadPriority::kDemand, ReadPurpose::kTrunk);
  const ReadId second = queue->submit({&parts[1], 1}, ReadPriority::kSpeculative, ReadPurpose::kTrunk);
  if (!queue->cancel(second)) {
    while (!queue->has_ended(second)) queue->pump();
    EXPECT_EQ(queue->take(second).error().code, Code::kCancelled);
  }
  EXPECT_TRUE(queue->wait(first));
  queue->drain();
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadQueueTest, testing::Values(ReadBackendKind::kThreads),
                         [](const auto&) { return "threads"; });

}  // namespace
}  // namespace headrace
