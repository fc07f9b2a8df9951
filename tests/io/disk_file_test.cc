#include "io/disk_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/buffer.h"
#include "io/alignment.h"
#include "support/kernel_counts.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::cached_pages;
using test::evict;
using test::kernel_read_bytes;
using test::TempFolder;

constexpr size_t kFileBytes = 300'123;

std::string numbered_bytes() {
  std::string bytes(kFileBytes, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + (i >> 7));
  return bytes;
}

/// A file on disk, and memory to read it into.
class DiskFileTest : public testing::Test {
 protected:
  DiskFileTest() {
    folder_.write("data", numbered_bytes());
    memory_ = AlignedMemory::allocate(budget_, 512 * 1024, "test").take_value();
  }
  std::string path() const { return folder_.file("data"); }

  /// Reads the whole file in pieces of `piece_bytes` and compares it with a plain read.
  void expect_whole_file(ReadableFile& file, size_t piece_bytes) {
    const std::string expected = test::plain_read(path());
    for (uint64_t offset = 0; offset < kFileBytes; offset += piece_bytes) {
      const size_t needed = std::min<size_t>(piece_bytes, kFileBytes - offset);
      const auto out = memory_.bytes().first(static_cast<size_t>(align_up(needed, file.block_bytes())));
      ASSERT_TRUE(read_at_least(file, offset, out, needed));
      ASSERT_EQ(std::memcmp(out.data(), expected.data() + offset, needed), 0) << "at " << offset;
    }
  }

  TempFolder folder_;
  Budget budget_{1 << 20};
  AlignedMemory memory_;
};

