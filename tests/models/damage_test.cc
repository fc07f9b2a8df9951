// P4 for whole models: a damaged checkpoint never produces text, and nothing is leaked or allocated beyond the budget.

#include <gtest/gtest.h>

#include <functional>

#include "models/model_harness.h"
#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using test::Files;
using test::OpenModel;
using test::RunSetup;
using test::WrittenTensor;

constexpr const char* kFolder = "model";
constexpr size_t kContextTokens = 32;
constexpr size_t kBudgetBytes = 64 << 20;

/// A checkpoint in memory that a test may damage before it is written.
class DamagedModel {
 public:
  explicit DamagedModel(const std::string& name) : vector_(test::load_oracle_vectors("models/" + name)) {
    tensors = test::tiny_tensors(vector_["config"], {.expert_format = vector_["expert_format"]});
    config = vector_["config"];
  }

  Files files() const {
    return test::in_folder(kFolder, {{"config.json", config.dump()},
                                     {"model.safetensors.index.json", test::index_text({{"a.safetensors", tensors}})},
                                     {"a.safetensors", test::safetensors_bytes(tensors)}});
  }
  std::vector<int32_t> prompt() const { return vector_["prompt"]; }
  WrittenTensor& tensor(const std::string& part) {
    return *std::ranges::find_if(tensors, [&](const auto& t) { return t.name.find(part) != std::string::npos; });
  }

  std::vector<WrittenTensor> tensors;
  nlohmann::json config;

 private:
  nlohmann::json vector_;
};

/// Opens and runs; the budget must be empty again when the model is gone.
Status open_and_run(const Files& files, const std::vector<int32_t>& prompt, test::FaultPlan* plan = nullptr,
                    size_t pinned_groups = 1) {
  const RunSetup setup{.chunk_tokens = 4, .expert_slots = 1, .pinned_groups = pinned_groups};
  auto open = OpenModel::open(kFolder, setup, kContextTokens, kBudgetBytes, test::memory_opener(files, 512, plan));
  if (!open) return open.take_error();
  EXPECT_LE(open.value()->budget().peak_bytes(), kBudgetBytes);
  auto result = open.value()->run(prompt);
  if (!result) return result.take_error();
  return {};
}

void expect_refused(const DamagedModel& model, const std::string& named) {
  const Status status = open_and_run(model.files(), model.prompt());
  ASSERT_FALSE(status) << named;
  EXPECT_EQ(status.error().code, Code::kFormat) << status.error().message;
  EXPECT_NE(status.error().message.find(named), std::string::npos) << status.error().message;
}

TEST(Damage, TheUndamagedModelRuns) {
  for (const char* name : {"no_query_rank", "groups"}) {
    const DamagedModel model(name);
    const Status status = open_and_run(model.files(), model.prompt());
    EXPECT_TRUE(status) << status.error().message;
  }
}

TEST(Damage, EveryMissingTensorIsNamed) {
  for (const char* name : {"no_query_rank", "groups"}) {
    const DamagedModel whole(name);
    for (size_t i = 0; i < whole.tensors.size(); ++i) {
      if (whole.tensors[i].name.starts_with("vision_tower.") || whole.tensors[i].name.starts_with("mm_projector.")) {
        continue;
      }
      DamagedModel model(whole);
      model.tensors.erase(model.tensors.begin() + static_cast<ptrdiff_t>(i));
      // Without .weight_packed an expert's format cannot be told: then the matrix is named.
      const std::string full_name = whole.tensors[i].name;
      expect_refused(model, full_name.substr(0, full_name.rfind(".weight")));
    }
  }
}

TEST(Damage, EveryTensorOfAnotherShapeIsNamed) {
  for (const char* name : {"no_query_rank", "groups"}) {
    const DamagedModel whole(name);
    for (size_t i = 0; i < whole.tensors.size(); ++i) {
      if (whole.tensors[i].name.starts_with("vision_tower.") || whole.tensors[i].name.starts_with("mm_projector.")) {
        continue;
      }
      DamagedModel model(whole);
      WrittenTensor& tensor = model.tensors[i];
      // A_log may be longer than its heads, not shorter (spec 5.4).
      const bool may_be_longer = tensor.name.ends_with("A_log");
      const size_t row_bytes = tensor.bytes.size() / tensor.shape[0];
      if (may_be_longer) {
        tensor.shape = {1};
        tensor.bytes.resize(4);
      } else {
        tensor.shape[0] += 1;
        tensor.bytes += std::string(row_bytes, '\0');
      }
      expect_refused(model, tensor.name);
    }
  }
}

