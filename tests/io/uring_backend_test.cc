#include "io/uring_backend.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "io/queue_files.h"

namespace headrace {
namespace {

using test::holds;
using test::numbered_bytes;
using test::part_of;
using test::TempFolder;
using test::TestMemory;

constexpr size_t kFileBytes = 3'000'123;

/// Calls that tests put in liburing's place. Plain functions, so their state is global to this file.
struct Script {
  int init_result = 0;           ///< Below 0: refused for this reason; so are the next three.
  unsigned hidden_features = 0;  ///< Of the kernel.
  int file_table_result = 0;
  int buffer_table_result = 0;
  int buffer_result = 0;
  int submit_result = 0;
  int submit_refusals = 0;  ///< The next submissions that are refused with EAGAIN.
  int buffer_updates = 0;
  int file_updates = 0;
};
Script g_script;

const UringCalls kScripted = {
    .init =
        [](unsigned entries, io_uring* ring, io_uring_params* params) {
          if (g_script.init_result < 0) return g_script.init_result;
          const int result = kUringCalls.init(entries, ring, params);
          params->features &= ~g_script.hidden_features;
          return result;
        },
    .submit =
        [](io_uring* ring) {
          if (g_script.submit_result < 0) return g_script.submit_result;
          if (g_script.submit_refusals > 0 && g_script.submit_refusals--) return -EAGAIN;
          return kUringCalls.submit(ring);
        },
    .register_files_sparse =
        [](io_uring* ring, unsigned count) {
          return g_script.file_table_result < 0 ? g_script.file_table_result
                                                : kUringCalls.register_files_sparse(ring, count);
        },
    .update_files =
        [](io_uring* ring, unsigned first, const int* descriptors, unsigned count) {
          ++g_script.file_updates;
          return kUringCalls.update_files(ring, first, descriptors, count);
        },
    .register_buffers_sparse =
        [](io_uring* ring, unsigned count) {
          return g_script.buffer_table_result < 0 ? g_script.buffer_table_result
                                                  : kUringCalls.register_buffers_sparse(ring, count);
        },
    .update_buffers =
        [](io_uring* ring, unsigned first, const iovec* buffers, const __u64* tags, unsigned count) {
          ++g_script.buffer_updates;
          return g_script.buffer_result < 0 ? g_script.buffer_result
                                            : kUringCalls.update_buffers(ring, first, buffers, tags, count);
        },
};

class UringBackendTest : public testing::Test {
 protected:
  UringBackendTest() : contents_(numbered_bytes(kFileBytes)) {
    g_script = {};
    folder_.write("data", contents_);
    file_ = open_file(folder_.file("data"), ReadMode::kDirect).take_value();
  }
  void SetUp() override {
    const auto backend = UringBackend::create(1, log_);
    if (!backend) GTEST_SKIP() << backend.error().message;
  }

