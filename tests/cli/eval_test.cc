#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cli/program.h"
#include "support/oracle_vectors.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

using test::plain_read;
using test::run_for_json;
using test::run_program;
using test::TempFolder;

const std::string kPrompt = "0,17,255,301,42,42,7,500,512,532,100,64";

using Rows = std::vector<std::vector<double>>;

/// Rows of logits: printed as float32, so they are read as float32.
Rows rows_of(const nlohmann::json& json) {
  Rows rows;
  for (const auto& row : json) {
    rows.emplace_back();
    for (const auto& value : row) rows.back().push_back(value.get<float>());
  }
  return rows;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double relative_distance(const std::vector<double>& actual, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) sum += std::pow(actual[i] - expected[i], 2);
  return std::sqrt(sum) / norm(expected);
}

struct Golden {
  nlohmann::json config;
  const char* vectors;
  std::vector<double> norms;
  std::vector<size_t> argmax;
  std::vector<double> first_logits;
  std::vector<double> last_logits;
  std::vector<int> greedy;
};

/// Section 15.4 of the specification of the Kimi family.
std::vector<Golden> goldens() {
  return {
      {test::tiny_linear_config(),
       "tiny_linear",
       {26.985821, 28.273488, 28.721391, 28.570627, 27.969976, 27.596686, 28.009553, 26.521568, 25.879476, 28.515309,
        28.262397, 27.400553},
       {376, 250, 352, 536, 611, 183, 647, 30, 270, 518, 278, 216},
       {-0.51336255, -1.2880081, 2.5435194, -0.87156972, -0.052815275, -0.84945525},
       {1.6542233, -0.60758369, -0.35454352, 0.71986234, 0.26153874, 1.391922, -1.0699589, -0.64454804},
       {216, 615, 321, 33}},
      {test::tiny_k3_config(),
       "tiny_k3",
       {28.359032, 29.178251, 28.781418, 30.372151, 27.58502, 29.185788, 27.96787, 28.435126, 27.474649, 28.624891,
        27.993276, 28.612134},
       {509, 530, 69, 367, 737, 754, 363, 194, 737, 124, 272, 469},
       {0.49749951, -0.61160367, 0.22699233, -0.46989649, 0.5239461, 0.29666854},
       {-1.0411926, 0.18615311, 0.98769016, 0.029831851, 1.0405621, -0.45654915, -1.8763929, 1.3994934},
       {469, 411, 440, 506, 420, 415, 591, 721}},
  };
}

/// Bounds of the specification for the logits of tiny models.
constexpr double kRelativeMax = 1e-4;
constexpr double kAbsoluteMax = 5e-4;

TEST(EvalCommand, RefusedIdsLeaveNoHalfObjectBehind) {
  for (const char* logits : {"last", "all"}) {
    const auto result = run_program({"eval", "demo", "--ids", "1,999999", "--json", "--logits", logits});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_EQ(result.out, "");
  }
}

