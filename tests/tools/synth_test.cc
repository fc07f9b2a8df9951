#include "tools/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/tiny_checkpoint.h"
#include "tools/synthesis.h"
#include "weights/checkpoint.h"

namespace headrace {
namespace {

using test::MadeRun;
using test::run_made;
using test::Synthesis;
using test::synthesize_all;

const std::string kIndex = "model.safetensors.index.json";

std::vector<nlohmann::json> tiny_configs() {
  return {test::tiny_linear_config(), test::tiny_k3_config()};
}

Checkpoint open_checkpoint(const std::string& folder, Budget& budget) {
  return Checkpoint::open(folder, open_file, ReadMode::kBuffered, budget).take_value();
}

std::string bytes_of(Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo info = checkpoint.claim(name).take_value();
  return test::plain_read(checkpoint.file(info.file_index).path(), info.range.offset, info.range.size);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(Synth, WritesTheTensorsThatTheConfigurationAsksFor) {
  for (const auto& config : tiny_configs()) {
    const Synthesis synthesis(config);
    const auto summary = synthesize_all(synthesis.options());
    ASSERT_TRUE(summary) << summary.error().message;
    Budget budget(64 << 20);
    Checkpoint checkpoint = open_checkpoint(synthesis.file("model"), budget);
    const auto wanted = test::tiny_tensors(config, {}, /*with_bytes=*/false);
    EXPECT_EQ(summary.value().tensors, wanted.size());
    EXPECT_EQ(checkpoint.tensor_count(), wanted.size());
    for (const auto& tensor : wanted) {
      const auto info = checkpoint.find(tensor.name);
      ASSERT_TRUE(info) << tensor.name;
      EXPECT_EQ(dtype_name(info->dtype), tensor.type) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(std::span(info->shape.dims).first(info->shape.rank), tensor.shape)) << tensor.name;
    }
    EXPECT_EQ(checkpoint.synthetic(), std::optional<size_t>(0));
  }
}

TEST(Synth, TheModelRunsAndItsNumbersStaySane) {
  for (const auto& config : tiny_configs()) {
    const Synthesis synthesis(config);
    ASSERT_TRUE(synthesize_all(synthesis.options()));
    const auto run = run_made(synthesis.file("model"), 12);
    ASSERT_TRUE(run) << run.error().message;
    double squares = 0;
    for (const float logit : run.value().logits) {
      ASSERT_TRUE(std::isfinite(logit));
      squares += double{logit} * double{logit};
    }
    const double size = std::sqrt(squares / static_cast<double>(run.value().logits.size()));
    EXPECT_GT(size, 0.5);  // A product of a normalised vector and rows of length 1 has about this size.
    EXPECT_LT(size, 2.0);
  }
}

TEST(Synth, EveryExpertIsUsedAboutAsOftenAsTheOthers) {
  constexpr size_t kTokens = 300;
  for (const auto& config : tiny_configs()) {
    const Synthesis synthesis(config);
    ASSERT_TRUE(synthesize_all(synthesis.options()));
    const MadeRun run = run_made(synthesis.file("model"), kTokens).take_value();
    const size_t experts = run.info.expert_count;
    std::map<uint32_t, std::vector<double>> uses;
    for (const auto& token : run.routing) {
      for (const RoutedExperts& layer : token) {
        uses.try_emplace(layer.layer, experts);
        for (const uint32_t expert : layer.experts) ++uses[layer.layer][expert];
      }
    }
    ASSERT_EQ(uses.size(), run.info.moe_layer_count);
    for (const auto& [layer, counts] : uses) {
      const double total = static_cast<double>(kTokens * run.info.experts_per_token);
      double entropy = 0;
      for (const double count : counts) {
        EXPECT_GT(count, 0) << "layer " << layer;
        if (count > 0) entropy -= count / total * std::log2(count / total);
      }
      EXPECT_GT(entropy, 0.9 * std::log2(static_cast<double>(experts))) << "layer " << layer;
    }
  }
}

/// The same checkpoint with the tensors of every layer really there.
test::Files with_copied_layers(const nlohmann::json& config, const std::string& folder) {
  Budget budget(64 << 20);
  Checkpoint checkpoint = open_checkpoint(folder, budget);
  std::vector<test::WrittenTensor> tensors = test::tiny_tensors(config, {}, /*with_bytes=*/false);
  for (auto& tensor : tensors) tensor.bytes = bytes_of(checkpoint, tensor.name);
  return {{"config.json", config.dump()}, {"model.safetensors", test::safetensors_bytes(tensors)}};
}

TEST(Synth, AModelOfSharedLayersRunsLikeOneInWhichTheyAreCopied) {
  for (const auto& config : tiny_configs()) {
    for (const size_t shared_layers : {1, 2}) {
      const Synthesis synthesis(config);
      SynthOptions options = synthesis.options();
      options.shared_layers = shared_layers;
      const auto summary = synthesize_all(options);
      ASSERT_TRUE(summary) << summary.error().message;
      EXPECT_LT(summary.value().tensors, test::tiny_tensors(config, {}, /*with_bytes=*/false).size());
      const MadeRun shared = run_made(options.folder, 20).take_value();
      EXPECT_EQ(shared.info.synthetic_shared_layers, std::optional<size_t>(shared_layers));

      const test::TempFolder copied;
      copied.write(with_copied_layers(config, options.folder));
      const MadeRun whole = run_made(copied.path(), 20).take_value();
      EXPECT_EQ(shared.logits, whole.logits);
      EXPECT_EQ(whole.info.synthetic_shared_layers, std::nullopt);
      EXPECT_EQ(shared.info.parameter_count, whole.info.parameter_count);
      EXPECT_EQ(shared.info.trunk_bytes, whole.info.trunk_bytes);
    }
  }
}

TEST(Synth, ScatteredTensorsHoldTheSameNumbers) {
  for (const auto& config : tiny_configs()) {
    const Synthesis synthesis(config);
    SynthOptions scattered = synthesis.options("scattered");
    scattered.order = TensorOrder::kScattered;
    ASSERT_TRUE(synthesize_all(synthesis.options("plain")));
    ASSERT_TRUE(synthesize_all(scattered));
    EXPECT_EQ(run_made(synthesis.file("plain"), 5).take_value().logits,
              run_made(synthesis.file("scattered"), 5).take_value().logits);
  }
}

TEST(Synth, TheSeedDecidesEveryByte) {
  const Synthesis synthesis(test::tiny_k3_config());
  SynthOptions other_seed = synthesis.options("other");
  other_seed.seed = 1;
  ASSERT_TRUE(synthesize_all(synthesis.options("first")));
  ASSERT_TRUE(synthesize_all(synthesis.options("second")));
  ASSERT_TRUE(synthesize_all(other_seed));
  const auto names = names_in(synthesis.file("first"));
  EXPECT_EQ(names_in(synthesis.file("second")), names);
  for (const std::string& name : names) {
    const std::string first = test::plain_read(synthesis.file("first/" + name));
    EXPECT_EQ(first, test::plain_read(synthesis.file("second/" + name))) << name;
    EXPECT_EQ(first == test::plain_read(synthesis.file("other/" + name)), !name.ends_with(".safetensors")) << name;
  }
}

TEST(Synth, MakesShapesSmallerOnRequest) {
  const Synthesis synthesis(test::tiny_k3_config());
  SynthOptions options = synthesis.options();
  options.layers = 4;
  options.expert_count = 5;
  const auto summary = synthesize_all(options);
  ASSERT_TRUE(summary) << summary.error().message;
  const MadeRun run = run_made(options.folder, 3).take_value();
  EXPECT_EQ(run.info.layer_kinds, (std::vector<std::string>{"kda+dense", "kda+moe", "kda+moe", "mla+moe"}));
  EXPECT_EQ(run.info.expert_count, 5u);
}

void expect_refused(const Synthesis& synthesis, const SynthOptions& options, Code code, const std::string& reason) {
  const auto refused = synthesize_all(options);
  ASSERT_FALSE(refused) << reason;
  EXPECT_EQ(refused.error().code, code) << refused.error().message;
  EXPECT_NE(refused.error().message.find(reason), std::string::npos) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(synthesis.file("model"))) << reason;
}

TEST(Synth, RefusesWhatCannotBeAndLeavesNothing) {
  const Synthesis synthesis(test::tiny_k3_config());
  SynthOptions options = synthesis.options();
  options.shape = "deepseek-v4-pro";
  expect_refused(synthesis, options, Code::kArgument, "deepseek-v4-pro: not available in this version");
  options.shape = "kimi-k4";
  expect_refused(synthesis, options, Code::kArgument, "'kimi-k4' is neither a shape (kimi-linear-48b, kimi-k3)");
  options = synthesis.options();
  options.layers = 9;
  expect_refused(synthesis, options, Code::kArgument, "9 layers are asked for; the shape has 8");
  options = synthesis.options();
  options.expert_count = 3;
  expect_refused(synthesis, options, Code::kArgument, "3 experts are asked for; a token uses 4");
}

TEST(Synth, RefusesConfigFilesThatItCannotRead) {
  for (const auto& [text, code] : std::vector<std::pair<nlohmann::json, Code>>{
           {{{"model_type", "llama"}}, Code::kUnsupported}, {{{"model_type", "kimi_k3"}}, Code::kFormat}}) {
    const Synthesis synthesis(text);
    expect_refused(synthesis, synthesis.options(), code, "shape.json");
  }
}

TEST(Synth, TouchesNoFolderThatHoldsSomething) {
  const Synthesis synthesis(test::tiny_linear_config());
  SynthOptions options = synthesis.options();
  options.folder = std::filesystem::path(options.shape).parent_path();
  const auto refused = synthesize_all(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kArgument);
  EXPECT_NE(refused.error().message.find("not empty"), std::string::npos);
  EXPECT_EQ(names_in(options.folder), std::vector<std::string>{"shape.json"});
  options.folder = options.shape;
  ASSERT_FALSE(synthesize_all(options));
  EXPECT_TRUE(std::filesystem::is_regular_file(options.shape));
}

TEST(Synth, FillsAFolderThatIsThereAndEmpty) {
  const Synthesis synthesis(test::tiny_linear_config());
  std::filesystem::create_directory(synthesis.file("model"));
  EXPECT_TRUE(synthesize_all(synthesis.options()));
  EXPECT_TRUE(std::filesystem::exists(synthesis.file("model/" + kIndex)));
}

TEST(Synth, CancellingAtAnyPointLeavesNothing) {
  const Synthesis synthesis(test::tiny_linear_config());
  SynthOptions options = synthesis.options("made/for/model");
  size_t calls = 0;
  ASSERT_TRUE(synthesize(synthesis.options("whole"), [&](uint64_t, uint64_t) { return ++calls > 0; }));
  for (size_t stop_at = 0; stop_at < calls; stop_at += stop_at < 3 || stop_at + 5 > calls ? 1 : 37) {
    size_t call = 0;
    const auto cancelled = synthesize(options, [&](uint64_t, uint64_t) { return call++ != stop_at; });
    ASSERT_FALSE(cancelled) << stop_at;
    EXPECT_EQ(cancelled.error().code, Code::kCancelled);
    EXPECT_FALSE(std::filesystem::exists(synthesis.file("made"))) << stop_at;
  }
  std::filesystem::create_directory(synthesis.file("model"));
  ASSERT_FALSE(synthesize(synthesis.options("model"), [](uint64_t, uint64_t) { return false; }));
  EXPECT_TRUE(names_in(synthesis.file("model")).empty()) << "a folder that was there stays, empty";
}

TEST(Synth, ProgressEndsAtWhatWasWritten) {
  const Synthesis synthesis(test::tiny_k3_config());
  uint64_t last = 0;
  uint64_t total = 0;
  const auto summary = synthesize(synthesis.options(), [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
    return true;
  });
  ASSERT_TRUE(summary);
  EXPECT_EQ(last, total);
  uint64_t file_bytes = 0;
  for (const auto& name : names_in(synthesis.file("model"))) {
    file_bytes += std::filesystem::file_size(synthesis.file("model/" + name));
  }
  EXPECT_EQ(file_bytes, total);
  EXPECT_EQ(summary.value().bytes, total);
}

TEST(Synth, AModelThatDoesNotFitIsRefusedWithItsSize) {
  const Synthesis synthesis(test::tiny_k3_config());
  SynthOptions options = synthesis.options();
  options.shape = "kimi-k3";
  const auto refused = synthesize(options, [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(refused);
  EXPECT_FALSE(std::filesystem::exists(synthesis.file("model")));
  if (refused.error().code == Code::kCancelled) GTEST_SKIP() << "the folder for tests has room for 1.6 TB";
  EXPECT_EQ(refused.error().code, Code::kIo);
  EXPECT_NE(refused.error().message.find("1561."), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace headrace
