#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/session.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

/// A small model on disk: few enough reads that each of them can fail once.
class EngineFaults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder();
    folder_->write(test::tiny_checkpoint(test::tiny_linear_config()));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  /// Opens the model behind the faults of `plan` and generates three tokens.
  static Result<std::vector<TokenId>> run(test::FaultPlan& plan) {
    EngineOptions options;
    options.budget_kind = EngineOptions::BudgetKind::kBytes;
    options.budget_bytes = size_t{1} << 30;
    options.thread_count = 1;
    options.prefill_chunk_tokens = 4;
    const auto engine =
        TRY(Engine::open(options, EngineSources::folder(folder_->path(), test::faulty_opener(open_file, plan))));
    const auto session = TRY(engine->create_session());
    const std::vector<TokenId> prompt = {0, 17, 255, 301, 42};
    const auto ignore = [](const AnswerPiece&) { return true; };
    const auto progress = [](size_t, size_t) { return true; };
    return TRY(session->generate(prompt, {.tokens_max = 3}, ignore, progress)).ids;
  }

  static test::TempFolder* folder_;
};

test::TempFolder* EngineFaults::folder_ = nullptr;

// Nothing may leak on the way out: the budget checks that when it is destroyed, the sanitizers the rest.
TEST_F(EngineFaults, AnyReadThatFailsEndsTheRunWithAReadError) {
  test::FaultPlan clean;
  ASSERT_TRUE(run(clean));
  const uint64_t reads = clean.read_count;
  ASSERT_GT(reads, 20u);
  for (uint64_t n = 0; n < reads; ++n) {
    test::FaultPlan plan;
    plan.fail_at = n;
    const auto result = run(plan);
    ASSERT_FALSE(result) << "read " << n << " of " << reads;
    ASSERT_EQ(result.error().code, Code::kIo) << result.error().message;
  }
}

TEST_F(EngineFaults, AnyFileThatCannotBeOpenedEndsTheRunWithAReadError) {
  test::FaultPlan clean;
  ASSERT_TRUE(run(clean));
  const uint64_t opens = clean.open_count;
  ASSERT_GT(opens, 3u);
  for (uint64_t n = 0; n < opens; ++n) {
    test::FaultPlan plan;
    plan.fail_open_at = n;
    const auto result = run(plan);
    ASSERT_FALSE(result) << "opening " << n << " of " << opens;
    ASSERT_EQ(result.error().code, Code::kIo) << result.error().message;
  }
}

TEST_F(EngineFaults, ShortReadsChangeNothing) {
  test::FaultPlan clean;
  const auto expected = run(clean).value();
  for (uint64_t n = 0; n < clean.read_count; n += 7) {
    test::FaultPlan plan;
    plan.short_at = n;
    ASSERT_EQ(run(plan).value(), expected) << "read " << n;
  }
}

/// Opens with a budget; the floor when the kind is kFloor.
Result<size_t> open_with(const std::string& folder, EngineOptions::BudgetKind kind, size_t bytes) {
  EngineOptions options;
  options.budget_kind = kind;
  options.budget_bytes = bytes;
  options.context_tokens = 64;
  options.thread_count = 2;
  const auto engine = TRY(Engine::open(options, EngineSources::folder(folder)));
  const auto session = TRY(engine->create_session());
  const std::vector<TokenId> prompt = {0, 17, 255, 301, 42};
  const auto ignore = [](const AnswerPiece&) { return true; };
  const auto progress = [](size_t, size_t) { return true; };
  TRY(session->generate(prompt, {.tokens_max = 3}, ignore, progress));
  return engine->plan().budget_bytes;
}

TEST(EngineFloor, EveryBudgetBelowTheFloorIsRefusedWithTheFloorAndTheFloorRuns) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    const test::TempFolder folder;
    folder.write(test::tiny_checkpoint(config));
    const auto floor = open_with(folder.path(), EngineOptions::BudgetKind::kFloor, 0);
    ASSERT_TRUE(floor) << floor.error().message;
    ASSERT_GT(floor.value(), kProcessBytes);
    const size_t step = (floor.value() - kProcessBytes) / 17;
    // Downwards from one byte less: every reservation of the way up fails once.
    for (size_t bytes = floor.value() - 1; bytes > kProcessBytes - step; bytes -= step) {
      const auto refused = open_with(folder.path(), EngineOptions::BudgetKind::kBytes, bytes);
      ASSERT_FALSE(refused) << bytes;
      ASSERT_EQ(refused.error().code, Code::kBudget);
      ASSERT_NE(refused.error().message.find(std::to_string(floor.value())), std::string::npos)
          << bytes << ": " << refused.error().message;
    }
    EXPECT_TRUE(open_with(folder.path(), EngineOptions::BudgetKind::kBytes, floor.value()));
  }
}

}  // namespace
}  // namespace headrace
