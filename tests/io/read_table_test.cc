#include "io/read_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "io/queue_files.h"

namespace headrace {
namespace {

using test::Files;

constexpr size_t kPieceBytes = 256 * 1024;

/// Fills a fresh read with parts of these needed bytes each, of one file.
QueuedRead& add_read(ReadTable& table, ReadableFile& file, std::span<std::byte> memory,
                     const std::vector<size_t>& needed) {
  QueuedRead& read = table.add();
  for (const size_t bytes : needed) read.parts[read.part_count++] = {&file, 0, memory, bytes};
  read.skip_finished_parts();
  return read;
}

TEST(ReadTable, PiecesCoverWhatIsNeededOnceAndInOrder) {
  const Files files = {{"f", ""}};
  const test::TestMemory memory(2);
  std::mt19937 random(1);
  for (const size_t block : {1u, 512u, 4096u, 65536u}) {
    const auto file = test::memory_opener(files, block)("f", ReadMode::kDirect).take_value();
    for (int i = 0; i < 200; ++i) {
      ReadTable table;
      const size_t needed = random() % (size_t{2} << 20);
      QueuedRead& read = add_read(table, *file, memory.all(), {0, needed, 0});
      size_t begin = 0;
      while (read.has_more()) {
        const ReadPart piece = read.take_piece(kPieceBytes);
        ASSERT_EQ(piece.offset, begin);
        ASSERT_EQ(piece.out.data(), memory.all().data() + begin);
        ASSERT_LE(piece.out.size(), kPieceBytes);
        ASSERT_EQ(piece.out.size() % block, 0u);
        ASSERT_EQ(piece.needed_bytes, std::min(piece.out.size(), needed - begin));
        begin += piece.out.size();
      }
      EXPECT_EQ(begin, align_up(needed, block));
    }
  }
}

TEST(ReadTable, LinesKeepTheirOrderWhoeverLeaves) {
  const Files files = {{"f", ""}};
  const test::TestMemory memory(1);
  const auto file = test::memory_opener(files)("f", ReadMode::kDirect).take_value();
  ReadTable table;
  std::vector<QueuedRead*> reads;
  for (int i = 0; i < 5; ++i) {
    reads.push_back(&add_read(table, *file, memory.all(), {1}));
    table.enter_line(*reads.back());
  }
  for (const size_t leaving : {2u, 0u, 4u}) table.leave_line(*reads[leaving]);
  table.leave_line(*reads[2]);  // Again.
  table.enter_line(*reads[0]);
  for (const size_t expected : {1u, 3u, 0u}) {
    ASSERT_EQ(table.first(ReadPriority::kDemand), reads[expected]);
    table.leave_line(*reads[expected]);
  }
  EXPECT_EQ(table.first(ReadPriority::kDemand), nullptr);
  EXPECT_EQ(table.first(ReadPriority::kSpeculative), nullptr);
}

}  // namespace
}  // namespace headrace
