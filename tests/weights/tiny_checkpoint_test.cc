#include "support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "support/value_generator.h"

namespace headrace::test {
namespace {

struct Sums {
  size_t count = 0;
  size_t bytes = 0;
  std::map<std::string, size_t> by_type;
};

Sums sums_of(const std::vector<WrittenTensor>& tensors) {
  Sums sums;
  for (const WrittenTensor& tensor : tensors) {
    ++sums.count;
    sums.bytes += tensor.bytes.size();
    ++sums.by_type[tensor.type];
  }
  return sums;
}

const WrittenTensor& named(const std::vector<WrittenTensor>& tensors, const std::string& name) {
  for (const WrittenTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << name << " is missing";
  return tensors.front();
}

template <class T>
T element(const std::string& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

float bf16_element(const std::string& bytes, size_t index) {
  const uint32_t bits = uint32_t{element<uint16_t>(bytes, index)} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(ValueGenerator, MakesTheNumbersOfTheSpecification) {
  EXPECT_EQ(fnv1a64("model.embed_tokens.weight"), 0xa88fd795d5c6d156u);
  EXPECT_EQ(fnv1a64("language_model.model.embed_tokens.weight"), 0xdec43c721d10b8a6u);

  const auto linear = tiny_tensors(tiny_linear_config());
  const std::string& embedding = named(linear, "model.embed_tokens.weight").bytes;
  const float first[] = {-0.2578125f, -0.359375f, 0.0266113281f, -0.50390625f};
  for (size_t i = 0; i < std::size(first); ++i) EXPECT_FLOAT_EQ(bf16_element(embedding, i), first[i]);
  const std::string& a_log = named(linear, "model.layers.0.self_attn.A_log").bytes;
  const float a_log_values[] = {0.594429255f, 0.404577166f, -0.578048229f, 0.635257363f};
  for (size_t i = 0; i < std::size(a_log_values); ++i) EXPECT_FLOAT_EQ(element<float>(a_log, i), a_log_values[i]);
  const std::string& dt_bias = named(linear, "model.layers.0.self_attn.dt_bias").bytes;
  EXPECT_FLOAT_EQ(element<float>(dt_bias, 0), -1.62512529f);
  EXPECT_FLOAT_EQ(element<float>(dt_bias, 1), -1.77313578f);

  const auto k3 = tiny_tensors(tiny_k3_config());
  EXPECT_FLOAT_EQ(bf16_element(named(k3, "language_model.model.embed_tokens.weight").bytes, 2), -0.9453125f);
  const std::string& conv = named(k3, "language_model.model.layers.0.self_attn.q_conv1d.weight").bytes;
  EXPECT_FLOAT_EQ(element<float>(conv, 0), 0.207449198f);
  EXPECT_FLOAT_EQ(element<float>(conv, 1), -0.045701623f);
  const std::string expert = "language_model.model.layers.1.block_sparse_moe.experts.0.w1.weight_";
  EXPECT_EQ(named(k3, expert + "packed").bytes.substr(0, 6), "\x93\xF5\xFB\xA4\x50\xE7");
  EXPECT_EQ(named(k3, expert + "scale").bytes.substr(0, 6), "\x7a\x7c\x7b\x7c\x7c\x79");
}

TEST(ValueGenerator, RoundsToHalfPrecisionLikeThePlatform) {
  // Nearest even, subnormals and the carry into the next binade.
  const std::pair<float, uint16_t> cases[] = {
      {0.0f, 0x0000},         {-0.0f, 0x8000},          {1.0f, 0x3c00},           {-2.5f, 0xc100},
      {65504.0f, 0x7bff},     {0x1p-24f, 0x0001},       {0x1p-14f, 0x0400},       {0x1.ff8p-15f, 0x03ff},
      {0x1.ffcp-15f, 0x0400}, {1.00048828125f, 0x3c00}, {1.00146484375f, 0x3c02}, {0x1.ffep0f, 0x4000}};
  for (const auto& [value, bits] : cases) EXPECT_EQ(f16_of(value), bits) << value;
}

TEST(TinyCheckpoint, HoldsTheTensorsThatTheSpecificationCounts) {
  const Sums linear = sums_of(tiny_tensors(tiny_linear_config()));
  EXPECT_EQ(linear.count, 233u);
  EXPECT_EQ(linear.bytes, 1'046'624u);
  EXPECT_EQ(linear.by_type.at("BF16"), 220u);
  EXPECT_EQ(linear.by_type.at("F32"), 13u);

  const Sums k3 = sums_of(tiny_tensors(tiny_k3_config()));
  EXPECT_EQ(k3.count, 896u);
  EXPECT_EQ(k3.bytes, 4'042'080u);
  EXPECT_EQ(k3.by_type.at("BF16"), 187u);
  EXPECT_EQ(k3.by_type.at("F32"), 37u);
  EXPECT_EQ(k3.by_type.at("U8"), 672u);
}

TEST(TinyCheckpoint, ComesInTheFilesOfTheRelease) {
  const Files linear = tiny_checkpoint(tiny_linear_config());
  EXPECT_TRUE(linear.contains("model-00001-of-00002.safetensors"));
  EXPECT_TRUE(linear.contains("model-00002-of-00002.safetensors"));
  const Files k3 = tiny_checkpoint(tiny_k3_config());
  EXPECT_TRUE(k3.contains("model-00001-of-000011.safetensors"));
  EXPECT_TRUE(k3.contains("model-00011-of-000011.safetensors"));
  for (const Files& files : {linear, k3}) {
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors.index.json", "tiktoken.model",
                             "tokenizer_config.json"}) {
      EXPECT_TRUE(files.contains(name)) << name;
    }
  }
}

TEST(TinyCheckpoint, SplitsAnExpertLayerOfLinearAcrossItsFiles) {
  const Files files = tiny_checkpoint(tiny_linear_config());
  const std::string name = "model.layers.3.block_sparse_moe.experts.";
  EXPECT_NE(files.at("model-00001-of-00002.safetensors").find(name), std::string::npos);
  EXPECT_NE(files.at("model-00002-of-00002.safetensors").find(name), std::string::npos);
}

TEST(TinyCheckpoint, ScatteredDataBeginsAtAnOddOffset) {
  const Files files = tiny_checkpoint(tiny_k3_config(), {.scatter_seed = 7, .scatter_files = true});
  for (const auto& [name, bytes] : files) {
    if (!name.ends_with(".safetensors")) continue;
    EXPECT_EQ(element<uint64_t>(bytes, 0) % 2, 1u) << name;
  }
}

TEST(TinyTokenizer, EveryLongerTokenIsTwoEarlierOnes) {
  std::set<std::string> known;
  for (const std::string& rank : tiny_ranks()) {
    bool reachable = rank.size() == 1;
    for (size_t size = 1; size < rank.size(); ++size) {
      reachable |= known.contains(rank.substr(0, size)) && known.contains(rank.substr(size));
    }
    EXPECT_TRUE(reachable) << rank;
    EXPECT_TRUE(known.insert(rank).second) << rank;
  }
  EXPECT_EQ(known.size(), 512u);
}

}  // namespace
}  // namespace headrace::test
