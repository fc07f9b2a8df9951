#include "models/families/kimi_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/shapes/checkpoint_layout.h"
#include "models/shapes/released_shapes.h"
#include "support/tiny_checkpoint.h"

namespace headrace {
namespace {

KimiTensors tensors_of(const nlohmann::json& config) {
  return KimiTensors::read(ConfigObject::wrap(config, "config.json").take_value()).take_value();
}

KimiTensors released(std::string_view shape) {
  return tensors_of(nlohmann::json::parse(released_shape(shape).value()));
}

struct Described {
  std::string type;
  std::vector<uint64_t> dims;
  bool operator==(const Described&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Described& one) {
  out << one.type;
  for (const uint64_t dim : one.dims) out << " " << dim;
  return out;
}

using Listing = std::map<std::string, Described>;

Listing listing_of(const KimiTensors& tensors) {
  Listing listing;
  const auto add = [&](const ListedTensor& tensor) -> Status {
    const auto& dims = tensor.shape.dims;
    const Described one{dtype_name(tensor.dtype), {dims.begin(), dims.begin() + tensor.shape.rank}};
    EXPECT_TRUE(listing.emplace(tensor.name, one).second) << tensor.name << " is listed twice";
    return {};
  };
  EXPECT_TRUE(tensors.for_each(add));
  return listing;
}

Listing written(const nlohmann::json& config) {
  Listing listing;
  for (const auto& tensor : test::tiny_tensors(config, {}, /*with_bytes=*/false)) {
    listing[tensor.name] = {tensor.type, tensor.shape};
  }
  return listing;
}

TEST(KimiTensors, AreThoseThatTheTinyCheckpointsOfTheSpecificationHave) {
  for (const nlohmann::json& config : {test::tiny_linear_config(), test::tiny_k3_config()}) {
    EXPECT_EQ(listing_of(tensors_of(config)), written(config));
  }
}

TEST(KimiTensors, FollowTheConfigurationThroughItsVariants) {
  nlohmann::json config = test::tiny_k3_config();
  nlohmann::json& text = config["text_config"];
  text.erase("quantization_config");
  text["q_lora_rank"] = nullptr;
  text["mla_use_output_gate"] = false;
  text["attn_res_block_size"] = 0;
  text["routed_expert_hidden_size"] = nullptr;
  text["latent_moe_use_norm"] = false;
  text["num_shared_experts"] = 0;
  text["first_k_dense_replace"] = 2;
  text["moe_layer_freq"] = 3;
  config.erase("vision_config");
  EXPECT_EQ(listing_of(tensors_of(config)), written(config));
}

TEST(KimiTensors, OfTheReleasedModelsAreAsManyAsTheSpecificationCounts) {
  EXPECT_EQ(listing_of(released("kimi-linear-48b")).size(), 20'493u);
  const auto layout = CheckpointLayout::create(released("kimi-k3"), {}).take_value();
  EXPECT_EQ(layout.tensor_count(), 497'220u);
  EXPECT_EQ(layout.data_bytes(), 1'560'860'324'864u) << "what the release's index says";
}

TEST(KimiTensors, ARefusalEndsTheListing) {
  size_t count = 0;
  const Status status = tensors_of(test::tiny_k3_config()).for_each([&](const ListedTensor&) -> Status {
    if (++count == 7) return error(Code::kCancelled, "enough");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_EQ(count, 7u);
}

TEST(KimiTensors, ExpertsThatAreNoWholeBlocksCannotBeListedAsMxfp4) {
  nlohmann::json config = test::tiny_k3_config();
  config["text_config"]["moe_intermediate_size"] = 100;
  const auto tensors = KimiTensors::read(ConfigObject::wrap(config, "config.json").take_value());
  ASSERT_FALSE(tensors);
  EXPECT_EQ(tensors.error().code, Code::kFormat);
}

TEST(CheckpointLayout, HasTheFilesOfTheReleases) {
  const auto k3 = CheckpointLayout::create(released("kimi-k3"), {}).take_value();
  EXPECT_EQ(k3.shard_count(), 96u);
  EXPECT_EQ(k3.shard_name(0), "model-00001-of-000096.safetensors");
  EXPECT_EQ(k3.place(93).take_value().size(), 5u);
  EXPECT_EQ(k3.place(94).take_value().size(), 3u);
  EXPECT_EQ(k3.place(95).take_value().size(), 165u);
  const auto linear = CheckpointLayout::create(released("kimi-linear-48b"), {}).take_value();
  EXPECT_EQ(linear.shard_count(), 20u);
  EXPECT_EQ(linear.shard_name(19), "model-00020-of-00020.safetensors");
}

TEST(CheckpointLayout, PutsEveryTensorIntoOneShardWithoutGaps) {
  const KimiTensors tensors = tensors_of(test::tiny_linear_config());
  const auto layout = CheckpointLayout::create(tensors, {.shard_bytes_max = 100'000}).take_value();
  EXPECT_GT(layout.shard_count(), 9u);
  Listing all;
  for (size_t shard = 0; shard < layout.shard_count(); ++shard) {
    uint64_t end = 0;
    for (const PlacedTensor& placed : layout.place(shard).take_value()) {
      EXPECT_EQ(placed.offset, end);
      end += placed.tensor.byte_count();
      all[placed.name];
    }
    EXPECT_EQ(end, layout.shard_data_bytes(shard));
  }
  EXPECT_EQ(all.size(), listing_of(tensors).size());
}

TEST(CheckpointLayout, StartsDataInsideAPage) {
  for (const TensorOrder order : {TensorOrder::kName, TensorOrder::kScattered}) {
    const auto layout = CheckpointLayout::create(tensors_of(test::tiny_k3_config()), {.order = order}).take_value();
    for (size_t shard = 0; shard < layout.shard_count(); ++shard) {
      const size_t start = layout.header(shard).take_value().size();
      EXPECT_NE(start % 4096, 0u);
      EXPECT_EQ(start % 2, order == TensorOrder::kScattered ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace headrace