TEST(EvalCommand, LogitsOfTheTinyModelsAreTheGoldenOnes) {
  for (const Golden& golden : goldens()) {
    const TempFolder folder;
    folder.write(test::tiny_checkpoint(golden.config));
    const auto result =
        run_for_json({"eval", folder.path(), "--ids", kPrompt, "--logits", "all", "--trace-experts", "--json"});
    const Rows logits = rows_of(result["logits"]);
    ASSERT_EQ(logits.size(), 12u);
    for (size_t t = 0; t < logits.size(); ++t) {
      EXPECT_NEAR(norm(logits[t]), golden.norms[t], kRelativeMax * golden.norms[t]);
      EXPECT_EQ(std::ranges::max_element(logits[t]) - logits[t].begin(), golden.argmax[t]);
    }
    for (size_t i = 0; i < golden.first_logits.size(); ++i) {
      EXPECT_NEAR(logits[0][i], golden.first_logits[i], kAbsoluteMax);
    }
    for (size_t i = 0; i < golden.last_logits.size(); ++i) {
      EXPECT_NEAR(logits[11][i], golden.last_logits[i], kAbsoluteMax);
    }
    const auto oracle = test::load_oracle_vectors(std::string("models/") + golden.vectors);
    for (size_t t = 0; t < logits.size(); ++t) {
      EXPECT_LT(relative_distance(logits[t], oracle["logits"][t]), kRelativeMax) << golden.vectors << " token " << t;
    }
    const auto& experts = result["experts"];
    ASSERT_EQ(experts.size(), 12u);
    for (size_t t = 0; t < experts.size(); ++t) {
      const auto& expected = oracle["experts"][t];
      ASSERT_EQ(experts[t].size(), expected.size());
      for (size_t layer = 0; layer < expected.size(); ++layer) {
        EXPECT_EQ(experts[t][layer][0], expected[layer][0]);
        EXPECT_EQ(experts[t][layer][1], expected[layer][1]);
        EXPECT_LT(relative_distance(experts[t][layer][2], expected[layer][2]), kRelativeMax);
      }
    }
  }
}

TEST(EvalCommand, GreedyContinuationsOfTheTinyModelsAreTheGoldenOnes) {
  for (const Golden& golden : goldens()) {
    const TempFolder folder;
    folder.write(test::tiny_checkpoint(golden.config));
    const auto result =
        run_for_json({"run", folder.path(), "--ids", kPrompt, "-n", std::to_string(golden.greedy.size()), "--json"});
    EXPECT_EQ(result["ids"].get<std::vector<int>>(), golden.greedy) << golden.vectors;
  }
}

TEST(EvalCommand, LastLogitsAreTheLastRowOfAllAndReadBackExactly) {
  const std::string ids = "483,502,258,386";
  const TempFolder folder;
  const Rows all = rows_of(run_for_json({"eval", "demo", "--ids", ids, "--logits", "all", "--json"})["logits"]);
  const auto last = run_for_json({"eval", "demo", "--ids", ids, "--logits", "last", "--json"});
  EXPECT_EQ(last["tokens"], (std::vector<int>{483, 502, 258, 386}));
  ASSERT_EQ(last["logits"].size(), 1u);
  EXPECT_EQ(rows_of(last["logits"])[0], all[3]);
  const auto binary =
      run_for_json({"eval", "demo", "--ids", ids, "--logits", "all", "--logits-bin", folder.file("logits"), "--json"});
  EXPECT_FALSE(binary.contains("logits"));
  const std::string bytes = plain_read(folder.file("logits"));
  ASSERT_EQ(bytes.size(), 4u * 4352 * sizeof(float));
  for (size_t i = 0; i < 4u * 4352; ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    ASSERT_EQ(static_cast<float>(all[i / 4352][i % 4352]), value) << i;
  }
}

TEST(EvalCommand, ExpertsAreGivenForEveryTokenAlsoWithLastLogits) {
  const auto result =
      run_for_json({"eval", "demo", "--ids", "483,502,258", "--logits", "last", "--trace-experts", "--json"});
  ASSERT_EQ(result["experts"].size(), 3u);
  for (const auto& token : result["experts"]) {
    ASSERT_EQ(token.size(), 5u);
    for (const auto& layer : token) {
      EXPECT_EQ(layer[1].size(), 4u);
      EXPECT_EQ(layer[2].size(), 4u);
      EXPECT_TRUE(std::is_sorted(layer[1].begin(), layer[1].end()));
    }
  }
}

