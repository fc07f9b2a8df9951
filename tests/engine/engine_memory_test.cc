#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/fakes.h"
#include "engine/session.h"

namespace headrace {
namespace {

using test::fake_engine;
using test::fake_sources;
using test::FakeScript;
using Ids = std::vector<TokenId>;

constexpr auto kNoProgress = [](size_t, size_t) { return true; };
constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };

/// Memory in which a prompt of a few chunks wants what slots and layers hold.
struct Tight : FakeScript {
  Tight() { scratch_bytes_per_token = 30; }
};
/// Above the floor: all layers and about half of the slots.
constexpr size_t kSomeBytes = 8000;
constexpr size_t kContextTokens = 1000;
constexpr size_t kPlentyBytes = size_t{1} << 30;

EngineOptions with_bytes(size_t bytes) {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = bytes;
  options.context_tokens = kContextTokens;
  options.thread_count = 1;
  return options;
}

size_t floor_of(FakeScript& script) {
  return Engine::plan(with_bytes(1), fake_sources(script)).value().plan.floor_bytes;
}

std::unique_ptr<Engine> engine_with(FakeScript& script, size_t bytes) {
  return Engine::open(with_bytes(bytes), fake_sources(script)).take_value();
}

Result<Generation> generate(Session& session, const Ids& prompt, size_t tokens) {
  return session.generate(prompt, {.tokens_max = tokens}, kIgnorePiece, kNoProgress);
}

TEST(EngineMemory, APromptBorrowsAndTheAnswerHasItBack) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + kSomeBytes);
  const ModelArrangement planned = engine->plan().arrangement;
  const auto session = engine->create_session().take_value();
  EXPECT_EQ(generate(*session, Ids(64, 1), 3).value().ids, (Ids{2, 3, 4}));
  ASSERT_EQ(script.chunk_sizes, (std::vector<size_t>{64, 1, 1}));
  EXPECT_EQ(planned.chunk_tokens, 16u);
  EXPECT_EQ(script.arranged_as[0].chunk_tokens, 64u);
  EXPECT_LT(script.arranged_as[0].expert_slots, planned.expert_slots);
  EXPECT_EQ(script.arranged_as[1], planned);
  EXPECT_EQ(script.arranged_as[2], planned);
  EXPECT_LE(engine->budget().peak_bytes(), engine->budget().limit_bytes());
}

TEST(EngineMemory, AShortPromptBorrowsNothing) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + kSomeBytes);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, Ids(16, 1), 3));
  EXPECT_EQ(script.arrangements.size(), 1u);
}

TEST(EngineMemory, AnEvaluationBorrowsToo) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + kSomeBytes);
  const auto session = engine->create_session().take_value();
  const auto ignore = [](const EvaluatedToken&) { return true; };
  ASSERT_TRUE(session->evaluate(Ids(64, 1), {}, ignore, kNoProgress));
  EXPECT_EQ(script.arranged_as[0].chunk_tokens, 64u);
  EXPECT_EQ(script.last(), engine->plan().arrangement);
}

TEST(EngineMemory, WhatAPromptBorrowedComesBackWhenItFails) {
  for (size_t fail_pass = 0; fail_pass < 2; ++fail_pass) {
    Tight script;
    script.fail_pass = fail_pass;
    const auto engine = engine_with(script, floor_of(script) + kSomeBytes);
    const auto session = engine->create_session().take_value();
    EXPECT_EQ(generate(*session, Ids(400, 1), 3).error().code, Code::kIo);
    EXPECT_EQ(script.last(), engine->plan().arrangement);
    ASSERT_TRUE(session->reset());
    EXPECT_EQ(generate(*session, {3}, 2).value().ids, (Ids{4, 5}));
  }
}

