#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/sanitizers.h"
#include "support/test_files.h"
#include "support/tiny_checkpoint.h"
#include "weights/checkpoint.h"
#include "weights/expert_catalog.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

using test::TempFolder;
using test::WrittenTensor;

constexpr size_t kLayers = 93;
constexpr size_t kShards = 96;
constexpr size_t kExperts = 896;

/// The configuration of the released Kimi K3, as far as it decides the tensors.
nlohmann::json released_k3_config() {
  nlohmann::json config = test::tiny_k3_config();
  config["text_config"].update({{"vocab_size", 163840},
                                {"hidden_size", 7168},
                                {"num_hidden_layers", kLayers},
                                {"intermediate_size", 33792},
                                {"num_attention_heads", 96},
                                {"q_lora_rank", 1536},
                                {"kv_lora_rank", 512},
                                {"qk_nope_head_dim", 128},
                                {"qk_rope_head_dim", 64},
                                {"v_head_dim", 128},
                                {"attn_res_block_size", 12},
                                {"num_experts", kExperts},
                                {"moe_intermediate_size", 3072},
                                {"routed_expert_hidden_size", 3584}});
  nlohmann::json kda_layers = nlohmann::json::array();
  for (size_t layer = 1; layer <= kLayers; ++layer) {
    if (layer % 4 != 0 && layer != kLayers) kda_layers.push_back(layer);
  }
  config["text_config"]["linear_attn_config"].update(
      {{"num_heads", 96}, {"head_dim", 128}, {"kda_layers", kda_layers}});
  config["vision_config"].update({{"init_pos_emb_height", 64},
                                  {"init_pos_emb_width", 64},
                                  {"vt_hidden_size", 1024},
                                  {"vt_num_hidden_layers", 27},
                                  {"vt_intermediate_size", 4096},
                                  {"qkv_hidden_size", 1536},
                                  {"mm_hidden_size", 1024}});
  return config;
}

uint64_t stored_bytes(const WrittenTensor& tensor) {
  uint64_t bytes = dtype_bytes(*dtype_of_name(tensor.type));
  for (const uint64_t dim : tensor.shape) bytes *= dim;
  return bytes;
}

size_t shard_of(const std::string& name) {
  const std::string layers = "language_model.model.layers.";
  if (name.starts_with(layers)) return std::stoul(name.substr(layers.size()));
  if (name.starts_with("language_model.")) return kLayers;
  return name.starts_with("mm_projector.") ? kLayers + 1 : kLayers + 2;
}

std::string shard_name(size_t shard) {
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-000096.safetensors", shard + 1);
  return name;
}

/// The released checkpoint with holes of the file system for data: headers and index are of full size.
class SparseK3 {
 public:
  SparseK3() {
    const std::vector<WrittenTensor> tensors = test::tiny_tensors(released_k3_config(), {}, /*with_bytes=*/false);
    std::vector<std::string> headers(kShards, "{");
    std::vector<uint64_t> ends(kShards, 0);
    std::string map;
    for (const WrittenTensor& tensor : tensors) add(tensor, headers, ends, map);
    for (size_t shard = 0; shard < kShards; ++shard) write_shard(shard, headers[shard] + "}", ends[shard]);
    folder_.write("model.safetensors.index.json",
                  "{\"metadata\":{\"total_size\":" + std::to_string(total_bytes_) + "},\"weight_map\":{" + map + "}}");
    tensor_count_ = tensors.size();
  }
  const std::string& path() const { return folder_.path(); }
  size_t tensor_count() const { return tensor_count_; }

