#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/session.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using BudgetKind = EngineOptions::BudgetKind;
using Ids = std::vector<TokenId>;

constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
constexpr auto kNoProgress = [](size_t, size_t) { return true; };

/// Plenty of memory, or the least: then trunk and experts come from the drive again and again.
EngineOptions options_of(BudgetKind kind) {
  EngineOptions options;
  options.budget_kind = kind;
  options.budget_bytes = size_t{1} << 30;
  options.context_tokens = 64;
  options.thread_count = 1;
  options.prefill_chunk_tokens = 4;
  options.reads.backend = ReadBackendKind::kThreads;
  return options;
}

/// A small model: few enough reads that each of them can fail once. Its bytes come from memory, in blocks.
class EngineFaults : public testing::TestWithParam<BudgetKind> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder();
    const test::Files files = test::tiny_checkpoint(test::tiny_linear_config());
    folder_->write(files);  // Whether a file is there is asked of the system.
    files_ = new test::Files(test::in_folder(folder_->path(), files));
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete files_;
    folder_ = nullptr;
    files_ = nullptr;
  }

  struct Outcome {
    Result<Ids> ids = Ids();
    Statistics statistics;
    Result<Ids> ids_after_reset = Ids();  ///< Of a second attempt with the same engine, when the first failed.
  };

  static FileOpener opener(test::FaultPlan& plan) { return test::memory_opener(*files_, 512, &plan); }

  static Result<Ids> generate(Session& session) {
    return TRY(session.generate(Ids{0, 17, 255, 301, 42}, {.tokens_max = 2}, kIgnorePiece, kNoProgress)).ids;
  }

  /// Opens the model behind the faults of `plan` and generates two tokens. Fails when opening does.
  static Result<Outcome> try_run(test::FaultPlan& plan, bool with_second_attempt = false) {
    const auto engine = TRY(Engine::open(options_of(GetParam()),
                                         EngineSources::folder(folder_->path(), test::faulty_opener(open_file, plan))));
    const auto session = TRY(engine->create_session());
    Outcome outcome;
    outcome.ids = generate(*session);
    outcome.statistics = session->statistics();
    if (outcome.ids || !with_second_attempt) return outcome;
    TRY(session->reset());
    outcome.ids_after_reset = generate(*session);
    return outcome;
  }
  static Result<Ids> run(test::FaultPlan& plan) {
    Outcome outcome = TRY(try_run(plan));
    return std::move(outcome.ids);
  }

  static test::TempFolder* folder_;
  static test::Files* files_;
};

test::TempFolder* EngineFaults::folder_ = nullptr;
test::Files* EngineFaults::files_ = nullptr;

INSTANTIATE_TEST_SUITE_P(Budgets, EngineFaults, testing::Values(BudgetKind::kBytes, BudgetKind::kFloor),
                         [](const auto& instance) {
                           return std::string(instance.param == BudgetKind::kFloor ? "Floor" : "Plenty");
                         });

TEST_P(EngineFaults, TheBudgetsAreWhatTheyAreMeantToBe) {
  test::FaultPlan clean;
  const Statistics statistics = try_run(clean).value().statistics;
  const bool is_floor = GetParam() == BudgetKind::kFloor;
  EXPECT_EQ(statistics.streamed_layers > 0, is_floor);
  EXPECT_EQ(statistics.blocks_streamed > 0, is_floor);
  EXPECT_EQ(statistics.pinned_layers > 0, !is_floor);
  EXPECT_GT(statistics.expert_misses, 0u);
  EXPECT_EQ(statistics.expert_slots == 6, is_floor);
}

// Nothing may leak on the way out: the budget checks that when it is destroyed, the sanitizers the rest.
TEST_P(EngineFaults, AReadThatFailsEndsTheRunUnlessNobodyWaitedForIt) {
  test::FaultPlan clean;
  const Ids expected = run(clean).value();
  const uint64_t reads = clean.read_count;
  ASSERT_GT(reads, 20u);
  uint64_t unnoticed = 0;
  for (uint64_t n = 0; n < reads; ++n) {
    test::FaultPlan plan;
    plan.fail_at = n;
    const bool with_second_attempt = n % 4 == 0;
    const auto outcome = try_run(plan, with_second_attempt);
    if (!outcome) {
      ASSERT_EQ(outcome.error().code, Code::kIo) << outcome.error().message;
      continue;
    }
    const auto& ids = outcome.value().ids;
    if (ids) {
      ASSERT_EQ(ids.value(), expected) << "read " << n << " of " << reads;
      ++unnoticed;
      continue;
    }
    ASSERT_EQ(ids.error().code, Code::kIo) << ids.error().message;
    if (!with_second_attempt) continue;
    ASSERT_TRUE(outcome.value().ids_after_reset) << "read " << n << " of " << reads;
    ASSERT_EQ(outcome.value().ids_after_reset.value(), expected) << "read " << n << " of " << reads;
  }
  // Only what the ring had read ahead for a pass that never came.
  EXPECT_LE(unnoticed, GetParam() == BudgetKind::kFloor ? 64u : 0u);
}

TEST_P(EngineFaults, ADriveThatIsGoneEndsTheRunWithAReadError) {
  test::FaultPlan clean;
  const Ids expected = run(clean).value();
  for (uint64_t n = 0; n < clean.read_count; n += 5) {
    test::FaultPlan plan;
    plan.fail_from = n;
    const auto ids = run(plan);
    if (ids) {
      ASSERT_EQ(ids.value(), expected);
    } else {
      ASSERT_EQ(ids.error().code, Code::kIo);
    }
  }
}

