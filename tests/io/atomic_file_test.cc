#include "io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/failing_writes.h"
#include "support/test_files.h"

namespace headrace {
namespace {

using test::g_calls;
using test::g_error;
using test::g_fail_at;
using test::kFailingCalls;

using test::plain_read;
using test::TempFolder;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

size_t file_count(const TempFolder& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

/// Writes `text` in two parts.
Status write_file(const std::string& path, std::string_view text, const WriteCalls& calls = kWriteCalls) {
  const auto file = TRY(AtomicFile::create(path, calls));
  TRY(file->write(bytes_of(text.substr(0, text.size() / 2))));
  TRY(file->write(bytes_of(text.substr(text.size() / 2))));
  return file->commit();
}

TEST(AtomicFile, IsThereWithAllItsBytesOnceItIsCommitted) {
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.file("a"), "some text"));
  EXPECT_EQ(plain_read(folder.file("a")), "some text");
  ASSERT_TRUE(write_file(folder.file("a"), "other"));
  EXPECT_EQ(plain_read(folder.file("a")), "other");
  ASSERT_TRUE(write_file(folder.file("empty"), ""));
  EXPECT_EQ(plain_read(folder.file("empty")), "");
  EXPECT_EQ(file_count(folder), 2u);
}

TEST(AtomicFile, LargeOnesArriveWhole) {
  const TempFolder folder;
  std::string text(3 * AtomicFile::kPartBytes + 12345, 'x');
  for (size_t i = 0; i < text.size(); i += 997) text[i] = static_cast<char>(i);
  ASSERT_TRUE(write_file(folder.file("a"), text));
  EXPECT_TRUE(plain_read(folder.file("a")) == text);
}

TEST(AtomicFile, WhatIsNotCommittedLeavesTheOldFileAndNothingElse) {
  const TempFolder folder;
  folder.write("a", "old");
  {
    const auto file = AtomicFile::create(folder.file("a")).take_value();
    ASSERT_TRUE(file->write(bytes_of("new")));
    EXPECT_EQ(plain_read(folder.file("a")), "old");
    EXPECT_EQ(file_count(folder), 2u);
  }
  EXPECT_EQ(plain_read(folder.file("a")), "old");
  EXPECT_EQ(file_count(folder), 1u);
}

TEST(AtomicFile, OnlyItsOwnerCanReadIt) {
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.file("a"), "private"));
  struct stat status = {};
  ASSERT_EQ(stat(folder.file("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(AtomicFile, FollowsALinkAndKeepsIt) {
  const TempFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder.file("link"));
  ASSERT_TRUE(write_file(folder.file("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(plain_read(folder.file("target")), "new");
}

TEST(AtomicFile, NeverTakesThePlaceOfAFolderOrADevice) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("folder"));
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.file("folder"), folder.file("pipe"), std::string("/dev/null")}) {
    const auto refused = AtomicFile::create(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::kArgument);
  }
  EXPECT_EQ(file_count(folder), 2u);
}

TEST(AtomicFile, AFolderThatIsNotThereIsAnErrorThatNamesThePath) {
  const TempFolder folder;
  EXPECT_EQ(AtomicFile::create("").error().code, Code::kArgument);
  for (const std::string& path : {folder.file("no/a"), folder.file("no/such/b")}) {
    const auto refused = AtomicFile::create(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kIo);
    EXPECT_NE(refused.error().message.find(path), std::string::npos) << refused.error().message;
  }
}

// ---- Failing calls ----

TEST(AtomicFile, WhicheverCallFailsTheOldFileOrTheNewOneIsThereAndNothingElse) {
  constexpr int kCalls = 6;  // Create, two writes, sync, rename, sync of the folder.
  for (g_fail_at = 0; g_fail_at <= kCalls; ++g_fail_at) {
    for (const int reason : {ENOSPC, EACCES, EIO}) {
      g_error = reason;
      g_calls = 0;
      const TempFolder folder;
      folder.write("a", "old");
      const Status status = write_file(folder.file("a"), "a new text", kFailingCalls);
      EXPECT_EQ(file_count(folder), 1u);
      EXPECT_EQ(bool(status), g_fail_at == kCalls);
      if (!status) {
        EXPECT_EQ(status.error().code, Code::kIo);
      }
      EXPECT_EQ(plain_read(folder.file("a")), g_fail_at < kCalls - 1 ? "old" : "a new text");
    }
  }
}

int g_interruptions = 0;

TEST(AtomicFile, InterruptionsAndShortWritesAreGoneOnFrom) {
  static const WriteCalls kShortCalls = {
      .create = kWriteCalls.create,
      .write = [](int fd, const void* bytes, size_t size) -> ssize_t {
        errno = EINTR;
        return ++g_interruptions % 2 == 0 ? -1 : ::write(fd, bytes, std::min<size_t>(size, 3));
      },
      .sync = kWriteCalls.sync,
      .rename = kWriteCalls.rename,
  };
  const TempFolder folder;
  ASSERT_TRUE(write_file(folder.file("a"), "a text that takes many writes", kShortCalls));
  EXPECT_EQ(plain_read(folder.file("a")), "a text that takes many writes");
}

TEST(AtomicFile, EndlessInterruptionsEnd) {
  static const WriteCalls kDeafCalls = {
      .create = kWriteCalls.create,
      .write = [](int, const void*, size_t) -> ssize_t {
        errno = EINTR;
        return -1;
      },
      .sync = kWriteCalls.sync,
      .rename = kWriteCalls.rename,
  };
  const TempFolder folder;
  EXPECT_EQ(write_file(folder.file("a"), "text", kDeafCalls).error().code, Code::kIo);
  EXPECT_EQ(file_count(folder), 0u);
}

}  // namespace
}  // namespace headrace
