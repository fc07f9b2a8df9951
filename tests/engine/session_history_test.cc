// Going back and branching off, with fakes: a fake state whose parts do not fit each other ends the program.

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "engine/fakes.h"
#include "engine/session.h"

namespace headrace {
namespace {

using test::fake_engine;
using test::FakeScript;
using test::generate;
using test::ids_of;
using test::kIgnorePiece;
using test::kIgnoreToken;
using test::kNoProgress;
using Ids = std::vector<TokenId>;

/// Logits that depend on every token of the sequence, so that a wrong one shows.
void fill_from_all(std::span<const TokenId> sequence, std::span<float> logits) {
  uint32_t hash = 7;
  for (const TokenId id : sequence) hash = hash * 31 + static_cast<uint32_t>(id);
  for (size_t id = 0; id < logits.size(); ++id) {
    hash = hash * 1664525 + 1013904223;
    logits[id] = static_cast<float>(hash >> 16) / 4096.0f;
  }
}

struct Script : FakeScript {
  Script() { fill_logits = fill_from_all; }
};

/// What a session that never did anything else answers.
Ids fresh_answer(const Ids& prompt, size_t tokens) {
  Script script;
  const auto engine = fake_engine(script);
  return generate(*engine->create_session().take_value(), prompt, tokens);
}

Ids first(const Ids& ids, size_t count) {
  return {ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count)};
}

Ids counted(size_t count) {
  Ids ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<TokenId>(i * i % 13);
  return ids;
}

TEST(SessionHistory, GoesOnFromAnyEarlierTokenAsAFreshSessionDoes) {
  for (const size_t snapshots : {0u, 1u, 2u, 5u}) {
    for (const size_t chunk : {1u, 3u, 100u}) {
      Script script;
      const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = chunk});
      const auto session = engine->create_session().take_value();
      ASSERT_EQ(session->reserve_snapshots(snapshots).value(), snapshots);
      for (size_t tokens = 0; tokens <= 22; ++tokens) {
        ASSERT_TRUE(session->reset());
        generate(*session, counted(9), 4);
        generate(*session, {5, 6, 7}, 6);
        const Ids all = ids_of(*session);
        ASSERT_EQ(all.size(), 22u);
        ASSERT_TRUE(session->rewind(tokens));
        EXPECT_EQ(ids_of(*session), first(all, tokens));
        // With and without more ids.
        Ids kept = first(all, tokens);
        if (tokens > 0) {
          EXPECT_EQ(generate(*session, {}, 3), fresh_answer(kept, 3)) << tokens;
        }
        ASSERT_TRUE(session->rewind(tokens));
        kept.insert(kept.end(), {1, 2});
        EXPECT_EQ(generate(*session, {1, 2}, 3), fresh_answer(kept, 3)) << tokens;
      }
    }
  }
}

TEST(SessionHistory, CannotGoBackToWhatIsNotThere) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  generate(*session, {1, 2}, 2);
  const Status refused = session->rewind(5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_EQ(session->token_count(), 4u);
  EXPECT_TRUE(session->rewind(4));
}

TEST(SessionHistory, AnAnswerIsRepeatedFromTheEndOfItsPromptWithoutRunningTheModelBefore) {
  Script script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 4});
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(2).value(), 2u);
  const Ids answer = generate(*session, counted(10), 5);
  EXPECT_EQ(answer, fresh_answer(counted(10), 5));
  script.chunk_sizes.clear();
  ASSERT_TRUE(session->rewind(10));
  EXPECT_TRUE(script.chunk_sizes.empty());
  EXPECT_EQ(generate(*session, {}, 5), answer);
  EXPECT_EQ(script.chunk_sizes, std::vector<size_t>(4, 1));
}

TEST(SessionHistory, AnEditedPromptGoesOnFromTheEndOfTheTurnBefore) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(4).value(), 4u);
  generate(*session, counted(10), 5);  // The last token has not run: the state is that after 14.
  const Ids before = ids_of(*session);
  generate(*session, {1, 2, 3, 4}, 2);
  Ids wanted = before;
  wanted.insert(wanted.end(), {1, 2, 9, 9});
  EXPECT_EQ(session->keep_common_prefix(wanted).value(), 17u);
  script.chunk_sizes.clear();
  const Ids answer = generate(*session, {9, 9}, 1);
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{5}));
  EXPECT_EQ(answer, fresh_answer(wanted, 1));
}

