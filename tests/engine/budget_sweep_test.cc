// One model under many budgets: the same tokens, never more bytes for more memory, and as many as the plan says.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/session.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
constexpr auto kNoProgress = [](size_t, size_t) { return true; };
constexpr size_t kTokens = 24;

struct Outcome {
  std::vector<TokenId> ids;
  Statistics statistics;
  MemoryPlan plan;
  uint64_t answer_bytes = 0;  ///< Read for the last half of the tokens.
};

uint64_t bytes_of(const Statistics& statistics) {
  return statistics.bytes_read_trunk + statistics.bytes_read_experts + statistics.bytes_read_head;
}

Outcome run(const std::string& folder, size_t budget_bytes) {
  EngineOptions options;
  options.budget_kind = budget_bytes == 0 ? EngineOptions::BudgetKind::kFloor : EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = budget_bytes;
  options.context_tokens = 128;
  options.thread_count = 1;
  const auto engine = Engine::open(options, EngineSources::folder(folder)).take_value();
  const auto session = engine->create_session().take_value();
  const std::vector<TokenId> prompt = {1, 17, 255, 301, 42, 7, 7, 99};
  Outcome run;
  const GenerateOptions half = {.tokens_max = kTokens / 2, .ignore_stop_ids = true};
  run.ids = session->generate(prompt, half, kIgnorePiece, kNoProgress).value().ids;
  const uint64_t before = bytes_of(session->statistics());
  const Generation rest = session->generate({}, half, kIgnorePiece, kNoProgress).take_value();
  run.ids.insert(run.ids.end(), rest.ids.begin(), rest.ids.end());
  run.statistics = session->statistics();
  run.plan = engine->plan();
  run.answer_bytes = bytes_of(run.statistics) - before;
  return run;
}

/// Relative difference between what was read for a token and what was planned.
double difference(const Outcome& run) {
  const double read = static_cast<double>(run.answer_bytes) / (kTokens / 2);
  return read / run.plan.bytes_per_token - 1;
}

class BudgetSweep : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    if (name == "demo") {
      path_ = HEADRACE_SOURCE_DIR "/models/demo";
      return;
    }
    folder_.write(test::tiny_checkpoint(name == "k3" ? test::tiny_k3_config() : test::tiny_linear_config()));
    path_ = folder_.path();
  }

  test::TempFolder folder_;
  std::string path_;
};

TEST_P(BudgetSweep, MoreMemoryGivesTheSameTokensAndNeverReadsMore) {
  const Outcome least = run(path_, 0);
  const size_t floor = least.plan.budget_bytes;
  EXPECT_EQ(least.statistics.pinned_layers, 0u);
  EXPECT_GT(least.statistics.streamed_layers, 0u);
  EXPECT_GT(least.statistics.expert_misses, 100u);
  EXPECT_GT(least.statistics.blocks_streamed, Trunk::kRingBlocksMin);
  const size_t most = floor + (size_t{12} << 20);
  uint64_t bytes_before = bytes_of(least.statistics);
  constexpr size_t kSteps = 24;
  for (size_t step = 1; step <= kSteps; ++step) {
    const Outcome more = run(path_, floor + (most - floor) * step / kSteps);
    EXPECT_EQ(more.ids, least.ids) << "step " << step;
    // An expert cache that is larger by a slot may, by chance, keep the wrong one: a few records.
    const uint64_t slack = 4 * more.plan.slot_bytes;
    EXPECT_LE(bytes_of(more.statistics), bytes_before + slack) << "step " << step;
    bytes_before = std::min(bytes_before, bytes_of(more.statistics));
  }
}

TEST_P(BudgetSweep, ATokenReadsWhatThePlanSays) {
  // Six slots hit now and then, which the plan does not count on.
  const Outcome least = run(path_, 0);
  EXPECT_LT(difference(least), 0.02);
  EXPECT_GT(difference(least), -0.06);
  const Outcome all = run(path_, size_t{256} << 20);
  EXPECT_EQ(all.plan.arrangement.expert_slots, all.statistics.expert_slots);
  // Everything is there: rows of the embedding, and experts on their first use.
  const uint64_t row_bytes = static_cast<uint64_t>(all.plan.bytes_per_token);
  const uint64_t rest = all.answer_bytes - std::min(all.answer_bytes, row_bytes * kTokens / 2);
  EXPECT_LE(rest, all.statistics.expert_misses * all.plan.slot_bytes + row_bytes * kTokens);
}

INSTANTIATE_TEST_SUITE_P(Models, BudgetSweep, testing::Values("k3", "linear", "demo"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace headrace
