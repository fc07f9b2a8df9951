#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "headrace/headrace.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"

namespace {

using headrace::test::TempFolder;

const std::string kDemo = std::string(HEADRACE_SOURCE_DIR) + "/models/demo";

nlohmann::json reference_prompts() {
  return nlohmann::json::parse(
      headrace::test::plain_read(std::string(HEADRACE_SOURCE_DIR) + "/tests/data/demo/reference.json"))["prompts"];
}

headrace_error make_error() {
  headrace_error error{};
  error.struct_size = sizeof error;
  return error;
}

headrace_model_options small_options() {
  headrace_model_options options{};
  options.struct_size = sizeof options;
  options.budget_bytes = uint64_t{256} << 20;
  options.thread_count = 2;
  return options;
}

/// The text of a function that hands JSON over.
template <class Function, class... Arguments>
nlohmann::json json_of(Function* function, Arguments... arguments) {
  char* text = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(function(arguments..., &text, &bytes, nullptr), HEADRACE_OK);
  const auto json = nlohmann::json::parse(std::string(text, bytes));
  EXPECT_EQ(std::strlen(text), bytes);
  headrace_free(text);
  return json;
}

/// The demo model, opened once for all tests of this file.
class Api : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    headrace_error error = make_error();
    const headrace_model_options options = small_options();
    ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options, &model_, &error), HEADRACE_OK) << error.message;
  }
  static void TearDownTestSuite() {
    headrace_model_close(model_);
    model_ = nullptr;
  }
  void SetUp() override {
    ASSERT_NE(model_, nullptr);
    ASSERT_EQ(headrace_session_create(model_, &session_, nullptr), HEADRACE_OK);
  }
  void TearDown() override { headrace_session_destroy(session_); }

  struct Answer {
    headrace_finish finish;
    std::vector<int32_t> ids;
    std::string text;
  };
  Answer generate(const std::vector<int32_t>& ids, const headrace_generate_options& options) {
    headrace_error error = make_error();
    headrace_generation result{};
    result.struct_size = sizeof result;
    EXPECT_EQ(headrace_session_generate(session_, ids.data(), ids.size(), &options, nullptr, nullptr, &result, &error),
              HEADRACE_OK)
        << error.message;
    Answer answer{result.finish, {result.ids, result.ids + result.id_count}, {result.text, result.text_bytes}};
    headrace_free(result.ids);
    headrace_free(result.text);
    return answer;
  }

  static headrace_model* model_;
  headrace_session* session_ = nullptr;
};

headrace_model* Api::model_ = nullptr;

headrace_generate_options generate_options(size_t tokens_max) {
  headrace_generate_options options{};
  options.struct_size = sizeof options;
  options.tokens_max = tokens_max;
  return options;
}

TEST_F(Api, GreedyIdsAndTextOfTheDemoModelAreThoseOfItsReference) {
  for (const auto& prompt : reference_prompts()) {
    ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
    const std::vector<int32_t> expected = prompt["greedy"]["ids"];
    headrace_generate_options options = generate_options(expected.size());
    options.ignore_stop_ids = 1;
    const Answer answer = generate(prompt["ids"].get<std::vector<int32_t>>(), options);
    EXPECT_EQ(answer.ids, expected) << prompt["name"];
    EXPECT_EQ(answer.text, prompt["greedy"]["text"].get<std::string>()) << prompt["name"];
    EXPECT_EQ(answer.finish, HEADRACE_FINISH_LENGTH);
  }
}

struct Evaluated {
  std::vector<size_t> indexes;
  std::vector<std::vector<float>> logits;
  std::vector<std::vector<std::vector<uint32_t>>> experts;
  std::vector<float> weight_sums;
};