TEST(SessionHistory, KeepsTheLongestCommonPrefix) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(session->keep_common_prefix(Ids{1, 2}).value(), 0u);
  generate(*session, {1, 2, 3}, 2);
  const Ids all = ids_of(*session);
  EXPECT_EQ(session->keep_common_prefix(all).value(), 5u);
  Ids longer = all;
  longer.push_back(3);
  EXPECT_EQ(session->keep_common_prefix(longer).value(), 5u);
  EXPECT_EQ(session->keep_common_prefix(Ids{1, 2, 4}).value(), 2u);
  EXPECT_EQ(generate(*session, {4}, 2), fresh_answer({1, 2, 4}, 2));
  EXPECT_EQ(session->keep_common_prefix(Ids{9}).value(), 0u);
  EXPECT_EQ(session->token_count(), 0u);
  EXPECT_EQ(generate(*session, {9}, 2), fresh_answer({9}, 2));
}

TEST(SessionHistory, EvaluationsAreKeptToo) {
  Script script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 4, .logits_rows = 3});
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(2).value(), 2u);
  const Ids ids = counted(10);
  for (const bool all_logits : {false, true}) {
    ASSERT_TRUE(session->reset());
    ASSERT_TRUE(session->evaluate(ids, {.all_logits = all_logits}, kIgnoreToken, kNoProgress));
    const Ids answer = generate(*session, {}, 3);
    EXPECT_EQ(answer, fresh_answer(ids, 3));
    ASSERT_TRUE(session->rewind(10));
    script.chunk_sizes.clear();
    EXPECT_EQ(generate(*session, {}, 3), answer);
    EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{1, 1}));
  }
}

TEST(SessionHistory, LongPromptsHavePlacesOnTheWay) {
  Script script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 100});
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(8).value(), 8u);
  const Ids ids = counted(1000);
  generate(*session, ids, 1);
  ASSERT_TRUE(session->rewind(950));  // Kept at 300, 600 and 900.
  script.chunk_sizes.clear();
  EXPECT_EQ(generate(*session, {}, 1), fresh_answer(first(ids, 950), 1));
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{50}));
}

TEST(SessionHistory, LongAnswersHavePlacesOnTheWay) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(8).value(), 8u);
  generate(*session, {1, 2}, 700);
  const Ids all = ids_of(*session);
  ASSERT_TRUE(session->rewind(600));  // Kept at 2, 258 and 514.
  script.chunk_sizes.clear();
  EXPECT_EQ(generate(*session, {}, 1), Ids{all[600]});
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{86}));
}

TEST(SessionHistory, AMarkedPlaceOutlivesOthers) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(session->mark().error().code, Code::kArgument);
  ASSERT_EQ(session->reserve_snapshots(2).value(), 2u);
  ASSERT_TRUE(session->evaluate(Ids{1, 2, 3}, {}, kIgnoreToken, kNoProgress));
  ASSERT_TRUE(session->mark());
  for (int turn = 0; turn < 6; ++turn) generate(*session, {4, 5}, 2);
  ASSERT_TRUE(session->rewind(3));
  script.chunk_sizes.clear();
  EXPECT_EQ(generate(*session, {}, 1), fresh_answer({1, 2, 3}, 1));
  EXPECT_TRUE(script.chunk_sizes.empty());
}

TEST(SessionHistory, BranchesGoOnIndependentlyAndAsIfEachWereAlone) {
  for (const size_t left_over : {0u, 1u}) {
    Script script;
    const auto engine = fake_engine(script);
    const auto session = engine->create_session().take_value();
    if (left_over > 0) {
      generate(*session, {3, 1, 4}, 2);
    } else {
      ASSERT_TRUE(session->evaluate(Ids{3, 1, 4}, {}, kIgnoreToken, kNoProgress));
    }
    const Ids before = ids_of(*session);
    const auto other = session->branch().take_value();
    EXPECT_EQ(ids_of(*other), before);
    const Ids expected = fresh_answer(before, 6);
    EXPECT_EQ(generate(*other, {}, 3), first(expected, 3));
    Ids changed = before;
    changed.insert(changed.end(), {2, 2});
    EXPECT_EQ(generate(*session, {2, 2}, 3), fresh_answer(changed, 3));
    EXPECT_EQ(generate(*other, {}, 3), Ids(expected.begin() + 3, expected.end()));
  }
}

