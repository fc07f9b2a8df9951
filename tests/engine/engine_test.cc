#include "engine/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/fakes.h"
#include "engine/session.h"

namespace headrace {
namespace {

using test::fake_sources;
using test::FakeScript;

EngineOptions with_bytes(size_t bytes) {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kBytes;
  options.budget_bytes = bytes;
  options.thread_count = 1;
  return options;
}

EngineOptions at_floor() {
  EngineOptions options;
  options.budget_kind = EngineOptions::BudgetKind::kFloor;
  options.thread_count = 1;
  return options;
}

constexpr auto kIgnorePiece = [](const AnswerPiece&) { return true; };
constexpr auto kNoProgress = [](size_t, size_t) { return true; };
using Ids = std::vector<TokenId>;

size_t floor_of(FakeScript& script) {
  return Engine::plan(at_floor(), fake_sources(script)).value().plan.floor_bytes;
}

TEST(Engine, RunsAtTheFloorAndRefusesAByteLess) {
  FakeScript script;
  const size_t floor = floor_of(script);
  const auto engine = Engine::open(with_bytes(floor), fake_sources(script)).take_value();
  EXPECT_EQ(script.last(), (ModelArrangement{0, 6, 16}));
  EXPECT_LE(engine->budget().peak_bytes(), floor);
  EXPECT_TRUE(engine->create_session());
  const auto refused = Engine::open(with_bytes(floor - 1), fake_sources(script));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().message.find(std::to_string(floor)), std::string::npos) << refused.error().message;
}

TEST(Engine, NamesTheFloorHoweverSmallTheBudget) {
  FakeScript script;
  script.open_bytes = 1 << 20;
  const size_t floor = floor_of(script);
  const size_t process = process_memory_bytes(0);
  for (const size_t bytes : {size_t{1}, process - 1, process, process + 1000, floor - 5000}) {
    const auto refused = Engine::open(with_bytes(bytes), fake_sources(script));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kBudget);
    EXPECT_NE(refused.error().message.find(std::to_string(floor)), std::string::npos) << refused.error().message;
  }
}

TEST(Engine, AModelIsOpenedOnce) {
  FakeScript script;
  ASSERT_TRUE(Engine::open(with_bytes(1 << 30), fake_sources(script)));
  EXPECT_EQ(script.open_count, 1u);
  EXPECT_EQ(script.arrangements.size(), 1u);
}

TEST(Engine, ARefusedModelAndAPlanLoadNothing) {
  FakeScript script;
  ASSERT_FALSE(Engine::open(with_bytes(1), fake_sources(script)));
  ASSERT_TRUE(Engine::plan(with_bytes(1 << 30), fake_sources(script)));
  EXPECT_EQ(script.step_count, 0u);
}

TEST(Engine, APlanBelowTheFloorIsNoError) {
  FakeScript script;
  const PlannedModel planned = Engine::plan(with_bytes(1), fake_sources(script)).take_value();
  EXPECT_FALSE(planned.plan.fits());
  EXPECT_EQ(planned.plan.budget_bytes, 1u);
  EXPECT_EQ(planned.info.family, "fake");
}

TEST(Engine, MemoryAboveTheFloorGoesToSlotsAndLayers) {
  FakeScript script;
  const size_t floor = floor_of(script);
  auto engine = Engine::open(with_bytes(floor + 10 * script.slot_bytes + 10), fake_sources(script)).take_value();
  EXPECT_EQ(script.last(), (ModelArrangement{0, 16, 16}));
  EXPECT_EQ(engine->plan().arrangement, script.last());
  engine = Engine::open(with_bytes(floor + 2600), fake_sources(script)).take_value();
  EXPECT_EQ(script.last().pinned_groups, 1u);
  engine = Engine::open(with_bytes(floor + (1 << 20)), fake_sources(script)).take_value();
  EXPECT_EQ(script.last(), (ModelArrangement{3, 64, 4096}));
}