TEST(Damage, EveryTensorOfAnUnusableTypeIsNamed) {
  const DamagedModel whole("groups");
  for (size_t i = 0; i < whole.tensors.size(); ++i) {
    DamagedModel model(whole);
    WrittenTensor& tensor = model.tensors[i];
    tensor.type = tensor.type == "F32" ? "I32" : "I16";
    const Status status = open_and_run(model.files(), model.prompt());
    ASSERT_FALSE(status) << tensor.name;
    const std::string matrix = tensor.name.substr(0, tensor.name.rfind(".weight"));
    EXPECT_NE(status.error().message.find(matrix), std::string::npos) << status.error().message;
  }
}

TEST(Damage, TensorsThatNobodyAskedForAreNamed) {
  DamagedModel model("groups");
  model.tensors.push_back({"model.layers.1.self_attn.extra.weight", "F32", {1}, std::string(4, '\0')});
  expect_refused(model, "model.layers.1.self_attn.extra.weight");
}

/// Every tensor that the prompt's pass reads, with one number in the middle replaced.
void expect_every_bad_number_stops_the_run(const char* name, const char* bf16, const char* f32) {
  const DamagedModel whole(name);
  for (size_t i = 0; i < whole.tensors.size(); ++i) {
    DamagedModel model(whole);
    WrittenTensor& tensor = model.tensors[i];
    // Rows and experts that the prompt does not use are never read; unused tensors are never looked at.
    if (tensor.type == "U8" || tensor.name.ends_with("embed_tokens.weight") ||
        tensor.name.find(".experts.") != std::string::npos ||
        tensor.name.find("0.self_attention_res") != std::string::npos || tensor.name.starts_with("vision_tower.") ||
        tensor.name.starts_with("mm_projector.")) {
      continue;
    }
    const size_t element_bytes = tensor.type == "F32" ? 4 : 2;
    // K3's A_log ends in numbers that no head uses.
    const size_t count = tensor.bytes.size() / element_bytes;
    const size_t middle = (tensor.name.ends_with("A_log") ? 0 : count / 2) * element_bytes;
    tensor.bytes.replace(middle, element_bytes, tensor.type == "F32" ? std::string(f32, 4) : std::string(bf16, 2));
    for (const size_t pinned_groups : {size_t{0}, SIZE_MAX}) {
      const Status status = open_and_run(model.files(), model.prompt(), nullptr, pinned_groups);
      ASSERT_FALSE(status) << tensor.name;
      EXPECT_EQ(status.error().code, Code::kFormat) << tensor.name << ": " << status.error().message;
      EXPECT_NE(status.error().message.find(tensor.name), std::string::npos) << status.error().message;
    }
  }
}

TEST(Damage, NoTensorMayHoldANaN) {
  for (const char* name : {"groups", "no_query_rank"}) {
    expect_every_bad_number_stops_the_run(name, "\xc0\x7f", "\0\0\xc0\x7f");
  }
}

// Gates and activations turn an infinity into an ordinary number: it must not get that far.
TEST(Damage, NoTensorMayHoldAnInfinity) {
  for (const char* name : {"groups", "no_query_rank"}) {
    expect_every_bad_number_stops_the_run(name, "\x80\xff", "\0\0\x80\xff");
  }
}

TEST(Damage, ExpertsThatAreNotFiniteStopTheRunAndAreNamed) {
  for (const char* matrix : {"w1.weight", "w2.weight", "w3.weight"}) {
    DamagedModel model("groups");
    for (WrittenTensor& tensor : model.tensors) {
      if (tensor.name.ends_with(matrix)) tensor.bytes.replace(tensor.bytes.size() - 2, 2, "\x80\x7f");
    }
    const Status status = open_and_run(model.files(), model.prompt());
    ASSERT_FALSE(status) << matrix;
    EXPECT_EQ(status.error().code, Code::kFormat) << status.error().message;
    EXPECT_NE(status.error().message.find("expert"), std::string::npos) << status.error().message;
  }
}

TEST(Damage, EmbeddingRowsThatAreNotFiniteStopTheRun) {
  DamagedModel model("groups");
  const size_t row_bytes = 2 * model.config["hidden_size"].get<size_t>();
  const auto row = static_cast<size_t>(model.prompt()[2]);
  model.tensor("embed_tokens").bytes.replace(row * row_bytes, 2, "\xc0\x7f");
  const Status status = open_and_run(model.files(), model.prompt());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFormat) << status.error().message;
}