TEST(SessionHistory, ABranchOfABranchAndOfTheEmptySequence) {
  Script script;
  const auto engine = fake_engine(script);
  const auto empty = engine->create_session().take_value();
  const auto second = empty->branch().take_value();
  EXPECT_EQ(generate(*second, {8}, 3), fresh_answer({8}, 3));
  const auto third = second->branch().take_value();
  const Ids expected = fresh_answer({8}, 5);
  EXPECT_EQ(generate(*third, {}, 2), Ids(expected.begin() + 3, expected.end()));
  EXPECT_EQ(empty->token_count(), 0u);
}

TEST(SessionHistory, ASessionThatFailedRefusesAllOfIt) {
  Script script;
  script.fail_pass = 0;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(1).value(), 1u);
  EXPECT_FALSE(session->generate(Ids{1}, {}, kIgnorePiece, kNoProgress));
  EXPECT_EQ(session->rewind(0).error().code, Code::kArgument);
  EXPECT_EQ(session->branch().error().code, Code::kArgument);
  EXPECT_EQ(session->keep_common_prefix(Ids{1}).error().code, Code::kArgument);
  EXPECT_EQ(session->mark().error().code, Code::kArgument);
  ASSERT_TRUE(session->reset());
  EXPECT_TRUE(session->rewind(0));
}

TEST(SessionHistory, ACallbackCannotGoBackOrBranch) {
  Script script;
  const auto engine = fake_engine(script);
  const auto session = engine->create_session().take_value();
  const auto meddle = [&](const AnswerPiece&) {
    EXPECT_EQ(session->rewind(0).error().code, Code::kArgument);
    EXPECT_EQ(session->branch().error().code, Code::kArgument);
    EXPECT_EQ(session->reserve_snapshots(1).error().code, Code::kArgument);
    return true;
  };
  ASSERT_TRUE(session->generate(Ids{1}, {.tokens_max = 2}, meddle, kNoProgress));
}

TEST(SessionHistory, ACancelledPromptIsTakenBackAndRunAgain) {
  Script script;
  const auto engine = fake_engine(script, {}, {.prefill_chunk_tokens = 4});
  const auto session = engine->create_session().take_value();
  size_t chunks = 0;
  const auto cancel_at_second = [&](size_t, size_t) { return ++chunks < 2; };
  const Ids ids = counted(20);
  EXPECT_EQ(session->generate(ids, {}, kIgnorePiece, cancel_at_second).value().finish, Finish::kCancelled);
  ASSERT_TRUE(session->rewind(8));  // Exactly where it stopped: no logits are known there.
  EXPECT_EQ(generate(*session, {}, 2), fresh_answer(first(ids, 8), 2));
}

// ---- Memory ----

constexpr size_t kContextTokens = 1024;

/// Snapshots of 100 pages.
struct HeavyScript : Script {
  HeavyScript() {
    recurrent_numbers = 100 * 1024 - vocabulary;
    slots_max = 4096;
    slot_bytes = 4096;
  }
};
constexpr size_t kSlotBytes = 100 * 4096;

size_t floor_of(FakeScript& script) {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kFloor;
  options.context_tokens = kContextTokens;
  return fake_engine(script, {}, options)->floor_bytes();
}

std::unique_ptr<Engine> engine_with(FakeScript& script, size_t budget_bytes) {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = budget_bytes;
  options.context_tokens = kContextTokens;
  return fake_engine(script, {}, options);
}

TEST(SnapshotMemory, AnEighthOfWhatIsAboveTheFloorHoldsSnapshots) {
  HeavyScript script;
  const size_t floor = floor_of(script);
  for (const size_t count : {0u, 1u, 2u, 5u}) {
    for (const size_t missing : {0u, 1u}) {
      if (count == 0 && missing == 1) continue;
      const auto engine = engine_with(script, floor + 8 * count * kSlotBytes - missing);
      const auto session = engine->create_session().take_value();
      const size_t slots = script.last().expert_slots;
      EXPECT_EQ(session->reserve_snapshots(5).value(), count - missing);
      EXPECT_EQ(engine->plan().snapshot_bytes, (count - missing) * kSlotBytes);
      EXPECT_EQ(script.last(), engine->plan().arrangement);
      EXPECT_LE(engine->budget().used_bytes(), engine->budget().limit_bytes());
      EXPECT_EQ(engine->floor_bytes(), floor);
      const bool are_slots_given = script.last().expert_slots < slots;
      EXPECT_EQ(are_slots_given, count > missing);
      EXPECT_EQ(generate(*session, {1, 2}, 2), fresh_answer({1, 2}, 2));
    }
  }
}