int keep_token(void* user, const headrace_token_result* result) {
  auto& evaluated = *static_cast<Evaluated*>(user);
  evaluated.indexes.push_back(result->index);
  if (result->logits) evaluated.logits.emplace_back(result->logits, result->logits + 4352);
  std::vector<std::vector<uint32_t>> layers;
  for (size_t i = 0; i < result->routed_count; ++i) {
    const headrace_routed_experts& layer = result->routed[i];
    layers.emplace_back(layer.experts, layer.experts + layer.count);
    float sum = 0;
    for (size_t k = 0; k < layer.count; ++k) sum += layer.weights[k];
    evaluated.weight_sums.push_back(sum);
  }
  evaluated.experts.push_back(layers);
  return 0;
}

TEST_F(Api, LogitsAndExpertsOfTheDemoModelAreThoseOfItsReference) {
  for (const auto& prompt : reference_prompts()) {
    ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
    const std::vector<int32_t> ids = prompt["ids"];
    headrace_evaluate_options options{};
    options.struct_size = sizeof options;
    options.all_logits = 1;
    options.routing = 1;
    Evaluated evaluated;
    ASSERT_EQ(headrace_session_evaluate(session_, ids.data(), ids.size(), &options, keep_token, &evaluated, nullptr),
              HEADRACE_OK);
    ASSERT_EQ(evaluated.logits.size(), ids.size());
    for (const auto& [position, expected] : prompt["logits"].items()) {
      const std::vector<float>& actual = evaluated.logits[std::stoul(position)];
      double difference = 0;
      double norm = 0;
      for (size_t i = 0; i < actual.size(); ++i) {
        difference += std::pow(actual[i] - expected[i].get<double>(), 2);
        norm += std::pow(expected[i].get<double>(), 2);
      }
      // The bound of the specification for float32 against float64.
      EXPECT_LT(std::sqrt(difference / norm), 1e-4) << prompt["name"] << " position " << position;
    }
    // Stored in the order of their scores; ours ascend by id.
    const auto& reference_experts = prompt["experts_at_last_token"];
    ASSERT_EQ(evaluated.experts.back().size(), reference_experts.size());
    for (size_t layer = 0; layer < reference_experts.size(); ++layer) {
      auto expected = reference_experts[layer].get<std::vector<uint32_t>>();
      std::ranges::sort(expected);
      EXPECT_EQ(evaluated.experts.back()[layer], expected);
    }
  }
}

TEST_F(Api, EvaluationWithoutOptionsGivesTheLastLogits) {
  const std::vector<int32_t> ids = {483, 502, 258};
  Evaluated evaluated;
  ASSERT_EQ(headrace_session_evaluate(session_, ids.data(), ids.size(), nullptr, keep_token, &evaluated, nullptr),
            HEADRACE_OK);
  EXPECT_EQ(evaluated.indexes, (std::vector<size_t>{2}));
  EXPECT_EQ(evaluated.logits.size(), 1u);
}

TEST_F(Api, GenerationStopsByItselfAtAStopIdOfTheModel) {
  for (const auto& prompt : reference_prompts()) {
    if (prompt["name"] != "chat, thinking off") continue;
    const Answer answer = generate(prompt["ids"].get<std::vector<int32_t>>(), generate_options(0));
    EXPECT_EQ(answer.finish, HEADRACE_FINISH_STOP);
    EXPECT_EQ(answer.ids.back(), 4098);
    EXPECT_EQ(answer.text.find("<|end_of_msg|>"), std::string::npos);
    EXPECT_FALSE(answer.text.empty());
  }
}

TEST_F(Api, PiecesJoinToTheTextAndStopStringsAreNotPrinted) {
  headrace_generate_options options = generate_options(40);
  const char* const stops[] = {"girl named", "never there"};
  options.stops = stops;
  options.stop_count = 2;
  std::string streamed;
  const auto keep = [](void* user, const headrace_piece* piece) {
    static_cast<std::string*>(user)->append(piece->text, piece->text_bytes);
    return 0;
  };
  const std::vector<int32_t> ids = {483, 502, 258, 386};
  headrace_generation result{};
  result.struct_size = sizeof result;
  ASSERT_EQ(headrace_session_generate(session_, ids.data(), ids.size(), &options, keep, &streamed, &result, nullptr),
            HEADRACE_OK);
  EXPECT_EQ(streamed, ", there was a young ");
  EXPECT_EQ(std::string(result.text, result.text_bytes), streamed);
  EXPECT_EQ(result.finish, HEADRACE_FINISH_STOP);
  headrace_free(result.ids);
  headrace_free(result.text);
}