TEST(EngineMemory, WhatAPromptBorrowedComesBackWhenItIsCancelled) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + kSomeBytes);
  const auto session = engine->create_session().take_value();
  const auto stop = [](size_t, size_t) { return false; };
  EXPECT_EQ(session->generate(Ids(400, 1), {}, kIgnorePiece, stop).value().finish, Finish::kCancelled);
  EXPECT_GT(script.arranged_as[0].chunk_tokens, 16u);
  EXPECT_EQ(script.last(), engine->plan().arrangement);
  const auto ignore = [](const EvaluatedToken&) { return true; };
  ASSERT_TRUE(session->reset());
  EXPECT_EQ(session->evaluate(Ids(400, 1), {}, ignore, stop).error().code, Code::kCancelled);
  EXPECT_EQ(script.last(), engine->plan().arrangement);
}

TEST(EngineMemory, AnotherBudgetIsCarriedOutAtOnceWhenNobodyComputes) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, kPlentyBytes);
  const ModelArrangement plenty = script.last();
  for (const size_t bytes : {floor, floor + kSomeBytes, floor, kPlentyBytes}) {
    ASSERT_TRUE(engine->set_budget(bytes));
    EXPECT_EQ(engine->budget().limit_bytes(), bytes);
    EXPECT_LE(engine->budget().used_bytes(), bytes);
    EXPECT_EQ(engine->plan().budget_bytes, bytes);
    EXPECT_EQ(script.last(), engine->plan().arrangement);
  }
  EXPECT_EQ(script.last(), plenty);
  ASSERT_TRUE(engine->set_budget(floor));
  EXPECT_EQ(script.last(), (ModelArrangement{0, 6, 16}));
}

TEST(EngineMemory, ABudgetBelowTheFloorIsRefusedAndChangesNothing) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, kPlentyBytes);
  for (const size_t bytes : {size_t{0}, size_t{1}, floor - 1}) {
    const Status refused = engine->set_budget(bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kBudget);
    EXPECT_NE(refused.error().message.find(std::to_string(floor)), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(engine->budget().limit_bytes(), kPlentyBytes);
  EXPECT_EQ(script.arrangements.size(), 1u);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(generate(*session, {3}, 2));
  EXPECT_EQ(engine->budget().limit_bytes(), kPlentyBytes);
}

TEST(EngineMemory, ACallbackChangesTheBudgetBeforeTheNextToken) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, kPlentyBytes);
  const ModelArrangement plenty = script.last();
  const auto session = engine->create_session().take_value();
  int pieces = 0;
  const auto shrink_at_second = [&](const AnswerPiece&) {
    if (++pieces == 2) {
      EXPECT_TRUE(engine->set_budget(floor));
      EXPECT_EQ(engine->budget().limit_bytes(), kPlentyBytes);  // The pass of this token may still use it.
    }
    return true;
  };
  const auto answer = session->generate(Ids{3}, {.tokens_max = 4}, shrink_at_second, kNoProgress).value();
  EXPECT_EQ(answer.ids, (Ids{4, 5, 6, 7}));
  ASSERT_EQ(script.arranged_as.size(), 4u);
  EXPECT_EQ(script.arranged_as[1], plenty);
  EXPECT_EQ(script.arranged_as[2], (ModelArrangement{0, 6, 16}));
  EXPECT_EQ(engine->budget().limit_bytes(), floor);
}

TEST(EngineMemory, AnotherThreadChangesTheBudgetBeforeTheNextToken) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor);
  const auto session = engine->create_session().take_value();
  script.on_pass = [&] {
    if (script.pass_count != 1) return;
    std::thread([&] { EXPECT_TRUE(engine->set_budget(kPlentyBytes)); }).join();
  };
  EXPECT_EQ(generate(*session, {3}, 4).value().ids, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(script.arranged_as[1], (ModelArrangement{0, 6, 16}));
  EXPECT_EQ(script.arranged_as[2], (ModelArrangement{3, 64, kContextTokens}));
}

TEST(EngineMemory, OfTwoBudgetsTheLastCounts) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, floor);
  const auto session = engine->create_session().take_value();
  const auto change = [&](const AnswerPiece&) {
    EXPECT_TRUE(engine->set_budget(kPlentyBytes));
    EXPECT_TRUE(engine->set_budget(floor + 100));
    return true;
  };
  ASSERT_TRUE(session->generate(Ids{3}, {.tokens_max = 2}, change, kNoProgress));
  EXPECT_EQ(engine->budget().limit_bytes(), floor + 100);
}

