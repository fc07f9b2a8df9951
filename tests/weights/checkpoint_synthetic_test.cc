#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/test_files.h"
#include "weights/checkpoint.h"
#include "weights/layer_sources.h"

namespace headrace {
namespace {

using test::Files;

constexpr size_t kBudgetBytes = 64 << 20;

test::WrittenTensor bytes_tensor(const std::string& name, size_t size) {
  return {name, "U8", {size}, std::string(size, 'x')};
}

/// Two stored layers, 0 and 1, and a tensor of none.
Files two_layers(const std::string& synth) {
  const std::vector<test::WrittenTensor> tensors = {bytes_tensor("model.layers.0.a", 3),
                                                    bytes_tensor("model.layers.1.a", 5), bytes_tensor("head", 7)};
  Files files{{"a.safetensors", test::safetensors_bytes(tensors)},
              {"model.safetensors.index.json", test::index_text({{"a.safetensors", tensors}})}};
  if (!synth.empty()) files["synth.json"] = synth;
  return test::in_folder("m", files);
}

std::string synth(const std::string& layers, const std::string& shared = "1") {
  return R"({"version": 1, "shared_layers": )" + shared + R"(, "layers": )" + layers + "}";
}

Result<Checkpoint> open(const Files& files, Budget& budget, test::FaultPlan* plan = nullptr) {
  return Checkpoint::open("m", test::memory_opener(files, 512, plan), ReadMode::kDirect, budget);
}

TEST(SyntheticCheckpoint, FindsATensorInTheLayerThatStandsForItsOwn) {
  const Files files = two_layers(synth("[0, 1, 1, 0, 1]"));
  Budget budget(kBudgetBytes);
  const Checkpoint checkpoint = open(files, budget).take_value();
  EXPECT_EQ(checkpoint.synthetic(), std::optional<size_t>(1));
  EXPECT_EQ(checkpoint.find("model.layers.4.a")->range.size, 5u);
  EXPECT_EQ(checkpoint.find("model.layers.4.a")->range.offset, checkpoint.find("model.layers.1.a")->range.offset);
  EXPECT_EQ(checkpoint.find("model.layers.3.a")->range.size, 3u);
  EXPECT_EQ(checkpoint.find("head")->range.size, 7u);
  EXPECT_EQ(checkpoint.tensor_count(), 3u);
  EXPECT_EQ(checkpoint.data_bytes(), 15u);
}

TEST(SyntheticCheckpoint, KnowsNoOtherNames) {
  const Files files = two_layers(synth("[0, 1, 1]"));
  Budget budget(kBudgetBytes);
  Checkpoint checkpoint = open(files, budget).take_value();
  for (const char* name :
       {"model.layers.3.a", "model.layers.02.a", "model.layers.2", "model.layers.2a", "layers.2.a", "model.xlayers.2.a",
        "model.layers..a", "model.layers.99999999999999999999.a", "model.layers."}) {
    EXPECT_FALSE(checkpoint.find(name)) << name;
    const auto claimed = checkpoint.claim(name);
    ASSERT_FALSE(claimed) << name;
    EXPECT_EQ(claimed.error().code, Code::kFormat);
  }
}

TEST(SyntheticCheckpoint, AClaimCountsForTheTensorThatIsThere) {
  const Files files = two_layers(synth("[0, 1, 1, 1]"));
  Budget budget(kBudgetBytes);
  Checkpoint checkpoint = open(files, budget).take_value();
  EXPECT_EQ(checkpoint.unclaimed_count(), 3u);
  ASSERT_TRUE(checkpoint.claim("model.layers.3.a"));
  ASSERT_TRUE(checkpoint.claim("model.layers.2.a"));
  EXPECT_EQ(checkpoint.unclaimed_count(), 2u);
  EXPECT_EQ(checkpoint.unclaimed_names(5).take_value(), (std::vector<std::string>{"model.layers.0.a", "head"}));
  ASSERT_TRUE(checkpoint.claim("model.layers.0.a"));
  ASSERT_TRUE(checkpoint.claim("head"));
  EXPECT_EQ(checkpoint.unclaimed_count(), 0u);
}

TEST(SyntheticCheckpoint, WithoutTheFileNothingIsShared) {
  const Files files = two_layers("");
  Budget budget(kBudgetBytes);
  const Checkpoint checkpoint = open(files, budget).take_value();
  EXPECT_EQ(checkpoint.synthetic(), std::nullopt);
  EXPECT_FALSE(checkpoint.find("model.layers.2.a"));
}

TEST(SyntheticCheckpoint, ReadsWhatItsWriterWrites) {
  const std::vector<size_t> sources = {0, 1, 1};
  const Files files = two_layers(LayerSources::text(1, sources));
  Budget budget(kBudgetBytes);
  EXPECT_TRUE(open(files, budget).take_value().find("model.layers.2.a"));
}

TEST(SyntheticCheckpoint, RefusesHostileMaps) {
  const std::pair<std::string, const char*> cases[] = {
      {synth("[0, 1, 3]"), "layer 2 comes from layer 3, but there are 3"},
      {synth("[0, 1, 18446744073709551615]"), "a source that is no layer"},
      {synth("[0, 1, 3, 2]"), "layer 2 comes from layer 3, which comes from layer 2 itself"},
      {synth("[0, 1, 1, 2]"), "layer 3 comes from layer 2, which comes from layer 1 itself"},
      {synth("[1, 1]"), "layer 0 comes from layer 1, but there is a tensor model.layers.0.a"},
      {synth("[0]"), "it has 1 layers, but there is a tensor model.layers.1.a"},
      {synth("[0, 1, 2]"), "layer 2 comes from layer 2, which has no tensors"},
      {synth("[0, 1, 1]", "0"), "layer 2 comes from layer 1, but no layers are shared"},
      {synth("[]"), "no layers"},
      {synth("[0, -1]"), "negative"},
      {synth("[0, 1.5]"), "not whole"},
      {synth("[[0]]"), "an array"},
      {synth("[{}]"), "an object"},
      {synth("null"), "null"},
      {synth("7"), "a number"},
      {synth("[0, 1]", "[1]"), "an array"},
      {synth("[0, 1]", "4097"), "shared_layers is too large"},
      {R"({"version": 1, "layers": [0, 1]})", "is missing"},
      {R"({"shared_layers": 1, "layers": [0, 1]})", "is missing"},
      {R"({"version": 1, "shared_layers": 1})", "is missing"},
      {R"({"version": 1, "shared_layers": 1, "layers": [0], "layers": [0, 1]})", "there twice"},
      {R"({"version": 1, "shared_layers": 1, "layers": [0, 1], "routing": 1})", "unknown key routing"},
      {R"([0, 1])", "an array"},
      {R"({"version": 1, "shared_layers": 1, "layers": [0, 1]})" + std::string(" x"), "synth.json"},
      {"{", "synth.json"},
      {" ", "synth.json"},
  };
  for (const auto& [text, reason] : cases) {
    const Files files = two_layers(text);
    Budget budget(kBudgetBytes);
    const auto refused = open(files, budget);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kFormat) << refused.error().message;
    EXPECT_NE(refused.error().message.find(reason), std::string::npos) << text << "\n" << refused.error().message;
    EXPECT_NE(refused.error().message.find("synth.json"), std::string::npos) << refused.error().message;
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
}

TEST(SyntheticCheckpoint, RefusesOtherVersions) {
  const Files files = two_layers(R"({"version": 2, "shared_layers": 1, "layers": [0, 1]})");
  Budget budget(kBudgetBytes);
  const auto refused = open(files, budget);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
}

TEST(SyntheticCheckpoint, RefusesLongListsAndFilesBeforeTheyCostMemory) {
  std::string list = "[0, 1";
  for (size_t layer = 2; layer < 5000; ++layer) list += ",1";
  for (const std::string& text : {synth(list + "]"), synth("[0, 1]") + std::string(300'000, ' ')}) {
    const Files files = two_layers(text);
    Budget budget(kBudgetBytes);
    const auto refused = open(files, budget);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
  }
}

TEST(SyntheticCheckpoint, AnyReadThatFailsEndsTheOpening) {
  const Files files = two_layers(synth("[0, 1, 1]"));
  test::FaultPlan clean;
  {
    Budget budget(kBudgetBytes);
    ASSERT_TRUE(open(files, budget, &clean));
  }
  for (uint64_t n = 0; n < clean.read_count; ++n) {
    test::FaultPlan plan;
    plan.fail_at = n;
    Budget budget(kBudgetBytes);
    const auto failed = open(files, budget, &plan);
    ASSERT_FALSE(failed) << n;
    EXPECT_EQ(failed.error().code, Code::kIo) << n;
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
}

TEST(SyntheticCheckpoint, AMapThatIsThereButDoesNotOpenIsAFailure) {
  const test::TempFolder folder;
  for (const auto& [path, contents] : two_layers("")) folder.write(path.substr(2), contents);
  folder.write("synth.json", synth("[0, 1]"));
  test::FaultPlan plan;
  plan.fail_open_at = 2;  // After the index and the shard.
  Budget budget(kBudgetBytes);
  const auto failed = Checkpoint::open(folder.path(), test::faulty_opener(open_file, plan), ReadMode::kDirect, budget);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kIo);
}

}  // namespace
}  // namespace headrace