TEST_F(Api, AnotherThreadCancels) {
  const std::vector<int32_t> ids = {483, 502, 258, 386};
  struct Shared {
    headrace_session* session;
    std::thread canceller;
  } shared{session_, {}};
  const auto cancel_from_elsewhere = [](void* user, const headrace_piece*) {
    auto& data = *static_cast<Shared*>(user);
    if (data.canceller.joinable()) return 0;
    data.canceller = std::thread([session = data.session] { headrace_session_cancel(session); });
    data.canceller.join();
    data.canceller = std::thread([] {});
    return 0;
  };
  const headrace_generate_options options = generate_options(0);
  headrace_generation result{};
  result.struct_size = sizeof result;
  ASSERT_EQ(headrace_session_generate(session_, ids.data(), ids.size(), &options, cancel_from_elsewhere, &shared,
                                      &result, nullptr),
            HEADRACE_OK);
  shared.canceller.join();
  EXPECT_EQ(result.finish, HEADRACE_FINISH_CANCELLED);
  EXPECT_EQ(result.id_count, 1u);
  headrace_free(result.ids);
  headrace_free(result.text);
}

TEST_F(Api, ACallbackCancelsAnEvaluation) {
  const std::vector<int32_t> ids = {483, 502, 258, 386};
  headrace_error error = make_error();
  const auto refuse = [](void*, const headrace_token_result*) { return 1; };
  EXPECT_EQ(headrace_session_evaluate(session_, ids.data(), ids.size(), nullptr, refuse, nullptr, &error),
            HEADRACE_CANCELLED);
  EXPECT_EQ(error.status, HEADRACE_CANCELLED);
}

TEST_F(Api, BadIdsAreRefusedByNumber) {
  headrace_error error = make_error();
  for (const int32_t id : {-1, 4352, INT32_MAX, INT32_MIN}) {
    const std::vector<int32_t> ids = {1, id};
    EXPECT_EQ(headrace_session_evaluate(session_, ids.data(), ids.size(), nullptr, nullptr, nullptr, &error),
              HEADRACE_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(std::to_string(id)), std::string::npos) << error.message;
  }
  EXPECT_EQ(headrace_session_token_count(session_), 0u);
}

TEST_F(Api, OptionsOutOfRangeAreRefusedByName) {
  const std::vector<int32_t> ids = {1};
  const auto refused = [&](headrace_generate_options options, const char* name) {
    headrace_error error = make_error();
    EXPECT_EQ(headrace_session_generate(session_, ids.data(), ids.size(), &options, nullptr, nullptr, nullptr, &error),
              HEADRACE_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(name), std::string::npos) << error.message;
  };
  headrace_generate_options options = generate_options(1);
  options.temperature = -1;
  refused(options, "temperature");
  options = generate_options(1);
  options.top_p = NAN;
  refused(options, "top_p");
  options = generate_options(1);
  options.min_p = 2;
  refused(options, "min_p");
  options = generate_options(1);
  options.ignore_stop_ids = 7;
  refused(options, "ignore_stop_ids");
  options = generate_options(1);
  options.repetition_penalty = -1;
  refused(options, "repetition_penalty");
  options = generate_options(1);
  options.frequency_penalty = 3;
  refused(options, "frequency_penalty");
  options = generate_options(1);
  options.presence_penalty = NAN;
  refused(options, "presence_penalty");
  options = generate_options(1);
  options.logit_bias_count = 1;
  refused(options, "logit_biases");
  options.logit_bias_count = SIZE_MAX;
  const headrace_logit_bias biases[] = {{4352, 1}};
  options.logit_biases = biases;
  refused(options, "logit biases");
  options.logit_bias_count = 1;
  refused(options, "4352");
  options = generate_options(1);
  options.stop_count = 1;
  refused(options, "stops");
  options.stop_count = SIZE_MAX;
  const char* const stops[] = {""};
  options.stops = stops;
  refused(options, "stop strings");
  options.stop_count = 1;
  refused(options, "stop string");
}