TEST(EngineMemory, ABudgetThatCameWithTheLastTokenIsInForceWhenTheCallIsOver) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, kPlentyBytes);
  const auto session = engine->create_session().take_value();
  const auto shrink = [&](const AnswerPiece&) {
    EXPECT_TRUE(engine->set_budget(floor));
    return true;
  };
  ASSERT_TRUE(session->generate(Ids{3}, {.tokens_max = 1}, shrink, kNoProgress));
  EXPECT_EQ(engine->budget().limit_bytes(), floor);
  EXPECT_EQ(script.last(), (ModelArrangement{0, 6, 16}));
}

TEST(EngineMemory, MoreSessionsTakeFromSlots) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + 3 * 8 * kContextTokens);
  const size_t slots = script.last().expert_slots;
  const auto first = engine->create_session().take_value();
  EXPECT_EQ(script.arrangements.size(), 1u);
  const auto second = engine->create_session().take_value();
  EXPECT_EQ(script.last(), engine->plan().arrangement);
  EXPECT_LT(script.last().expert_slots, slots);
  EXPECT_LE(engine->budget().used_bytes(), engine->budget().limit_bytes());
  EXPECT_EQ(generate(*first, {3}, 2).value().ids, (Ids{4, 5}));
  EXPECT_EQ(generate(*second, {7}, 2).value().ids, (Ids{8, 9}));
}

TEST(EngineMemory, TheFloorIsThatOfAllSessions) {
  Tight script;
  const size_t floor = floor_of(script);
  const auto engine = engine_with(script, kPlentyBytes);
  const auto first = engine->create_session().take_value();
  auto second = engine->create_session().take_value();
  const Status refused = engine->set_budget(floor);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  second.reset();
  EXPECT_TRUE(engine->set_budget(floor));
}

TEST(EngineMemory, MemoryOfADestroyedSessionIsDividedTheNextTime) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + 3 * 8 * kContextTokens);
  const ModelArrangement alone = script.last();
  const auto first = engine->create_session().take_value();
  auto second = engine->create_session().take_value();
  const size_t used = engine->budget().used_bytes();
  second.reset();
  EXPECT_LT(engine->budget().used_bytes(), used);
  ASSERT_TRUE(engine->set_budget(engine->budget().limit_bytes()));
  EXPECT_EQ(script.last(), alone);
}

TEST(EngineMemory, ARefusedSessionChangesNothing) {
  Tight script;
  const auto engine = engine_with(script, floor_of(script) + 100);
  const ModelArrangement before = script.last();
  const auto first = engine->create_session().take_value();
  const auto second = engine->create_session();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBudget);
  EXPECT_EQ(script.last(), before);
  EXPECT_TRUE(generate(*first, {3}, 2));
}

/// Fails every step of the arrangements that `act` makes, one after the other, and sees that the engine goes on.
void expect_usable_after_failures(size_t bytes, const std::function<Status(Engine&, Session&)>& act) {
  for (size_t n = 0;; ++n) {
    Tight script;
    const auto engine = engine_with(script, bytes == 0 ? floor_of(script) + kSomeBytes : bytes);
    const auto session = engine->create_session().take_value();
    const size_t steps = script.step_count;
    script.fail_step = steps + n;
    const Status status = act(*engine, *session);
    if (script.step_count <= steps + n) {
      EXPECT_TRUE(status);
      EXPECT_GT(n, 0u);
      return;  // There are no more steps.
    }
    // A budget that came with the last token fails after the answer, and is only told of.
    ASSERT_TRUE(status || status.error().code == Code::kIo);
    ASSERT_TRUE(session->reset());
    const auto answer = generate(*session, {3}, 3);
    ASSERT_TRUE(answer) << n << ": " << answer.error().message;
    ASSERT_EQ(answer.value().ids, (Ids{4, 5, 6}));
    ASSERT_EQ(script.arranged_as.back(), engine->plan().arrangement) << n;
    ASSERT_TRUE(engine->set_budget(engine->budget().limit_bytes())) << n;
    ASSERT_LE(engine->budget().peak_bytes(), kPlentyBytes);
  }
}

