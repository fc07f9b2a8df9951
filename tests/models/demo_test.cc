// The trained demo model against its float64 reference numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "models/model_harness.h"

namespace headrace {
namespace {

const nlohmann::json& reference() {
  static const nlohmann::json json = [] {
    std::ifstream file(HEADRACE_SOURCE_DIR "/tests/data/demo/reference.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST(Demo, LogitsOfEveryPromptAgreeWithTheReference) {
  auto open = test::OpenModel::open(HEADRACE_SOURCE_DIR "/models/demo", {.threads = 2, .chunk_tokens = 512}, 1024);
  ASSERT_TRUE(open) << open.error().message;
  for (const auto& prompt : reference()["prompts"]) {
    SCOPED_TRACE(prompt["name"].get<std::string>());
    auto result = open.value()->run(prompt["ids"].get<std::vector<int32_t>>());
    ASSERT_TRUE(result) << result.error().message;
    const auto& logits = result.value().logits;
    for (size_t t = 0; t < logits.size(); ++t) {
      const double want = prompt["logit_norms"][t];
      EXPECT_NEAR(norm(logits[t]), want, 1e-5 * want) << t;
      const auto best = std::ranges::max_element(logits[t]) - logits[t].begin();
      EXPECT_EQ(best, prompt["argmax"][t].get<ptrdiff_t>()) << t;
    }
    for (const auto& [position, want] : prompt["logits"].items()) {
      const auto& got = logits[std::stoul(position)];
      double error = 0;
      double magnitude = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double value = want[i];
        error += (got[i] - value) * (got[i] - value);
        magnitude += value * value;
      }
      EXPECT_LT(std::sqrt(error / magnitude), 1e-5) << "position " << position;
      RecordProperty("relative_l2_at_" + position, std::to_string(std::sqrt(error / magnitude)));
    }
  }
}

TEST(Demo, BytesAreCountedWhereTheyBelong) {
  auto open = test::OpenModel::open(HEADRACE_SOURCE_DIR "/models/demo", {.chunk_tokens = 4, .expert_slots = 6}, 64);
  ASSERT_TRUE(open) << open.error().message;
  Model& model = open.value()->model();
  const auto bytes = [&](ReadPurpose purpose) {
    return open.value()->queue().counters().bytes_read[static_cast<size_t>(purpose)];
  };
  const uint64_t trunk = bytes(ReadPurpose::kTrunk);
  const uint64_t head = bytes(ReadPurpose::kHead);
  EXPECT_GT(trunk, 0u);
  EXPECT_GT(head, 0u);
  EXPECT_EQ(bytes(ReadPurpose::kExperts), 0u);
  ASSERT_TRUE(open.value()->run({483, 502, 258, 386}));
  EXPECT_EQ(bytes(ReadPurpose::kTrunk), trunk) << "the trunk is pinned";
  // Four rows of 192 BF16 numbers, each widened to one or two blocks.
  EXPECT_GE(bytes(ReadPurpose::kHead) - head, 4u * 192 * 2);
  EXPECT_LE(bytes(ReadPurpose::kHead) - head, 4u * 2 * 4096);
  EXPECT_GE(bytes(ReadPurpose::kExperts), model.counters().expert_misses * model.info().expert_bytes);
}

TEST(Demo, ExpertsOfTheLastTokenAgreeWithTheReference) {
  auto open = test::OpenModel::open(HEADRACE_SOURCE_DIR "/models/demo", {.threads = 2, .chunk_tokens = 512}, 1024);
  ASSERT_TRUE(open) << open.error().message;
  for (const auto& prompt : reference()["prompts"]) {
    auto result = open.value()->run(prompt["ids"].get<std::vector<int32_t>>());
    ASSERT_TRUE(result) << result.error().message;
    const auto& last = result.value().routing.back();
    const auto& want = prompt["experts_at_last_token"];
    ASSERT_EQ(last.size(), want.size());
    for (size_t layer = 0; layer < want.size(); ++layer) {
      auto ids = want[layer].get<std::vector<uint32_t>>();
      std::ranges::sort(ids);
      EXPECT_EQ(last[layer].experts, ids) << prompt["name"] << ", layer " << layer;
    }
  }
}

TEST(Demo, GreedyContinuationsAgreeWithTheReference) {
  auto open = test::OpenModel::open(HEADRACE_SOURCE_DIR "/models/demo", {.threads = 2, .chunk_tokens = 512}, 1024);
  ASSERT_TRUE(open) << open.error().message;
  for (const auto& prompt : reference()["prompts"]) {
    auto result = open.value()->run(prompt["ids"].get<std::vector<int32_t>>());
    ASSERT_TRUE(result) << result.error().message;
    const auto want = prompt["greedy"]["ids"].get<std::vector<int32_t>>();
    auto got = open.value()->continue_greedily(result.value().logits.back(), want.size());
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got.value(), want) << prompt["name"];
  }
}

}  // namespace
}  // namespace headrace