TEST_F(DiskFileTest, ReadsBufferedAtAnyOffset) {
  const auto file = open_file(path(), ReadMode::kBuffered).take_value();
  EXPECT_EQ(file->path(), path());
  EXPECT_EQ(file->size_bytes(), kFileBytes);
  EXPECT_EQ(file->block_bytes(), 1u);
  EXPECT_FALSE(file->is_direct());
  expect_whole_file(*file, 9'999);
}

TEST_F(DiskFileTest, ReadsDirectlyInItsBlocks) {
  const auto file = open_file(path(), ReadMode::kDirect).take_value();
  if (!file->is_direct()) GTEST_SKIP() << "the file system of " << path() << " refuses direct reads";
  EXPECT_GE(file->block_bytes(), 512u);
  expect_whole_file(*file, 65'536);
}

/// Calls that tests put in the kernel's place. Plain functions, so their state is global to this file.
struct Script {
  int interruptions = 0;      ///< The next reads that fail with EINTR.
  int failures = 0;           ///< The next reads that fail with EIO.
  bool refuses_flag = false;  ///< O_DIRECT itself is refused.
  bool is_direct = false;     ///< What the flag says.
  size_t block_bytes = 0;     ///< Direct reads in smaller units are refused with EINVAL; 0: all are taken.
  bool names_block = false;   ///< The kernel tells block_bytes; 0 then says that there are no direct reads.
  int reads = 0;
  int drops = 0;
};
Script g_script;

ssize_t scripted_pread(int fd, void* out, size_t size, off_t offset) {
  ++g_script.reads;
  if (g_script.interruptions > 0 && g_script.interruptions--) {
    errno = EINTR;
    return -1;
  }
  if (g_script.failures > 0 && g_script.failures--) {
    errno = EIO;
    return -1;
  }
  const size_t block = g_script.block_bytes;
  const bool aligned = block == 0 || (size % block == 0 && static_cast<size_t>(offset) % block == 0 &&
                                      reinterpret_cast<uintptr_t>(out) % block == 0);
  if (g_script.is_direct && !aligned) {
    errno = EINVAL;
    return -1;
  }
  return ::pread(fd, out, size, offset);
}

const SystemCalls kScripted = {
    .open = [](const char* path, int flags) { return ::open(path, flags); },
    .pread = scripted_pread,
    .set_direct =
        [](int, bool direct) {
          if (direct && g_script.refuses_flag) return -1;
          g_script.is_direct = direct;
          return 0;
        },
    .direct_block_bytes = [](int) -> DirectBlockBytes {
      if (!g_script.names_block) return std::nullopt;
      return g_script.block_bytes;
    },
    .drop_pages =
        [](int, off_t, off_t) {
          ++g_script.drops;
          return 0;
        },
};

TEST_F(DiskFileTest, TakesTheBlockThatTheKernelNames) {
  g_script = {.block_bytes = 4096, .names_block = true};
  const auto file = DiskFile::open(path(), ReadMode::kDirect, kScripted).take_value();
  EXPECT_EQ(file->block_bytes(), 4096u);
  EXPECT_TRUE(file->is_direct());
  EXPECT_EQ(g_script.reads, 0) << "a probing read would count as bytes from the drive";
  expect_whole_file(*file, 65'536);
}

TEST_F(DiskFileTest, ProbesTheBlockWhereTheKernelIsSilent) {
  for (const size_t block : {512u, 4096u}) {
    g_script = {.block_bytes = block};
    const auto file = DiskFile::open(path(), ReadMode::kDirect, kScripted).take_value();
    EXPECT_EQ(file->block_bytes(), block);
    EXPECT_TRUE(file->is_direct());
    expect_whole_file(*file, 65'536);
    EXPECT_EQ(g_script.drops, 0);
  }
}

TEST_F(DiskFileTest, ReadsBufferedAndDropsThePagesWhereDirectReadsAreRefused) {
  const Script refusals[] = {
      {.refuses_flag = true},                         // At opening.
      {.block_bytes = 0, .names_block = true},        // By the kernel's word.
      {.block_bytes = 3000, .names_block = true},     // A block that is no power of two.
      {.block_bytes = 1 << 20, .names_block = true},  // A block larger than ours.
      {.block_bytes = 65'536},                        // At both probes.
  };
  for (const Script& refusal : refusals) {
    g_script = refusal;
    const auto file = DiskFile::open(path(), ReadMode::kDirect, kScripted).take_value();
    EXPECT_FALSE(file->is_direct());
    EXPECT_EQ(file->block_bytes(), 1u);
    EXPECT_FALSE(g_script.is_direct) << "the flag must be off again";
    g_script.reads = g_script.drops = 0;
    expect_whole_file(*file, 10'001);
    EXPECT_EQ(g_script.drops, g_script.reads);
  }
}

TEST_F(DiskFileTest, FallsBackWhenATransferIsRefused) {
  g_script = {.block_bytes = 512, .names_block = true};
  const auto file = DiskFile::open(path(), ReadMode::kDirect, kScripted).take_value();
  g_script.block_bytes = 65'536;  // The file moved to a stranger drive.
  expect_whole_file(*file, 512 * 77);
  EXPECT_FALSE(file->is_direct());
  EXPECT_EQ(file->block_bytes(), 512u) << "callers have placed their memory by it";
  EXPECT_GT(g_script.drops, 0);
}

TEST_F(DiskFileTest, RetriesInterruptedReads) {
  g_script = {.interruptions = 999};
  const auto file = DiskFile::open(path(), ReadMode::kBuffered, kScripted).take_value();
  ASSERT_TRUE(read_exactly(*file, 5, memory_.bytes().first(100)));
  EXPECT_EQ(g_script.reads, 1000);
  g_script = {.interruptions = 1'000'000};
  const Status status = read_exactly(*file, 5, memory_.bytes().first(100));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(g_script.reads, 1000) << "a storm of signals must end";
}

TEST_F(DiskFileTest, ReportsPathOffsetAndReasonOfAFailure) {
  g_script = {.failures = 1};
  const auto file = DiskFile::open(path(), ReadMode::kBuffered, kScripted).take_value();
  const Status status = read_exactly(*file, 4321, memory_.bytes().first(100));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(status.error().message, "read " + path() + " @4321, 100 bytes: Input/output error");
  EXPECT_TRUE(read_exactly(*file, 4321, memory_.bytes().first(100))) << "the next read is a new attempt";
}

TEST_F(DiskFileTest, FindsAFileThatWasCutAfterOpening) {
  for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kDirect}) {
    folder_.write("data", numbered_bytes());
    const auto file = open_file(path(), mode).take_value();
    ASSERT_EQ(truncate(path().c_str(), 100'000), 0);
    const Status status = read_exactly(*file, 65'536, memory_.bytes().first(65'536));
    EXPECT_FALSE(status);
  }
}

TEST_F(DiskFileTest, RefusesEverythingThatIsNotARegularFile) {
  ASSERT_EQ(mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder_.file("fifo"), folder_.path(), std::string("/dev/zero")}) {
    for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kDirect}) {
      const auto file = open_file(path, mode);
      ASSERT_FALSE(file) << path;
      EXPECT_EQ(file.error().code, Code::kIo);
      EXPECT_NE(file.error().message.find(path + ": not a regular file"), std::string::npos) << file.error().message;
    }
  }
}

TEST_F(DiskFileTest, NamesTheFileThatCannotBeOpened) {
  const auto file = open_file(folder_.file("absent"), ReadMode::kDirect);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kIo);
  EXPECT_EQ(file.error().message, "open " + folder_.file("absent") + ": No such file or directory");
  const auto odd = open_file(std::string("a\0b", 3), ReadMode::kDirect);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::kArgument);
}

