#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/session.h"
#include "io/alignment.h"
#include "support/kernel_counts.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
constexpr auto kNoProgress = [](size_t, size_t) { return true; };

/// Measuring again when the system had to fetch pages of this program.
constexpr int kAttemptsMax = 5;

int64_t major_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

/// What is read outside the queue and its headers: in whole blocks.
uint64_t small_files_bytes(const test::TempFolder& folder) {
  uint64_t bytes = 0;
  for (const char* name : {"config.json", "tiktoken.model", "tokenizer_config.json"}) {
    const auto file = open_file(folder.file(name), ReadMode::kDirect).take_value();
    bytes += align_up(file->size_bytes(), file->block_bytes());
  }
  return bytes;
}

uint64_t reported_bytes(const Statistics& statistics) {
  return statistics.bytes_read_trunk + statistics.bytes_read_experts + statistics.bytes_read_head +
         statistics.bytes_read_headers;
}

struct Setting {
  ReadBackendKind backend;
  EngineOptions::BudgetKind budget;
  bool is_k3;
};

class EngineReads : public testing::TestWithParam<Setting> {
 protected:
  /// Opens, answers, changes the budget; gives the statistics when nothing is on its way any more.
  static Result<Statistics> run(const std::string& folder) {
    EngineOptions options;
    options.budget_kind = GetParam().budget;
    options.budget_bytes = size_t{64} << 20;
    options.context_tokens = 64;
    options.thread_count = 1;
    options.reads.backend = GetParam().backend;
    const auto engine = TRY(Engine::open(options, EngineSources::folder(folder)));
    const auto session = TRY(engine->create_session());
    const std::vector<TokenId> prompt(20, 17);
    TRY(session->generate(prompt, {.tokens_max = 4}, kIgnorePiece, kNoProgress));
    TRY(engine->set_budget(engine->plan().budget_bytes + (size_t{1} << 20)));
    TRY(session->generate({}, {.tokens_max = 2}, kIgnorePiece, kNoProgress));
    TRY(engine->set_budget(engine->plan().budget_bytes));  // Dividing memory waits for what was read ahead.
    return session->statistics();
  }
};

// P7: a number that is printed was measured.
TEST_P(EngineReads, TheKernelCountsTheBytesThatStatisticsReport) {
  const test::TempFolder folder;
  const auto config = GetParam().is_k3 ? test::tiny_k3_config() : test::tiny_linear_config();
  folder.write(test::tiny_checkpoint(config));
  const auto warm = run(folder.path());  // Brings the pages of this program in.
  if (!warm && GetParam().backend == ReadBackendKind::kUring && warm.error().code == Code::kArgument) {
    GTEST_SKIP() << warm.error().message;
  }
  ASSERT_TRUE(warm) << warm.error().message;
  if (!warm.value().direct_io) GTEST_SKIP() << "the file system of " << folder.path() << " refuses direct reads";
  if (test::kernel_read_bytes() == 0) GTEST_SKIP() << "this kernel does not count what a process reads";
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const int64_t faults = major_faults();
    const uint64_t before = test::kernel_read_bytes();
    const Statistics statistics = run(folder.path()).value();
    const uint64_t kernel = test::kernel_read_bytes() - before;
    const bool is_disturbed = major_faults() != faults;
    if (is_disturbed && attempt + 1 < kAttemptsMax) continue;
    EXPECT_EQ(reported_bytes(statistics) + small_files_bytes(folder), kernel);
    EXPECT_EQ(statistics.io_backend, GetParam().backend == ReadBackendKind::kUring ? "io_uring" : "threads");
    EXPECT_GT(statistics.expert_misses, 0u);
    EXPECT_GT(statistics.drive_gb_s.value_or(0), 0);
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, EngineReads,
                         testing::Values(Setting{ReadBackendKind::kUring, EngineOptions::BudgetKind::kFloor, false},
                                         Setting{ReadBackendKind::kUring, EngineOptions::BudgetKind::kBytes, true},
                                         Setting{ReadBackendKind::kUring, EngineOptions::BudgetKind::kFloor, true},
                                         Setting{ReadBackendKind::kThreads, EngineOptions::BudgetKind::kFloor, false},
                                         Setting{ReadBackendKind::kThreads, EngineOptions::BudgetKind::kBytes, true},
                                         Setting{ReadBackendKind::kThreads, EngineOptions::BudgetKind::kFloor, true}),
                         [](const auto& instance) {
                           const Setting& setting = instance.param;
                           return std::string(setting.backend == ReadBackendKind::kUring ? "Uring" : "Threads") +
                                  (setting.budget == EngineOptions::BudgetKind::kFloor ? "Floor" : "Plenty") +
                                  (setting.is_k3 ? "K3" : "Linear");
                         });

/// The kernel ties transfers to the thread that issued them. What a thread read ahead for the next pass must survive
/// it.
TEST(EngineThreads, CallsMayComeFromOneThreadAfterAnother) {
  const test::TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_linear_config()));
  for (const ReadBackendKind backend : {ReadBackendKind::kAutomatic, ReadBackendKind::kThreads}) {
    EngineOptions options;
    options.budget_kind = EngineOptions::BudgetKind::kFloor;
    options.context_tokens = 64;
    options.thread_count = 1;
    options.reads.backend = backend;
    const auto engine = Engine::open(options, EngineSources::folder(folder.path())).take_value();
    const auto session = engine->create_session().take_value();
    const std::vector<TokenId> prompt(5, 17);
    const std::vector<TokenId> expected =
        session->generate(prompt, {.tokens_max = 20}, kIgnorePiece, kNoProgress).value().ids;
    ASSERT_TRUE(session->reset());
    std::vector<TokenId> ids;
    for (size_t call = 0; call < 20; ++call) {
      std::thread([&] {
        const auto answer = session->generate(call == 0 ? prompt : std::vector<TokenId>(), {.tokens_max = 1},
                                              kIgnorePiece, kNoProgress);
        ASSERT_TRUE(answer) << answer.error().message;
        ids.push_back(answer.value().ids.front());
      }).join();
      if (call % 4 == 3) {
        std::thread([&] { EXPECT_TRUE(engine->set_budget(engine->plan().budget_bytes + 100000)); }).join();
      }
    }
    EXPECT_EQ(ids, expected);
  }
}

TEST(EngineReadsBuffered, PagesOfTheCacheAreNoDriveSpeed) {
  const test::TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_linear_config()));
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kFloor;
  options.context_tokens = 64;
  options.thread_count = 1;
  options.direct_io = false;
  const auto engine = Engine::open(options, EngineSources::folder(folder.path())).take_value();
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(session->generate(std::vector<TokenId>{1, 2}, {.tokens_max = 3}, kIgnorePiece, kNoProgress));
  const Statistics statistics = session->statistics();
  EXPECT_FALSE(statistics.direct_io);
  EXPECT_FALSE(statistics.drive_gb_s.has_value());
}

}  // namespace
}  // namespace headrace