TEST_F(Api, PenaltiesAndBiasesReachTheSampler) {
  const std::vector<int32_t> prompt = {483, 502, 258, 386};
  const std::vector<int32_t> plain = generate(prompt, generate_options(12)).ids;
  // A ban of the first token, and what repeats in a long answer.
  ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
  headrace_generate_options options = generate_options(12);
  const headrace_logit_bias ban[] = {{plain[0], -HUGE_VAL}};
  options.logit_biases = ban;
  options.logit_bias_count = 1;
  const std::vector<int32_t> banned = generate(prompt, options).ids;
  EXPECT_EQ(std::ranges::count(banned, plain[0]), 0);
  for (const int which : {0, 1, 2}) {
    ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
    options = generate_options(60);
    options.ignore_stop_ids = 1;
    const auto without = generate(prompt, options).ids;
    ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
    if (which == 0) options.repetition_penalty = 100;
    if (which == 1) options.frequency_penalty = 2;
    if (which == 2) options.presence_penalty = 2;
    const auto with = generate(prompt, options).ids;
    EXPECT_NE(with, without) << which;
    if (which > 0) continue;
    EXPECT_EQ(std::set<int32_t>(with.begin(), with.end()).size(), with.size());
  }
}

TEST_F(Api, NullHandlesAndPlacesAreRefused) {
  char* text = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(headrace_model_open(nullptr, nullptr, nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_tokenizer_open(nullptr, nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_create(nullptr, nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_reset(nullptr, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_model_info_json(nullptr, &text, &bytes, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_model_info_json(model_, nullptr, &bytes, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_session_generate(session_, nullptr, 3, nullptr, nullptr, nullptr, nullptr, nullptr),
            HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_detokenize(headrace_model_tokenizer(model_), nullptr, 1, &text, &bytes, nullptr),
            HEADRACE_ARGUMENT);
  headrace_model_close(nullptr);
  headrace_session_destroy(nullptr);
  headrace_session_cancel(nullptr);
  headrace_tokenizer_close(nullptr);
  headrace_free(nullptr);
}

TEST_F(Api, AnErrorOfAnOlderCallerIsFilledAsFarAsItGoes) {
  headrace_error error = make_error();
  error.struct_size = offsetof(headrace_error, message) + 8;
  std::memset(error.message, 'x', sizeof error.message);
  EXPECT_EQ(headrace_session_reset(nullptr, &error), HEADRACE_ARGUMENT);
  EXPECT_EQ(error.status, HEADRACE_ARGUMENT);
  EXPECT_EQ(std::strlen(error.message), 7u);
  EXPECT_EQ(error.message[8], 'x');
}

TEST_F(Api, AGenerationResultOfTheWrongSizeIsRefusedAndNotWritten) {
  const std::vector<int32_t> ids = {1};
  headrace_generation result{};
  EXPECT_EQ(headrace_session_generate(session_, ids.data(), 1, nullptr, nullptr, nullptr, &result, nullptr),
            HEADRACE_ARGUMENT);
}

TEST_F(Api, TheSequenceGoesOnFromCallToCall) {
  const auto prompts = reference_prompts();
  const std::vector<int32_t> expected = prompts[0]["greedy"]["ids"];
  std::vector<int32_t> ids = generate(prompts[0]["ids"].get<std::vector<int32_t>>(), generate_options(3)).ids;
  for (const int32_t id : generate({}, generate_options(5)).ids) ids.push_back(id);
  EXPECT_EQ(ids, std::vector<int32_t>(expected.begin(), expected.begin() + 8));
  EXPECT_EQ(headrace_session_token_count(session_), 12u);
}

TEST_F(Api, TokensOfTextAndBack) {
  const headrace_tokenizer* tokenizer = headrace_model_tokenizer(model_);
  const std::string text("Once\0upon \xF0\x9F\x98\x80 <|open|>\xFF", 23);
  for (const int markup : {0, 1}) {
    int32_t* ids = nullptr;
    size_t count = 0;
    ASSERT_EQ(headrace_tokenize(tokenizer, text.data(), text.size(), markup, &ids, &count, nullptr), HEADRACE_OK);
    EXPECT_EQ(std::count(ids, ids + count, 4099), markup);  // <|open|> as one id.
    char* back = nullptr;
    size_t bytes = 0;
    ASSERT_EQ(headrace_detokenize(tokenizer, ids, count, &back, &bytes, nullptr), HEADRACE_OK);
    EXPECT_EQ(std::string(back, bytes), text);
    headrace_free(ids);
    headrace_free(back);
  }
  int32_t* ids = nullptr;
  size_t count = 1;
  ASSERT_EQ(headrace_tokenize(tokenizer, nullptr, 0, 0, &ids, &count, nullptr), HEADRACE_OK);
  EXPECT_EQ(count, 0u);
  headrace_free(ids);
  EXPECT_EQ(headrace_tokenize(tokenizer, "x", 1, 2, &ids, &count, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(ids, nullptr);
}

TEST_F(Api, DetokenizingIdsOutsideTheVocabularyIsRefused) {
  const headrace_tokenizer* tokenizer = headrace_model_tokenizer(model_);
  for (const int32_t id : {-1, 4352, INT32_MAX}) {
    char* text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(headrace_detokenize(tokenizer, &id, 1, &text, &bytes, nullptr), HEADRACE_ARGUMENT);
    EXPECT_EQ(text, nullptr);
  }
}

TEST_F(Api, InfoPlanAndStatisticsAreJson) {
  const auto info = json_of(headrace_model_info_json, static_cast<const headrace_model*>(model_));
  EXPECT_EQ(info["vocabulary_size"], 4352);
  EXPECT_EQ(info["chat_format"], "kimi-k3");
  EXPECT_EQ(info["layer_kinds"].size(), 6u);
  EXPECT_EQ(headrace_model_vocabulary_size(model_), 4352u);
  const auto plan = json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model_));
  EXPECT_EQ(plan["budget_bytes"], uint64_t{256} << 20);
  EXPECT_EQ(plan["slots"], 160);
  generate({483, 502, 258, 386}, generate_options(2));
  const auto stats = json_of(headrace_session_stats_json, session_);
  EXPECT_EQ(stats["prompt_tokens"], 4);
  EXPECT_EQ(stats["tokens"], 2);
  EXPECT_EQ(stats["threads"], 2);
  EXPECT_GT(stats["bytes_read"], 0);
  EXPECT_LE(stats["budget_used_bytes"], stats["budget_bytes"]);
}

TEST(ApiOpen, TheModelIsDescribedWithoutItsWeights) {
  const auto info = json_of(headrace_describe, kDemo.c_str());
  EXPECT_EQ(info["name"], "Kimi K3");
  EXPECT_EQ(info["tensors"], 1116);
  EXPECT_EQ(info["tokenizer_vocabulary_size"], 4352);
}

TEST(ApiOpen, TheBuildIsDescribed) {
  const auto build = json_of(headrace_build_json);
  EXPECT_EQ(build["version"], headrace_version());
  EXPECT_EQ(build["isas"].back(), "scalar");
  EXPECT_EQ(build["isas"][0], build["isa"]);
  EXPECT_EQ(build["io_backends"].back(), "threads");
  EXPECT_EQ(build["io_backends"][0], build["io_backend"]);
}

TEST(ApiPlan, APlanNeedsNoLoadingAndIsWhatLoadingDoes) {
  for (const uint64_t budget : {uint64_t{31} << 20, uint64_t{256} << 20}) {
    headrace_model_options options = small_options();
    options.budget_bytes = budget;
    const auto planned =
        json_of(headrace_plan_json, kDemo.c_str(), static_cast<const headrace_model_options*>(&options), 0.0);
    headrace_model* model = nullptr;
    ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, nullptr), HEADRACE_OK);
    EXPECT_EQ(json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model)), planned);
    headrace_model_close(model);
  }
}

TEST(ApiPlan, ABudgetBelowTheFloorIsNoError) {
  headrace_model_options options = small_options();
  options.budget_bytes = 1;
  const auto plan =
      json_of(headrace_plan_json, kDemo.c_str(), static_cast<const headrace_model_options*>(&options), 2.5);
  EXPECT_EQ(plan["fits"], false);
  EXPECT_EQ(plan["budget_bytes"], 1);
  EXPECT_NEAR(plan["expected_tok_s"].get<double>(), 2.5e9 / plan["bytes_per_token"].get<double>(), .01);
}

TEST(ApiPlan, WhatCannotBeIsRefused) {
  char* text = nullptr;
  size_t bytes = 0;
  for (const double speed : {-1.0, double{NAN}, double{INFINITY}}) {
    headrace_error error = make_error();
    EXPECT_EQ(headrace_plan_json(kDemo.c_str(), nullptr, speed, &text, &bytes, &error), HEADRACE_ARGUMENT);
    EXPECT_NE(std::string(error.message).find("drive_gb_s"), std::string::npos) << error.message;
  }
  EXPECT_EQ(headrace_plan_json(nullptr, nullptr, 0, &text, &bytes, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_plan_json(kDemo.c_str(), nullptr, 0, nullptr, &bytes, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(headrace_plan_json("/nowhere", nullptr, 0, &text, &bytes, nullptr), HEADRACE_IO);
  EXPECT_EQ(headrace_model_set_budget(nullptr, 1, nullptr), HEADRACE_ARGUMENT);
  EXPECT_EQ(text, nullptr);
}

TEST_F(Api, AnotherBudgetChangesThePlanAndNoToken) {
  const auto plan = [&] { return json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model_)); };
  const auto prompts = reference_prompts();
  const std::vector<int32_t> ids = prompts[0]["ids"];
  const std::vector<int32_t> expected = prompts[0]["greedy"]["ids"];
  const uint64_t floor = plan()["floor_bytes"];
  for (const uint64_t budget : {floor, uint64_t{32} << 20, uint64_t{256} << 20}) {
    ASSERT_EQ(headrace_model_set_budget(model_, budget, nullptr), HEADRACE_OK);
    EXPECT_EQ(plan()["budget_bytes"], budget);
    ASSERT_EQ(headrace_session_reset(session_, nullptr), HEADRACE_OK);
    EXPECT_EQ(generate(ids, generate_options(5)).ids, std::vector<int32_t>(expected.begin(), expected.begin() + 5));
  }
  headrace_error error = make_error();
  EXPECT_EQ(headrace_model_set_budget(model_, floor - 1, &error), HEADRACE_BUDGET);
  EXPECT_NE(std::string(error.message).find(std::to_string(floor)), std::string::npos) << error.message;
  EXPECT_EQ(plan()["budget_bytes"], uint64_t{256} << 20);
}

TEST_F(Api, ACallbackChangesTheBudget) {
  const auto prompts = reference_prompts();
  const std::vector<int32_t> ids = prompts[0]["ids"];
  const std::vector<int32_t> expected = prompts[0]["greedy"]["ids"];
  const uint64_t floor = json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model_))["floor_bytes"];
  struct Shared {
    uint64_t next_bytes;
  } shared{floor};
  const auto change = [](void* user, const headrace_piece*) {
    auto& data = *static_cast<Shared*>(user);
    EXPECT_EQ(headrace_model_set_budget(model_, data.next_bytes, nullptr), HEADRACE_OK);
    data.next_bytes += 500000;
    return 0;
  };
  const headrace_generate_options options = generate_options(8);
  headrace_generation result{};
  result.struct_size = sizeof result;
  ASSERT_EQ(headrace_session_generate(session_, ids.data(), ids.size(), &options, change, &shared, &result, nullptr),
            HEADRACE_OK);
  EXPECT_EQ(std::vector<int32_t>(result.ids, result.ids + result.id_count),
            std::vector<int32_t>(expected.begin(), expected.begin() + 8));
  headrace_free(result.ids);
  headrace_free(result.text);
  ASSERT_EQ(headrace_model_set_budget(model_, uint64_t{256} << 20, nullptr), HEADRACE_OK);
}

TEST(ApiOpen, ATokenizerOpensWithoutAModel) {
  headrace_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(headrace_tokenizer_open(kDemo.c_str(), &tokenizer, nullptr), HEADRACE_OK);
  const auto json = json_of(headrace_tokenizer_json, static_cast<const headrace_tokenizer*>(tokenizer));
  EXPECT_EQ(json["vocabulary_size"], 4352);
  headrace_tokenizer_close(tokenizer);
}

TEST(ApiOpen, AFolderThatIsNotThereIsAReadError) {
  headrace_error error = make_error();
  headrace_model* model = nullptr;
  EXPECT_EQ(headrace_model_open("/nowhere/at/all", nullptr, &model, &error), HEADRACE_IO);
  EXPECT_NE(std::string(error.message).find("/nowhere/at/all"), std::string::npos);
  EXPECT_EQ(model, nullptr);
  headrace_tokenizer* tokenizer = nullptr;
  EXPECT_EQ(headrace_tokenizer_open("/nowhere/at/all", &tokenizer, &error), HEADRACE_IO);
}

TEST(ApiOpen, FoldersWithoutTokenizerRunOnIds) {
  const TempFolder folder;
  headrace::test::TinyOptions tiny;
  tiny.tokenizer = false;
  folder.write(headrace::test::tiny_checkpoint(headrace::test::tiny_linear_config(), tiny));
  headrace_model* model = nullptr;
  headrace_error error = make_error();
  const headrace_model_options options = small_options();
  ASSERT_EQ(headrace_model_open(folder.path().c_str(), &options, &model, &error), HEADRACE_OK) << error.message;
  EXPECT_EQ(headrace_model_tokenizer(model), nullptr);
  headrace_session* session = nullptr;
  ASSERT_EQ(headrace_session_create(model, &session, nullptr), HEADRACE_OK);
  const std::vector<int32_t> ids = {0, 17};
  const headrace_generate_options generate = generate_options(3);
  headrace_generation result{};
  result.struct_size = sizeof result;
  EXPECT_EQ(headrace_session_generate(session, ids.data(), ids.size(), &generate, nullptr, nullptr, &result, nullptr),
            HEADRACE_OK);
  EXPECT_EQ(result.id_count, 3u);
  EXPECT_EQ(result.text_bytes, 0u);
  headrace_free(result.ids);
  headrace_free(result.text);
  headrace_session_destroy(session);
  headrace_model_close(model);
  headrace_tokenizer* tokenizer = nullptr;
  EXPECT_EQ(headrace_tokenizer_open(folder.path().c_str(), &tokenizer, &error), HEADRACE_UNSUPPORTED);
}

TEST(ApiOpen, DamagedTokenizersAreNotTakenForAbsentOnes) {
  const TempFolder folder;
  folder.write(headrace::test::tiny_checkpoint(headrace::test::tiny_linear_config()));
  folder.write("tokenizer_config.json", "{");
  headrace_model* model = nullptr;
  headrace_error error = make_error();
  EXPECT_EQ(headrace_model_open(folder.path().c_str(), nullptr, &model, &error), HEADRACE_FORMAT);
  EXPECT_NE(std::string(error.message).find("tokenizer_config.json"), std::string::npos) << error.message;
}

TEST(ApiOpen, ABudgetBelowTheFloorNamesTheFloor) {
  headrace_model_options options = small_options();
  options.budget_bytes = 1000;
  headrace_model* model = nullptr;
  headrace_error error = make_error();
  EXPECT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, &error), HEADRACE_BUDGET);
  options.budget_bytes = HEADRACE_BUDGET_FLOOR;
  ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, nullptr), HEADRACE_OK);
  const auto plan = json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model));
  headrace_model_close(model);
  EXPECT_NE(std::string(error.message).find(plan["floor_bytes"].dump()), std::string::npos) << error.message;
}