TEST_P(EngineFaults, AnyFileThatCannotBeOpenedEndsTheRunWithAReadError) {
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

TEST_P(EngineFaults, ShortReadsChangeNothing) {
  test::FaultPlan clean;
  const Ids expected = run(clean).value();
  for (uint64_t n = 0; n < clean.read_count; n += 7) {
    test::FaultPlan plan;
    plan.short_at = n;
    ASSERT_EQ(run(plan).value(), expected) << "read " << n;
  }
}

TEST_P(EngineFaults, TheIdsAreTheSameAsWithPlentyOfMemory) {
  test::FaultPlan none;
  const auto engine = Engine::open(options_of(BudgetKind::kBytes), EngineSources::folder(folder_->path())).take_value();
  EXPECT_EQ(run(none).value(), generate(*engine->create_session().value()).value());
}

/// Opens with a budget, and runs a little; gives the budget.
Result<size_t> open_with(const std::string& folder, BudgetKind kind, size_t bytes) {
  EngineOptions options = options_of(kind);
  options.budget_bytes = bytes;
  options.prefill_chunk_tokens = 0;
  options.thread_count = 2;
  const auto engine = TRY(Engine::open(options, EngineSources::folder(folder)));
  const auto session = TRY(engine->create_session());
  TRY(session->generate(Ids{0, 17, 255, 301, 42}, {.tokens_max = 3}, kIgnorePiece, kNoProgress));
  const Statistics statistics = session->statistics();
  EXPECT_GT(statistics.expert_misses, 0u);
  if (kind == BudgetKind::kFloor) {
    EXPECT_GT(statistics.streamed_layers, 0u);
    EXPECT_GT(statistics.blocks_streamed, 0u);
    EXPECT_EQ(statistics.expert_slots, 6u);
  }
  EXPECT_LE(statistics.budget_used_bytes, statistics.budget_bytes);
  return engine->plan().budget_bytes;
}

TEST(EngineFloor, EveryBudgetBelowTheFloorIsRefusedWithTheFloorAndTheFloorRuns) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    const test::TempFolder folder;
    folder.write(test::tiny_checkpoint(config));
    const auto floor = open_with(folder.path(), BudgetKind::kFloor, 0);
    ASSERT_TRUE(floor) << floor.error().message;
    const size_t process = process_memory_bytes(0);
    ASSERT_GT(floor.value(), process);
    const size_t step = (floor.value() - process) / 17;
    for (size_t bytes = floor.value() - 1; bytes > process - step; bytes -= step) {
      const auto refused = open_with(folder.path(), BudgetKind::kBytes, bytes);
      ASSERT_FALSE(refused) << bytes;
      ASSERT_EQ(refused.error().code, Code::kBudget);
      ASSERT_NE(refused.error().message.find(std::to_string(floor.value())), std::string::npos)
          << bytes << ": " << refused.error().message;
    }
    EXPECT_TRUE(open_with(folder.path(), BudgetKind::kBytes, floor.value()));
  }
}

/// Above the floor every budget runs, whatever division it leads to, and gives the same ids.
TEST(EngineFloor, EveryBudgetAboveTheFloorRunsWithTheSameIds) {
  for (const auto& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    const test::TempFolder folder;
    folder.write(test::tiny_checkpoint(config));
    EngineOptions options = options_of(BudgetKind::kFloor);
    options.prefill_chunk_tokens = 0;
    const size_t floor = Engine::plan(options, EngineSources::folder(folder.path())).value().plan.floor_bytes;
    Ids expected;
    options.budget_kind = BudgetKind::kBytes;
    for (size_t bytes = floor; bytes < floor + (4 << 20); bytes += 300001) {
      options.budget_bytes = bytes;
      const auto engine = Engine::open(options, EngineSources::folder(folder.path())).take_value();
      const auto session = engine->create_session().take_value();
      const Ids prompt(40, 17);
      const auto answer = session->generate(prompt, {.tokens_max = 3}, kIgnorePiece, kNoProgress);
      ASSERT_TRUE(answer) << answer.error().message;
      if (expected.empty()) expected = answer.value().ids;
      ASSERT_EQ(answer.value().ids, expected) << bytes - floor;
    }
  }
}

/// A budget that changes from token to token changes no id.
TEST(EngineFloor, ABudgetThatChangesWithEveryTokenChangesNoId) {
  const test::TempFolder folder;
  folder.write(test::tiny_checkpoint(test::tiny_k3_config()));
  EngineOptions options = options_of(BudgetKind::kFloor);
  const auto engine = Engine::open(options, EngineSources::folder(folder.path())).take_value();
  const size_t floor = engine->plan().floor_bytes;
  const Ids prompt = {0, 17, 255, 301, 42};
  const auto session = engine->create_session().take_value();
  const Ids expected = session->generate(prompt, {.tokens_max = 12}, kIgnorePiece, kNoProgress).value().ids;
  ASSERT_TRUE(session->reset());
  size_t pieces = 0;
  const auto change = [&](const AnswerPiece&) {
    EXPECT_TRUE(engine->set_budget(floor + (++pieces * 7919 % 13) * 250000));
    return true;
  };
  EXPECT_EQ(session->generate(prompt, {.tokens_max = 12}, change, kNoProgress).value().ids, expected);
}

}  // namespace
}  // namespace headrace