TEST(Damage, ScalesThatAreNotNumbersStopTheRunAndNameTheExpert) {
  DamagedModel model("no_query_rank");
  for (WrittenTensor& tensor : model.tensors) {
    if (tensor.name.ends_with("w2.weight_scale")) tensor.bytes.back() = '\xff';
  }
  const Status status = open_and_run(model.files(), model.prompt());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFormat);
  EXPECT_NE(status.error().message.find("expert"), std::string::npos) << status.error().message;
}

TEST(Damage, EveryFailingReadEndsTheRunAsAReadErrorAndLeaksNothing) {
  const DamagedModel model("top_one");
  const Files files = model.files();
  test::FaultPlan count;
  ASSERT_TRUE(open_and_run(files, model.prompt(), &count));
  const uint64_t reads = count.read_count;
  ASSERT_GT(reads, 50u);
  uint64_t harmless = 0;
  for (uint64_t n = 0; n < reads; ++n) {
    test::FaultPlan plan;
    plan.fail_at = n;
    const Status status = open_and_run(files, model.prompt(), &plan);
    if (status) {
      ++harmless;
    } else {
      EXPECT_EQ(status.error().code, Code::kIo) << status.error().message;
    }
  }
  // What was read ahead for a pass that never came may fail; the ring holds no more than that.
  EXPECT_LE(harmless, 64u);
}

TEST(Damage, ShortReadsChangeNoBit) {
  const DamagedModel model("top_one");
  const Files files = model.files();
  const RunSetup setup{.chunk_tokens = 4, .expert_slots = 1, .pinned_groups = 1};
  const auto run = [&](test::FaultPlan& plan) {
    auto open = OpenModel::open(kFolder, setup, kContextTokens, kBudgetBytes, test::memory_opener(files, 512, &plan));
    EXPECT_TRUE(open);
    auto result = open.value()->run(model.prompt());
    EXPECT_TRUE(result);
    return result.take_value().logits;
  };
  test::FaultPlan none;
  const auto want = run(none);
  for (uint64_t n = 0; n < none.read_count; n += 3) {
    test::FaultPlan plan;
    plan.short_at = n;
    EXPECT_EQ(run(plan), want) << "short read " << n;
  }
  test::FaultPlan always;
  always.bytes_per_read_max = 512;
  EXPECT_EQ(run(always), want);
}

TEST(Damage, TokensOutsideTheVocabularyAreTheCallersFault) {
  const DamagedModel model("groups");
  for (const int32_t id : {-1, 1 << 20, INT32_MAX, INT32_MIN}) {
    const Status status = open_and_run(model.files(), {1, id});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kArgument);
  }
}

TEST(Damage, MoreTokensThanTheContextAreTheCallersFault) {
  const DamagedModel model("groups");
  const Status status = open_and_run(model.files(), std::vector<int32_t>(kContextTokens + 1, 1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kArgument);
}

TEST(Damage, ContextsBeyondTheModelAreRefusedBeforeMemoryIsTaken) {
  const DamagedModel model("groups");
  const Files files = model.files();
  const FileOpener opener = test::memory_opener(files, 512);
  const auto pool = ThreadPool::create(1, {}).take_value();
  const Log log;
  Budget budget(kBudgetBytes);
  Budget queue_budget(kBudgetBytes);
  const auto queue = ReadQueue::create({.backend = ReadBackendKind::kThreads}, queue_budget, log).take_value();
  const ModelResources resources{*usable_kernels().front(), *pool, budget, *queue, opener, log};
  const auto refused = open_model(kFolder, resources, {.context_tokens = 1 << 30});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_EQ(budget.peak_bytes(), 0u);
}

TEST(Damage, EveryBudgetTooSmallIsRefusedAndNothingLeaks) {
  const DamagedModel model("top_one");
  const Files files = model.files();
  size_t peak_bytes = 0;
  {
    auto open = OpenModel::open(kFolder, RunSetup{.expert_slots = 1}, kContextTokens, kBudgetBytes,
                                test::memory_opener(files, 512));
    ASSERT_TRUE(open);
    peak_bytes = open.value()->budget().peak_bytes();
  }
  for (size_t budget = 0; budget < peak_bytes; budget += AlignedMemory::kAlignment) {
    auto open =
        OpenModel::open(kFolder, RunSetup{.expert_slots = 1}, kContextTokens, budget, test::memory_opener(files, 512));
    ASSERT_FALSE(open) << budget;
    EXPECT_EQ(open.error().code, Code::kBudget) << open.error().message;
  }
}

}  // namespace
}  // namespace headrace