TEST(ApiOpen, OptionsThatCannotBeAreRefusedByName) {
  const auto refused = [](const headrace_model_options& options, const char* name) {
    headrace_error error = make_error();
    headrace_model* model = nullptr;
    EXPECT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, &error), HEADRACE_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(name), std::string::npos) << error.message;
  };
  headrace_model_options options = small_options();
  options.isa = "sse9";
  refused(options, "sse9");
  options = small_options();
  options.buffered_io = 2;
  refused(options, "buffered_io");
  options = small_options();
  options.log_level = 9;
  refused(options, "log_level");
  options = small_options();
  options.context_tokens = 4097;
  refused(options, "4097");
  options = small_options();
  options.thread_count = 257;
  refused(options, "257");
  options = small_options();
  options.io_backend = "aio";
  refused(options, "aio");
  options = small_options();
  options.io_depth = 257;
  refused(options, "257");
  options = small_options();
  options.pinned_layers = -2;
  refused(options, "pinned_layers");
  options = small_options();
  options.pinned_layers = 7;
  refused(options, "7 layers");
  options = small_options();
  options.struct_size = 0;
  refused(options, "struct_size");
}

TEST(ApiOpen, OptionsOfAnOlderCallerEndWhereItsStructEnds) {
  headrace_model_options options = small_options();
  options.struct_size = offsetof(headrace_model_options, prefill_chunk_tokens);
  options.prefill_chunk_tokens = 3;  // Beyond what the caller says it has.
  options.pinned_layers = -1;
  headrace_model* model = nullptr;
  ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, nullptr), HEADRACE_OK);
  const auto plan = json_of(headrace_model_plan_json, static_cast<const headrace_model*>(model));
  EXPECT_EQ(plan["chunk_tokens"], 4096);
  EXPECT_EQ(plan["pinned_layers"], 6);
  headrace_model_close(model);
}