TEST(EvalCommand, NextTokensComeBestFirstWithTheirProbability) {
  const auto result = run_for_json({"eval", "demo", "Once upon a", "--top", "5", "--json"});
  ASSERT_EQ(result["next"].size(), 5u);
  EXPECT_EQ(result["next"][0]["id"], 386);
  EXPECT_EQ(result["next"][0]["text"], " time");
  const Rows logits = rows_of(run_for_json({"eval", "demo", "Once upon a", "--logits", "last", "--json"})["logits"]);
  double total = 0;
  for (const double logit : logits[0]) total += std::exp(logit);
  double before = 0;
  for (const auto& token : result["next"]) {
    const double expected = logits[0][token["id"].get<size_t>()] - std::log(total);
    EXPECT_NEAR(token["logprob"].get<double>(), expected, 1e-9);
    EXPECT_LE(token["logprob"].get<double>(), before);
    before = token["logprob"];
  }
  EXPECT_EQ(run_for_json({"eval", "demo", "Once upon a", "--top", "99999", "--json"})["next"].size(), 4352u);
  EXPECT_EQ(run_for_json({"eval", "demo", "Once upon a", "--json"})["next"].size(), 10u);
  const auto readable = run_program({"eval", "demo", "Once upon a"});
  EXPECT_EQ(readable.exit_status, 0);
  EXPECT_NE(readable.out.find("\" time\""), std::string::npos) << readable.out;
}

TEST(EvalCommand, PerplexityFollowsTheProtocolOfTheReference) {
  // The first windows of the held-out text, scored again from logits that the program gave one window at a time.
  const std::string text = plain_read(std::string(HEADRACE_SOURCE_DIR) + "/tests/data/demo/heldout.txt").substr(0, 900);
  const TempFolder folder;
  folder.write("text", text);
  const auto result =
      run_for_json({"eval", "demo", "--perplexity", "--file", folder.file("text"), "--ctx", "64", "--json"});
  const std::vector<int> ids = run_for_json({"tokenize", "demo", "--file", folder.file("text"), "--json"})["ids"];
  double nll = 0;
  double scored = 0;
  for (size_t first = 0; first < ids.size(); first += 64) {
    const size_t count = std::min<size_t>(64, ids.size() - first);
    std::string window;
    for (size_t i = 0; i < count; ++i) window += (i == 0 ? "" : ",") + std::to_string(ids[first + i]);
    const Rows logits = rows_of(run_for_json({"eval", "demo", "--ids", window, "--logits", "all", "--json"})["logits"]);
    for (size_t i = 1; i < count; ++i) {
      double total = 0;
      for (const double logit : logits[i - 1]) total += std::exp(logit);
      nll += std::log(total) - logits[i - 1][static_cast<size_t>(ids[first + i])];
      scored += 1;
    }
  }
  EXPECT_EQ(result["tokens"].get<double>(), scored);
  EXPECT_NEAR(result["nll_per_token"].get<double>(), nll / scored, 1e-9);
  EXPECT_NEAR(result["ppl"].get<double>(), std::exp(nll / scored), 1e-6);
  EXPECT_EQ(result["ctx"], 64);
  EXPECT_EQ(result["stride"], 64);
  EXPECT_NEAR(result["bits_per_byte"].get<double>(), nll / std::log(2) / result["bytes"].get<double>(), 1e-9);
}

TEST(EvalCommand, FilesForLogitsThatCannotBeWrittenAreFailedWrites) {
  const auto result =
      run_program({"eval", "demo", "hi", "--logits", "last", "--logits-bin", "/nowhere/logits", "--json"});
  EXPECT_EQ(result.exit_status, 5);
}

TEST(EvalCommand, ModelsWithoutTokenizerTakeIdsOnly) {
  const TempFolder folder;
  test::TinyOptions options;
  options.tokenizer = false;
  folder.write(test::tiny_checkpoint(test::tiny_linear_config(), options));
  EXPECT_EQ(run_for_json({"eval", folder.path(), "--ids", "1,2", "--top", "2", "--json"})["next"].size(), 2u);
  const auto text = run_program({"eval", folder.path(), "hi"});
  EXPECT_EQ(text.exit_status, 2);
  EXPECT_NE(text.error.find("--ids"), std::string::npos);
  EXPECT_EQ(run_program({"tokenize", folder.path(), "hi"}).exit_status, 4);
}

}  // namespace
}  // namespace headrace