TEST_F(DiskFileTest, FallsBackOnAFileSystemThatRefusesDirectReads) {
  // The kernel's own files take no O_DIRECT; their contents need no drive.
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (access(path.c_str(), R_OK) != 0) GTEST_SKIP() << path << " is not there";
  const auto file = open_file(path, ReadMode::kDirect);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file.value()->is_direct());
  EXPECT_EQ(file.value()->block_bytes(), 1u);
  const Result<size_t> size = file.value()->read_some(0, memory_.bytes().first(64));
  ASSERT_TRUE(size);
  EXPECT_GT(size.value(), 0u);
}

TEST_F(DiskFileTest, LeavesNoPagesInThePageCache) {
  evict(path());
  if (cached_pages(path()) > 0) GTEST_SKIP() << "the file system of " << path() << " lives in the page cache";
  {
    const auto file = open_file(path(), ReadMode::kDirect).take_value();
    if (!file->is_direct()) GTEST_SKIP() << "the file system of " << path() << " refuses direct reads";
    expect_whole_file(*file, 65'536);
    // The comparison itself read the file plainly, and filled the cache.
    evict(path());
    const auto again = memory_.bytes().first(65'536);
    ASSERT_TRUE(read_exactly(*file, 0, again));
    EXPECT_EQ(cached_pages(path()), 0u);
  }
  SystemCalls no_direct = kSystemCalls;
  no_direct.direct_block_bytes = [](int) -> DirectBlockBytes { return size_t{0}; };
  const auto file = DiskFile::open(path(), ReadMode::kDirect, no_direct).take_value();
  ASSERT_FALSE(file->is_direct());
  for (uint64_t offset = 0; offset + 65'536 <= kFileBytes; offset += 65'536) {
    ASSERT_TRUE(read_exactly(*file, offset, memory_.bytes().first(65'536)));
  }
  // Read-ahead may leave pages that nobody has asked for yet; those behind the reads are gone.
  EXPECT_LT(cached_pages(path()), kFileBytes / 4096 / 2);
}

TEST_F(DiskFileTest, CountsTheBytesThatTheKernelCounts) {
  evict(path());
  const auto file = open_file(path(), ReadMode::kDirect).take_value();
  if (!file->is_direct()) GTEST_SKIP() << "the file system of " << path() << " refuses direct reads";
  const uint64_t before = kernel_read_bytes();
  uint64_t counted = 0;
  const size_t block = file->block_bytes();
  for (const ByteRange range : {ByteRange{0, 10}, ByteRange{100'000, 70'000}, ByteRange{kFileBytes - 5, 5}}) {
    const ByteRange blocks = widen(range, block);
    const auto out = memory_.bytes().first(static_cast<size_t>(blocks.size));
    const auto outcome = read_at_least(*file, blocks.offset, out, static_cast<size_t>(range.end() - blocks.offset));
    ASSERT_TRUE(outcome);
    counted += outcome.value().transferred_bytes;
  }
  const uint64_t kernel = kernel_read_bytes() - before;
  if (kernel == 0) GTEST_SKIP() << "the kernel does not count reads of this file system";
  EXPECT_EQ(counted, kernel);
}

}  // namespace
}  // namespace headrace