TEST(Engine, AFixedNumberOfPinnedLayersIsKept) {
  FakeScript script;
  EngineOptions options = with_bytes(1 << 30);
  options.pinned_layers = 1;
  ASSERT_TRUE(Engine::open(options, fake_sources(script)));
  EXPECT_EQ(script.last().pinned_groups, 1u);
  options.pinned_layers = 3;
  const auto refused = Engine::open(options, fake_sources(script));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
}

TEST(Engine, AChunkThatWasAskedForIsNotChanged) {
  FakeScript script;
  script.scratch_bytes_per_token = 1000;
  EngineOptions options = at_floor();
  options.prefill_chunk_tokens = 100;
  const auto engine = Engine::open(options, fake_sources(script)).take_value();
  EXPECT_EQ(script.last().chunk_tokens, 100u);
  const auto session = engine->create_session().take_value();
  ASSERT_TRUE(session->generate(Ids(150, 1), {.tokens_max = 1}, kIgnorePiece, kNoProgress));
  EXPECT_EQ(script.chunk_sizes, (std::vector<size_t>{100, 50}));
  EXPECT_EQ(script.arrangements.size(), 1u);
}

TEST(Engine, ChunksAreNotLargerThanTheContext) {
  FakeScript script;
  EngineOptions options = with_bytes(1 << 30);
  options.context_tokens = 5;
  ASSERT_TRUE(Engine::open(options, fake_sources(script)));
  EXPECT_EQ(script.last().chunk_tokens, 5u);
  options.context_tokens = 100;
  ASSERT_TRUE(Engine::open(options, fake_sources(script)));
  EXPECT_EQ(script.last().chunk_tokens, 100u);
}

TEST(Engine, TheContextIsAtMostTheModels) {
  FakeScript script;
  script.context_max = 100;
  EngineOptions options = with_bytes(1 << 30);
  EXPECT_EQ(Engine::open(options, fake_sources(script)).value()->plan().context_tokens, 100u);
  options.context_tokens = 101;
  const auto refused = Engine::open(options, fake_sources(script));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_NE(refused.error().message.find("101"), std::string::npos);
}

TEST(Engine, WhatTheMachineDoesNotHaveIsTheCallersMistake) {
  FakeScript script;
  for (const char* isa : {"sse9", "avx1024"}) {
    EngineOptions options = with_bytes(1 << 30);
    options.isa = isa;
    const auto refused = Engine::open(options, fake_sources(script));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kArgument);
  }
  EngineOptions options = with_bytes(1 << 30);
  options.cpus = "0-";
  EXPECT_EQ(Engine::open(options, fake_sources(script)).error().code, Code::kArgument);
  options = with_bytes(1 << 30);
  options.thread_count = 1000;
  EXPECT_EQ(Engine::open(options, fake_sources(script)).error().code, Code::kArgument);
}

TEST(Engine, AnAutomaticBudgetIsBelowWhatTheMachineHas) {
  FakeScript script;
  EngineOptions options;
  const auto engine = Engine::open(options, fake_sources(script)).take_value();
  EXPECT_GT(engine->plan().budget_bytes, size_t{64} << 20);
  EXPECT_EQ(script.last().expert_slots, script.slots_max);
}

TEST(Engine, AnAutomaticBudgetForAnotherMachineIsAShareOfItsMemory) {
  FakeScript script;
  EngineOptions options;
  options.ram_bytes = size_t{1} << 30;
  const PlannedModel planned = Engine::plan(options, fake_sources(script)).take_value();
  EXPECT_EQ(planned.plan.budget_bytes, static_cast<size_t>(Engine::kAutomaticShare * (size_t{1} << 30)));
}

TEST(Engine, ALimitOnLockedMemoryIsToldOnce) {
  FakeScript script;
  script.is_locked = false;
  std::vector<std::string> lines;
  Log log(LogLevel::kWarn, [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto engine = Engine::open(with_bytes(1 << 30), fake_sources(script), log).take_value();
  ASSERT_TRUE(engine->set_budget(1 << 29));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("lock"), std::string::npos);
}

TEST(Engine, SessionsBeyondThePlanNeedRoomInTheBudget) {
  FakeScript script;
  const size_t floor = floor_of(script);
  const auto engine = Engine::open(with_bytes(floor), fake_sources(script)).take_value();
  auto first = engine->create_session().take_value();
  const auto second = engine->create_session();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBudget);
  first.reset();
  EXPECT_TRUE(engine->create_session());
}