Status status_of(const Result<Generation>& result) {
  return result ? Status() : Status(Error(result.error()));
}

TEST(EngineMemory, AFailedLendingLeavesTheEngineUsable) {
  expect_usable_after_failures(0,
                               [](Engine&, Session& session) { return status_of(generate(session, Ids(64, 1), 2)); });
}

TEST(EngineMemory, AFailedChangeOfTheBudgetLeavesTheEngineUsable) {
  Tight script;
  const size_t floor = floor_of(script);
  expect_usable_after_failures(0, [&](Engine& engine, Session&) { return engine.set_budget(floor); });
  expect_usable_after_failures(floor, [](Engine& engine, Session&) { return engine.set_budget(kPlentyBytes); });
}

TEST(EngineMemory, AFailedChangeOfTheBudgetDuringAnAnswerLeavesTheEngineUsable) {
  Tight script;
  const size_t floor = floor_of(script);
  expect_usable_after_failures(0, [&](Engine& engine, Session& session) {
    const auto shrink = [&](const AnswerPiece&) { return engine.set_budget(floor) ? true : false; };
    return status_of(session.generate(Ids{3}, {.tokens_max = 2}, shrink, kNoProgress));
  });
}

TEST(EngineMemory, AFailedDivisionForASessionLeavesTheEngineUsable) {
  Tight script;
  const size_t bytes = floor_of(script) + 3 * 8 * kContextTokens;
  expect_usable_after_failures(bytes, [](Engine& engine, Session&) {
    auto second = engine.create_session();
    return second ? Status() : Status(second.take_error());
  });
}

TEST(EngineMemory, AFailedOpeningLeavesNothingBehind) {
  Tight script;
  for (size_t n = 0; n < 6; ++n) {
    script.fail_step = script.step_count + n;
    const auto failed = Engine::open(with_bytes(kPlentyBytes), fake_sources(script));
    if (script.step_count <= script.fail_step) return;
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kIo);
  }
  FAIL() << "there are more steps than were tried";
}

/// A fake refuses memory beyond the ceiling: any way from one division to another that takes before it gives fails.
TEST(EngineMemory, NoOrderOfBudgetsPromptsAndSessionsGoesBeyondTheCeiling) {
  std::mt19937 random(7);
  const auto below = [&](size_t bound) { return random() % bound; };
  for (int round = 0; round < 20; ++round) {
    Tight script;
    script.scratch_bytes_per_token = 10 + below(200);
    script.ring_bytes = 100 + below(9000);
    const size_t floor = floor_of(script);
    const auto engine = engine_with(script, floor + below(30000));
    std::vector<std::unique_ptr<Session>> sessions;
    sessions.push_back(engine->create_session().take_value());
    for (int step = 0; step < 60; ++step) {
      const size_t bytes = floor + below(40000);
      const size_t chosen = below(sessions.size());
      switch (below(4)) {
        case 0: {
          const Status status = engine->set_budget(bytes);
          // More sessions have a higher floor.
          ASSERT_TRUE(status || status.error().message.find("floor") != std::string::npos) << status.error().message;
          break;
        }
        case 1: {
          auto session = engine->create_session();
          if (session) sessions.push_back(session.take_value());
          break;
        }
        case 2:
          if (sessions.size() > 1) sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(chosen));
          break;
        default: {
          Session& session = *sessions[chosen];
          ASSERT_TRUE(session.reset());
          const auto change = [&](const AnswerPiece&) { return engine->set_budget(bytes) || true; };
          const auto answer =
              session.generate(Ids(1 + below(900), 1), {.tokens_max = 1 + below(3)}, change, kNoProgress);
          ASSERT_TRUE(answer) << answer.error().message;
          ASSERT_EQ(answer.value().ids.front(), 2);
        }
      }
      ASSERT_LE(engine->budget().used_bytes(), engine->budget().limit_bytes());
    }
  }
}

}  // namespace
}  // namespace headrace