TEST(ApiOpen, OptionsOfANewerCallerAreRefusedWhenTheySetWhatWeDoNotKnow) {
  struct Newer {
    headrace_model_options known;
    uint64_t unknown;
  } options{small_options(), 0};
  options.known.struct_size = sizeof options;
  headrace_model* model = nullptr;
  ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options.known, &model, nullptr), HEADRACE_OK);
  headrace_model_close(model);
  options.unknown = 1;
  headrace_error error = make_error();
  EXPECT_EQ(headrace_model_open(kDemo.c_str(), &options.known, &model, &error), HEADRACE_ARGUMENT);
}

TEST(ApiOpen, LinesOfTheLogGoToTheCaller) {
  headrace_model_options options = small_options();
  std::vector<std::string> lines;
  options.log_level = HEADRACE_LOG_DEBUG;
  options.log_user = &lines;
  options.log = [](void* user, headrace_log_level, const char* line, size_t bytes) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(line, bytes);
  };
  headrace_model* model = nullptr;
  ASSERT_EQ(headrace_model_open(kDemo.c_str(), &options, &model, nullptr), HEADRACE_OK);
  headrace_model_close(model);
  EXPECT_FALSE(lines.empty());
}

TEST(ApiOpen, StatusesHaveNames) {
  EXPECT_STREQ(headrace_status_name(HEADRACE_OK), "ok");
  EXPECT_STREQ(headrace_status_name(HEADRACE_BUDGET), "budget");
}

}  // namespace