 private:
  void add(const WrittenTensor& tensor, std::vector<std::string>& headers, std::vector<uint64_t>& ends,
           std::string& map) {
    const size_t shard = shard_of(tensor.name);
    std::string shape;
    for (const uint64_t dim : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    const uint64_t begin = ends[shard];
    ends[shard] += stored_bytes(tensor);
    total_bytes_ += stored_bytes(tensor);
    headers[shard] += (headers[shard].size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.type +
                      "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(begin) + "," +
                      std::to_string(ends[shard]) + "]}";
    map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"" + shard_name(shard) + "\"";
  }
  void write_shard(size_t shard, const std::string& header, uint64_t data_bytes) {
    folder_.write(shard_name(shard), test::safetensors_bytes(header, std::string()));
    const off_t size = static_cast<off_t>(8 + header.size() + data_bytes);
    ASSERT_EQ(truncate(folder_.file(shard_name(shard)).c_str(), size), 0) << "no sparse files on this file system";
  }

  TempFolder folder_;
  uint64_t total_bytes_ = 0;
  size_t tensor_count_ = 0;
};

double processor_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(CheckpointScale, KeepsTheDirectoryOfKimiK3InSixteenMegabytes) {
  if (test::kIsSanitized)
    GTEST_SKIP() << "a minute of measuring what a sanitizer takes; smaller ones have the same code";
  const SparseK3 model;
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(model.tensor_count(), 497'220u);
  Budget budget(size_t{64} << 20);
  const auto start = std::chrono::steady_clock::now();
  const double processor_before_s = processor_s();
  Result<Checkpoint> opened = Checkpoint::open(model.path(), open_file, ReadMode::kDirect, budget);
  const double open_s = seconds_since(start);
  const double open_processor_s = processor_s() - processor_before_s;
  ASSERT_TRUE(opened) << opened.error().message;
  Checkpoint checkpoint = opened.take_value();
  EXPECT_EQ(checkpoint.tensor_count(), 497'220u);
  EXPECT_EQ(checkpoint.data_bytes(), 1'560'860'324'864u) << "what the release's index says";
  EXPECT_EQ(checkpoint.file_count(), kShards);
  EXPECT_LE(checkpoint.memory_bytes(), 16'000'000u);
  EXPECT_EQ(budget.used_bytes(), checkpoint.memory_bytes());
  EXPECT_LT(open_processor_s, 20.0);

  const auto catalog_start = std::chrono::steady_clock::now();
  const ExpertCatalog::Layout layout{
      kLayers - 1,
      kExperts,
      {{Format::kMxfp4, 3072, 3584}, {Format::kMxfp4, 3072, 3584}, {Format::kMxfp4, 3584, 3072}}};
  const auto namer = [](ExpertId id, size_t matrix) -> ExpertCatalog::TensorNames {
    const char* const names[] = {"w1", "w3", "w2"};
    const std::string name = "language_model.model.layers." + std::to_string(id.layer + 1) +
                             ".block_sparse_moe.experts." + std::to_string(id.expert) + "." + names[matrix];
    return {name + ".weight_packed", name + ".weight_scale"};
  };
  const Result<ExpertCatalog> catalog = ExpertCatalog::build(checkpoint, budget, layout, namer);
  const double catalog_s = seconds_since(catalog_start);
  ASSERT_TRUE(catalog) << catalog.error().message;
  EXPECT_EQ(checkpoint.unclaimed_count(), 497'220u - 92 * kExperts * 6);
  EXPECT_GE(catalog.value().slot_bytes(), catalog.value().record_bytes());

  const auto prefix_start = std::chrono::steady_clock::now();
  ASSERT_TRUE(checkpoint.claim_prefixes({"vision_tower."}));
  const double prefix_s = seconds_since(prefix_start);
  std::printf(
      "Kimi K3, %zu tensors, %.2f TB: opened in %.2f s, %.2f s of it computing (peak %.1f MB, kept %.1f MB, %.0f MB "
      "read), "
      "catalogue in %.2f s (record %zu bytes, slot %zu bytes, %.1f MB), prefix claimed in %.2f s\n",
      checkpoint.tensor_count(), static_cast<double>(checkpoint.data_bytes()) / 1e12, open_s, open_processor_s,
      static_cast<double>(budget.peak_bytes()) / 1e6, static_cast<double>(checkpoint.memory_bytes()) / 1e6,
      static_cast<double>(checkpoint.header_bytes()) / 1e6, catalog_s, catalog.value().record_bytes(),
      catalog.value().slot_bytes(), static_cast<double>(budget.used_bytes() - checkpoint.memory_bytes()) / 1e6,
      prefix_s);
}

}  // namespace
}  // namespace headrace