  /// A queue over scripted calls; `backend_` looks at its back end.
  std::unique_ptr<ReadQueue> make_queue() {
    auto backend = UringBackend::create(3, log_, kScripted).take_value();
    backend_ = static_cast<UringBackend*>(backend.get());
    const ReadQueueOptions options{.depth = 3, .piece_bytes = size_t{256} << 10};
    return ReadQueue::create_over(std::move(backend), options, budget_).take_value();
  }
  /// Reads most of the file, and compares.
  void expect_reads(ReadQueue& queue) {
    memory_.fill(std::byte{0});
    const ReadPart part = part_of(*file_, {4567, kFileBytes - 10'000}, memory_.all());
    const ReadId id = queue.submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk);
    const Result<ReadResult> result = queue.wait(id);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(holds(part, contents_));
  }
  size_t lines_about(const std::string& text) const {
    return static_cast<size_t>(
        std::ranges::count_if(lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

  const std::string contents_;
  TempFolder folder_;
  Budget budget_{size_t{32} << 20};
  TestMemory memory_{4};
  std::vector<std::string> lines_;
  Log log_{LogLevel::kInfo, [this](LogLevel, std::string_view line) { lines_.emplace_back(line); }};
  std::unique_ptr<ReadableFile> file_;
  UringBackend* backend_ = nullptr;
};

TEST_F(UringBackendTest, ARefusalIsUnsupportedWithTheSystemsReason) {
  g_script = {.init_result = -EPERM};
  const auto backend = make_read_backend(ReadBackendKind::kUring, 2, log_, kScripted);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, Code::kUnsupported);
  EXPECT_EQ(backend.error().message, "io_uring: Operation not permitted");
}

TEST_F(UringBackendTest, AKernelWithoutPlainReadsIsTooOld) {
  g_script = {.hidden_features = IORING_FEAT_RW_CUR_POS};
  const auto backend = make_read_backend(ReadBackendKind::kUring, 2, log_, kScripted);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, Code::kUnsupported);
}

TEST_F(UringBackendTest, ThreadsReadWhereItIsRefused) {
  g_script = {.init_result = -ENOSYS};
  auto backend = make_read_backend(ReadBackendKind::kAutomatic, 2, log_, kScripted).take_value();
  EXPECT_STREQ(backend->name(), "threads");
  EXPECT_EQ(lines_about("Function not implemented"), 1u);
  const auto queue = ReadQueue::create_over(std::move(backend), {.depth = 2}, budget_).take_value();
  expect_reads(*queue);
}

TEST_F(UringBackendTest, IsTakenWhereItWorks) {
  EXPECT_STREQ(make_read_backend(ReadBackendKind::kAutomatic, 2, log_, kScripted).value()->name(), "io_uring");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(UringBackendTest, RegistersAFileOnce) {
  const auto queue = make_queue();
  for (int i = 0; i < 5; ++i) expect_reads(*queue);
  EXPECT_EQ(g_script.file_updates, 1);
}

TEST_F(UringBackendTest, ReadsWithoutATableOfFiles) {
  g_script = {.file_table_result = -EINVAL};
  const auto queue = make_queue();
  expect_reads(*queue);
  EXPECT_EQ(g_script.file_updates, 0);
}

TEST_F(UringBackendTest, RegistersMemoryInChunksAndForgetsThem) {
  const auto queue = make_queue();
  queue->register_memory(memory_.all().first(size_t{3} << 20));
  queue->register_memory(memory_.from(3));
  EXPECT_EQ(backend_->registered_chunk_count(), 2u);
  expect_reads(*queue);
  queue->unregister_memory(memory_.all());
  EXPECT_EQ(backend_->registered_chunk_count(), 0u);
  expect_reads(*queue);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(UringBackendTest, LargeMemoryIsRegisteredInSeveralChunks) {
  // Nothing is registered in truth: pinning so much takes its time.
  UringCalls calls = kScripted;
  calls.update_buffers = [](io_uring*, unsigned, const iovec* buffers, const __u64*, unsigned) {
    EXPECT_LE(buffers->iov_len, ReadQueue::kRegisteredChunkBytesMax);
    return 1;
  };
  const auto backend = UringBackend::create(1, log_, calls).take_value();
  const std::span<std::byte> large(memory_.all().data(), ReadQueue::kRegisteredChunkBytesMax * 2 + 4096);
  backend->register_memory(large);
  EXPECT_EQ(static_cast<UringBackend*>(backend.get())->registered_chunk_count(), 3u);
  backend->unregister_memory(large.first(ReadQueue::kRegisteredChunkBytesMax));
  EXPECT_EQ(static_cast<UringBackend*>(backend.get())->registered_chunk_count(), 2u);
}

TEST_F(UringBackendTest, SaysOnceThatMemoryIsNotRegisteredAndReadsWithout) {
  const Script refusals[] = {{.buffer_result = -ENOMEM}, {.buffer_table_result = -EINVAL}};
  for (const Script& refusal : refusals) {
    g_script = refusal;
    lines_.clear();
    const auto queue = make_queue();
    for (size_t i = 0; i < 4; ++i) queue->register_memory(memory_.from(i).first(size_t{1} << 20));
    EXPECT_EQ(backend_->registered_chunk_count(), 0u);
    EXPECT_EQ(lines_about("registered"), 1u);
    expect_reads(*queue);
    queue->unregister_memory(memory_.all());
  }
}

TEST_F(UringBackendTest, AFullTableOfChunksLeavesTheRestUnregistered) {
  UringCalls calls = kScripted;
  calls.update_buffers = [](io_uring*, unsigned, const iovec*, const __u64*, unsigned) { return 1; };
  const auto backend = UringBackend::create(1, log_, calls).take_value();
  for (size_t i = 0; i < 1100; ++i) backend->register_memory(memory_.all().subspan(i * 512, 512));
  EXPECT_EQ(static_cast<UringBackend*>(backend.get())->registered_chunk_count(), 1024u);
}

/// Leaves this process no right to lock more memory than `bytes`.
bool limit_locked_memory(size_t bytes) {
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  data[0].effective &= ~(1U << CAP_IPC_LOCK);
  data[0].permitted &= ~(1U << CAP_IPC_LOCK);
  return syscall(SYS_capset, &header, data) == 0;
}

TEST_F(UringBackendTest, ReadsToUnregisteredMemoryWhereLittleMayBeLocked) {
  const auto read_without = [&] {
    if (!limit_locked_memory(size_t{256} << 10)) std::_Exit(2);
    const auto queue = make_queue();
    queue->register_memory(memory_.all());
    if (backend_->registered_chunk_count() > 0 || lines_about("Cannot allocate memory") != 1) std::_Exit(3);
    expect_reads(*queue);
    std::_Exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(read_without(), testing::ExitedWithCode(0), "");
}

TEST_F(UringBackendTest, ReadsBySomeBackEndWhereNothingMayBeLocked) {
  // Newer kernels count the ring itself.
  const auto read_somehow = [&] {
    if (!limit_locked_memory(0)) std::_Exit(2);
    const auto queue = ReadQueue::create({}, budget_, log_);
    if (!queue) std::_Exit(3);
    queue.value()->register_memory(memory_.all());
    expect_reads(*queue.value());
    std::_Exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(read_somehow(), testing::ExitedWithCode(0), "");
}

TEST_F(UringBackendTest, TriesAgainWhenTheKernelIsShortOfMemory) {
  const auto queue = make_queue();
  g_script.submit_refusals = 50;
  expect_reads(*queue);
  EXPECT_EQ(g_script.submit_refusals, 0);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(UringBackendTest, ReadsByItselfWhenTheKernelTakesNoMore) {
  const auto queue = make_queue();
  expect_reads(*queue);
  const ReadPart part = part_of(*file_, {0, 1 << 20}, memory_.all());
  const ReadId in_flight = queue->submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk);
  g_script.submit_result = -EBUSY;
  ASSERT_TRUE(queue->wait(in_flight)) << "some of it the kernel had taken, some it had not";
  EXPECT_TRUE(holds(part, contents_));
  for (int i = 0; i < 3; ++i) expect_reads(*queue);
  EXPECT_EQ(lines_about("takes no more reads"), 1u);
}

TEST_F(UringBackendTest, ReportsPathOffsetAndReasonOfAFailure) {
  /// The number of its descriptor names no file.
  class Broken final : public ReadableFile {
   public:
    explicit Broken(ReadableFile& inner) : inner_(inner) {}
    const std::string& path() const override { return inner_.path(); }
    uint64_t size_bytes() const override { return inner_.size_bytes(); }
    size_t block_bytes() const override { return 512; }
    bool is_direct() const override { return false; }
    Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
      return inner_.read_some(offset, out);
    }
    std::optional<FileHandle> handle() const override { return FileHandle{12'345, 1'000'000}; }
    Result<size_t> finish_read(uint64_t offset, std::span<std::byte> out, int64_t result) override {
      return inner_.finish_read(offset, out, result);
    }

   private:
    ReadableFile& inner_;
  };
  Broken file(*file_);
  const auto queue = make_queue();
  const ReadPart part{&file, 4096, memory_.all().first(512), 512};
  const Result<ReadResult> result = queue->wait(queue->submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kIo);
  EXPECT_EQ(result.error().message, "read " + file_->path() + " @4096, 512 bytes: Bad file descriptor");
}

}  // namespace
}  // namespace headrace