TEST(SnapshotMemory, ASmallerBudgetTakesSnapshotsBackAndNothingElseChanges) {
  HeavyScript script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor + 80 * kSlotBytes);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(6).value(), 6u);
  Ids all = {1, 2, 3};
  generate(*session, all, 3);
  generate(*session, {4, 5}, 3);
  all = ids_of(*session);
  ASSERT_TRUE(engine->set_budget(floor + 16 * kSlotBytes));
  EXPECT_EQ(engine->plan().snapshot_bytes, 2 * kSlotBytes);
  ASSERT_TRUE(engine->set_budget(floor));
  EXPECT_EQ(engine->plan().snapshot_bytes, 0u);
  EXPECT_LE(engine->budget().used_bytes(), floor);
  ASSERT_TRUE(session->rewind(4));
  EXPECT_EQ(generate(*session, {}, 2), fresh_answer(first(all, 4), 2));
}

TEST(SnapshotMemory, ASmallerBudgetInTheMiddleOfAnAnswerTakesThemToo) {
  HeavyScript script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor + 80 * kSlotBytes);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(6).value(), 6u);
  const auto shrink = [&](const AnswerPiece&) {
    EXPECT_TRUE(engine->set_budget(floor));
    return true;
  };
  const Ids answer = session->generate(Ids{1, 2, 3}, {.tokens_max = 4}, shrink, kNoProgress).value().ids;
  EXPECT_EQ(answer, fresh_answer({1, 2, 3}, 4));
  EXPECT_EQ(engine->plan().snapshot_bytes, 0u);
  EXPECT_EQ(engine->budget().limit_bytes(), floor);
}

TEST(SnapshotMemory, AnotherSessionComesBeforeSnapshots) {
  HeavyScript script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor + 8 * kSlotBytes);
  const auto session = engine->create_session().take_value();
  ASSERT_EQ(session->reserve_snapshots(1).value(), 1u);
  generate(*session, {1, 2, 3}, 2);
  const auto other = session->branch().take_value();
  EXPECT_EQ(engine->plan().snapshot_bytes, 0u);
  EXPECT_LE(engine->budget().used_bytes(), engine->budget().limit_bytes());
  EXPECT_EQ(generate(*other, {}, 2), fresh_answer(ids_of(*session), 2));
}

TEST(SnapshotMemory, ABranchThatDoesNotFitSaysSoAndTakesNothing) {
  HeavyScript script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor);
  const auto session = engine->create_session().take_value();
  generate(*session, {1, 2, 3}, 2);
  const auto refused = session->branch();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find("2 sessions"), std::string::npos) << refused.error().message;
  const Ids before = ids_of(*session);
  EXPECT_EQ(generate(*session, {}, 2), fresh_answer(before, 2));
}

TEST(SnapshotMemory, SessionsShareTheAllowanceAndGiveItBack) {
  HeavyScript script;
  const auto engine = engine_with(script, floor_of(script) + 100 * kSlotBytes);
  auto session = engine->create_session().take_value();
  auto other = engine->create_session().take_value();
  const size_t granted = session->reserve_snapshots(8).value();
  EXPECT_EQ(granted, 8u);
  const size_t rest = other->reserve_snapshots(60).value();
  EXPECT_LE(rest, 4u);
  EXPECT_EQ(session->reserve_snapshots(3).value(), 3u);
  EXPECT_EQ(other->reserve_snapshots(60).value(), rest + 5);
  other.reset();
  session.reset();
  session = engine->create_session().take_value();
  EXPECT_EQ(engine->plan().snapshot_bytes, 0u);
  EXPECT_EQ(script.last(), engine->plan().arrangement);
}

}  // namespace
}  // namespace headrace
