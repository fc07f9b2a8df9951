#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "io/alignment.h"
#include "io/file.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;

std::string numbered_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + (i >> 8));
  return bytes;
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A file of memory with faults, and aligned memory to read it into.
struct Fixture {
  explicit Fixture(size_t file_bytes, size_t block_bytes)
      : files{{"f", numbered_bytes(file_bytes)}}, block(block_bytes) {
    file = test::memory_opener(files, block, &plan)("f", ReadMode::kDirect).take_value();
    memory = AlignedMemory::allocate(budget, 64 * 1024, "test").take_value();
  }
  std::string expected(uint64_t offset, size_t size) const { return files.at("f").substr(offset, size); }

  Files files;
  size_t block;
  FaultPlan plan;
  Budget budget{1 << 20};
  std::unique_ptr<ReadableFile> file;
  AlignedMemory memory;
};

TEST(ReadExactly, ContinuesAfterShortReadsAtAnyBlock) {
  for (const size_t block : {1u, 512u, 4096u}) {
    for (uint64_t short_at = 0; short_at < 4; ++short_at) {
      Fixture f(40'000, block);
      f.plan.short_at = short_at;
      f.plan.bytes_per_read_max = 4096;
      const auto out = f.memory.bytes().first(16 * 1024);
      ASSERT_TRUE(read_exactly(*f.file, 8192, out)) << block << " " << short_at;
      EXPECT_EQ(as_text(out), f.expected(8192, out.size())) << block << " " << short_at;
    }
  }
}

TEST(ReadExactly, SurvivesReadsOfOneByteEach) {
  Fixture f(1000, 1);
  f.plan.bytes_per_read_max = 1;
  const auto out = f.memory.bytes().first(300);
  ASSERT_TRUE(read_exactly(*f.file, 7, out));
  EXPECT_EQ(as_text(out), f.expected(7, 300));
  EXPECT_EQ(f.plan.read_count, 300u);
}

TEST(ReadExactly, NamesTheFileThatEndsEarly) {
  Fixture f(1000, 1);
  const Status status = read_exactly(*f.file, 900, f.memory.bytes().first(110));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFormat);
  EXPECT_EQ(status.error().message, "read f @900, 110 bytes: file ends 10 bytes early");
}

TEST(ReadExactly, OffsetsFarPastTheEndDoNotWrap) {
  Fixture f(1000, 1);
  for (const uint64_t offset : {uint64_t{1001}, UINT64_MAX - 3, UINT64_MAX}) {
    const Status status = read_exactly(*f.file, offset, f.memory.bytes().first(10));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kFormat);
    EXPECT_NE(status.error().message.find("10 bytes early"), std::string::npos) << status.error().message;
  }
}

TEST(ReadExactly, ReturnsTheErrorOfEveryFailingRead) {
  for (uint64_t fail_at = 0; fail_at < 4; ++fail_at) {
    Fixture f(40'000, 512);
    f.plan.fail_at = fail_at;
    f.plan.bytes_per_read_max = 4096;
    const Status status = read_exactly(*f.file, 0, f.memory.bytes().first(16 * 1024));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kIo);
    EXPECT_NE(status.error().message.find("read f @"), std::string::npos);
  }
}

TEST(ReadAtLeast, TakesTheBlockThatTheFileEndsIn) {
  for (const size_t block : {512u, 4096u}) {
    Fixture f(10'100, block);
    const uint64_t offset = align_down(10'000, block);
    const size_t needed = 10'100 - static_cast<size_t>(offset);
    const auto out = f.memory.bytes().first(static_cast<size_t>(align_up(needed, block)));
    const Result<ReadOutcome> outcome = read_at_least(*f.file, offset, out, needed);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome.value().available_bytes, needed);
    // A drive delivers whole blocks.
    EXPECT_EQ(outcome.value().transferred_bytes, out.size());
    EXPECT_EQ(as_text(out.first(needed)), f.expected(offset, needed));
  }
}

TEST(ReadAtLeast, GivesUpOnADriveThatBringsNothingNew) {
  /// Every read stops inside its first block.
  class StuckFile final : public ReadableFile {
   public:
    const std::string& path() const override { return path_; }
    uint64_t size_bytes() const override { return 1 << 20; }
    size_t block_bytes() const override { return 512; }
    bool is_direct() const override { return true; }
    Result<size_t> read_some(uint64_t, std::span<std::byte>) override { return size_t{100}; }

   private:
    std::string path_ = "stuck";
  };
  StuckFile file;
  alignas(512) std::byte memory[1024];
  const Result<ReadOutcome> outcome = read_at_least(file, 0, memory, 1024);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kIo);
  EXPECT_NE(outcome.error().message.find("nothing new"), std::string::npos);
}

TEST(ReadTextFile, ReadsFilesOfAnyLengthThroughAnyBlock) {
  for (const size_t block : {1u, 512u, 4096u}) {
    for (const size_t size : {0u, 1u, 511u, 512u, 513u, 65'535u, 65'536u, 65'537u, 200'001u}) {
      Fixture f(size, block);
      FaultPlan plan;
      plan.bytes_per_read_max = 10'000;
      const Result<std::string> text = read_text_file(test::memory_opener(f.files, block, &plan), "f", 1 << 20);
      ASSERT_TRUE(text);
      EXPECT_EQ(text.value(), f.expected(0, size)) << block << " " << size;
    }
  }
}

TEST(ReadTextFile, RefusesMoreThanItsLimitBeforeReading) {
  Fixture f(1001, 1);
  FaultPlan plan;
  const Result<std::string> text = read_text_file(test::memory_opener(f.files, 1, &plan), "f", 1000);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kFormat);
  EXPECT_EQ(plan.read_count, 0u);
}

TEST(ReadTextFile, ReturnsTheErrorOfEveryFailingRead) {
  Fixture f(200'001, 512);
  for (uint64_t fail_at = 0; fail_at < 4; ++fail_at) {
    FaultPlan plan;
    plan.fail_at = fail_at;
    const Result<std::string> text = read_text_file(test::memory_opener(f.files, 512, &plan), "f", 1 << 20);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, Code::kIo);
  }
  const Result<std::string> missing = read_text_file(test::memory_opener(f.files), "g", 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kIo);
}

}  // namespace
}  // namespace headrace