TEST(Engine, ASessionAfterAnotherStartsEmpty) {
  FakeScript script;
  const auto engine = test::fake_engine(script);
  for (int round = 0; round < 2; ++round) {
    const auto session = engine->create_session().take_value();
    EXPECT_EQ(session->token_count(), 0u);
    const std::vector<TokenId> prompt = {3};
    EXPECT_EQ(session->generate(prompt, {.tokens_max = 1}, kIgnorePiece, kNoProgress).value().ids,
              (std::vector<TokenId>{4}));
  }
}

TEST(Engine, TwoSessionsDoNotDisturbEachOther) {
  FakeScript script;
  const auto engine = test::fake_engine(script);
  const auto a = engine->create_session().take_value();
  const auto b = engine->create_session().take_value();
  const std::vector<TokenId> three = {3};
  const std::vector<TokenId> nine = {9};
  ASSERT_TRUE(a->generate(three, {.tokens_max = 2}, kIgnorePiece, kNoProgress));
  ASSERT_TRUE(b->generate(nine, {.tokens_max = 2}, kIgnorePiece, kNoProgress));
  EXPECT_EQ(a->generate({}, {.tokens_max = 1}, kIgnorePiece, kNoProgress).value().ids, (std::vector<TokenId>{6}));
  EXPECT_EQ(b->generate({}, {.tokens_max = 1}, kIgnorePiece, kNoProgress).value().ids, (std::vector<TokenId>{12}));
}

TEST(Engine, ASecondCallerAtTheSameTimeIsRefused) {
  FakeScript script;
  const auto engine = test::fake_engine(script);
  const auto session = engine->create_session().take_value();
  Status inner;
  script.on_pass = [&] {
    std::thread other([&] { inner = session->reset(); });
    other.join();
  };
  const std::vector<TokenId> prompt = {3};
  ASSERT_TRUE(session->generate(prompt, {.tokens_max = 1}, kIgnorePiece, kNoProgress));
  ASSERT_FALSE(inner);
  EXPECT_EQ(inner.error().code, Code::kArgument);
}

TEST(Engine, StatisticsHaveEveryKeyOfTheContract) {
  FakeScript script;
  const auto engine = test::fake_engine(script);
  const auto session = engine->create_session().take_value();
  const auto json = nlohmann::json::parse(statistics_json(session->statistics()));
  const char* const keys[] = {"prompt_tokens",
                              "tokens",
                              "prefill_s",
                              "decode_s",
                              "prefill_tok_s",
                              "decode_tok_s",
                              "ttft_s",
                              "bytes_read",
                              "bytes_read_trunk",
                              "bytes_read_experts",
                              "bytes_read_head",
                              "bytes_read_headers",
                              "bytes_read_speculative",
                              "bytes_speculative_wasted",
                              "expert_hits",
                              "expert_misses",
                              "io_wait_s",
                              "compute_s",
                              "drive_gb_s",
                              "prefill_chunks",
                              "major_faults",
                              "page_cache_peak_bytes",
                              "peak_rss_bytes",
                              "synthetic",
                              "budget_bytes",
                              "budget_used_bytes",
                              "pinned_layers",
                              "streamed_layers",
                              "blocks_streamed",
                              "expert_slots",
                              "working_set_bytes",
                              "direct_io",
                              "io_backend",
                              "isa",
                              "threads",
                              "cpu_temperature_c",
                              "drive_temperature_c"};
  for (const char* key : keys) EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json.size(), std::size(keys));
  EXPECT_TRUE(json["ttft_s"].is_null());
  EXPECT_TRUE(json["decode_tok_s"].is_null());
  EXPECT_EQ(json["budget_bytes"], size_t{1} << 30);
}

}  // namespace
}  // namespace headrace
