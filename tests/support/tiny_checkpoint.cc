#include "support/tiny_checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/ensure.h"
#include "support/value_generator.h"

namespace headrace::test {
namespace {

using nlohmann::json;
using Shards = std::map<std::string, std::vector<WrittenTensor>>;

constexpr uint64_t kTokenizerVocabulary = 768;

/// Numbers below `limit` in a fixed order per seed; the remainder's bias is of no interest here.
class SeededNumbers {
 public:
  explicit SeededNumbers(uint64_t seed) : seed_(seed) {}
  size_t below(size_t limit) { return value_hash(seed_, count_++) % limit; }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

std::string shard_name(size_t index, size_t count, bool k3) {
  char name[64];
  // The release counts with five digits and names the total with six.
  std::snprintf(name, sizeof(name), k3 ? "model-%05zu-of-%06zu.safetensors" : "model-%05zu-of-%05zu.safetensors",
                index + 1, count);
  return name;
}

/// The layer that a tensor belongs to, or -1.
int layer_of(const std::string& name) {
  const std::string marker = "model.layers.";
  const size_t place = name.find(marker);
  return place == std::string::npos ? -1 : std::stoi(name.substr(place + marker.size()));
}

/// One file per layer, one for the ends of the model, one for the projector, one for the tower.
size_t k3_shard(const std::string& name, size_t layer_count) {
  if (name.starts_with("mm_projector.")) return layer_count + 1;
  if (name.starts_with("vision_tower.")) return layer_count + 2;
  const int layer = layer_of(name);
  return layer < 0 ? layer_count : static_cast<size_t>(layer);
}

Shards k3_shards(std::vector<WrittenTensor> tensors, const json& config) {
  const size_t layer_count = config["text_config"]["num_hidden_layers"].get<size_t>();
  const bool vision = config.contains("vision_config") && config["vision_config"].is_object();
  const size_t count = layer_count + (vision ? 3 : 1);
  Shards shards;
  for (WrittenTensor& tensor : tensors) {
    shards[shard_name(k3_shard(tensor.name, layer_count), count, true)].push_back(std::move(tensor));
  }
  return shards;
}

/// Two files; the border lies inside a layer, inside its experts where it has some.
Shards linear_shards(std::vector<WrittenTensor> tensors, const json& config) {
  const int border_layer = config["num_hidden_layers"].get<int>() / 2;
  size_t layer_tensors = 0;
  for (const WrittenTensor& tensor : tensors) layer_tensors += layer_of(tensor.name) == border_layer;
  Shards shards;
  size_t seen = 0;
  for (WrittenTensor& tensor : tensors) {
    const int layer = layer_of(tensor.name);
    const bool in_second =
        layer < 0 || layer > border_layer || (layer == border_layer && seen++ > 2 * layer_tensors / 3);
    shards[shard_name(in_second ? 1 : 0, 2, false)].push_back(std::move(tensor));
  }
  return shards;
}

void shuffle(std::vector<WrittenTensor>& tensors, SeededNumbers& numbers) {
  for (size_t i = tensors.size(); i > 1; --i) std::swap(tensors[i - 1], tensors[numbers.below(i)]);
}

/// Deals all tensors to the files at random; none stays empty.
void scatter_files(Shards& shards, SeededNumbers& numbers) {
  std::vector<WrittenTensor> all;
  for (auto& [name, tensors] : shards) {
    std::move(tensors.begin(), tensors.end(), std::back_inserter(all));
    tensors.clear();
  }
  shuffle(all, numbers);
  std::vector<std::string> names;
  for (const auto& [name, tensors] : shards) names.push_back(name);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t file = i < names.size() ? i : numbers.below(names.size());
    shards[names[file]].push_back(std::move(all[i]));
  }
}

/// Spaces that make the data of a file begin at an odd offset, some way into a block.
size_t odd_padding(const std::vector<WrittenTensor>& tensors, SeededNumbers& numbers) {
  const size_t header_bytes = header_text(tensors).size();
  const size_t padding = numbers.below(600);
  return (header_bytes + padding) % 2 == 1 ? padding : padding + 1;
}

Files shard_files(Shards shards, const TinyOptions& options) {
  Files files;
  SeededNumbers numbers(options.scatter_seed.value_or(0));
  if (options.scatter_seed && options.scatter_files) scatter_files(shards, numbers);
  files["model.safetensors.index.json"] = index_text(shards);
  for (auto& [name, tensors] : shards) {
    size_t padding = 0;
    if (options.scatter_seed) {
      shuffle(tensors, numbers);
      padding = odd_padding(tensors, numbers);
    } else {
      padding = (8 - header_text(tensors).size() % 8) % 8;  // Writers align the data to eight bytes.
    }
    files[name] = safetensors_bytes(tensors, padding);
  }
  return files;
}

}  // namespace

json tiny_linear_config() {
  return json::parse(R"json(
{"architectures":["KimiLinearForCausalLM"],"model_type":"kimi_linear","dtype":"bfloat16",
 "bos_token_id":512,"eos_token_id":514,"pad_token_id":767,
 "vocab_size":768,"hidden_size":64,"num_hidden_layers":6,"intermediate_size":128,"hidden_act":"silu",
 "rms_norm_eps":1e-05,"tie_word_embeddings":false,"model_max_length":4096,
 "num_attention_heads":4,"num_key_value_heads":4,"head_dim":16,"q_lora_rank":null,"kv_lora_rank":32,
 "qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":16,"mla_use_nope":true,
 "linear_attn_config":{"num_heads":4,"head_dim":16,"short_conv_kernel_size":4,
                       "full_attn_layers":[4,6],"kda_layers":[1,2,3,5]},
 "first_k_dense_replace":1,"moe_layer_freq":1,"num_experts":8,"num_experts_per_token":2,"num_shared_experts":1,
 "moe_intermediate_size":32,"moe_router_activation_func":"sigmoid","moe_renormalize":true,
 "routed_scaling_factor":2.446,"num_expert_group":1,"topk_group":1,"use_grouped_topk":true,
 "num_nextn_predict_layers":0}
)json");
}

json tiny_k3_config() {
  return json::parse(R"json(
{"architectures":["KimiK3ForConditionalGeneration"],"model_type":"kimi_k3","dtype":"bfloat16",
 "bos_token_id":512,"eos_token_id":514,"pad_token_id":767,"ignore_index":-100,
 "media_placeholder_token_id":533,"image_placeholder":"<|kimi_image_placeholder|>","tie_word_embeddings":false,
 "text_config":{
  "architectures":["KimiLinearForCausalLM"],"model_type":"kimi_linear","vocab_size":768,"hidden_size":128,
  "num_hidden_layers":8,"intermediate_size":256,"hidden_act":"situ","activation_situ_beta":4.0,
  "activation_situ_linear_beta":25.0,"rms_norm_eps":1e-05,"tie_word_embeddings":false,
  "max_position_embeddings":4096,"num_attention_heads":4,"num_key_value_heads":4,"q_lora_rank":48,
  "kv_lora_rank":32,"qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":16,"mla_use_nope":true,
  "mla_use_output_gate":true,"attn_res_block_size":3,
  "linear_attn_config":{"num_heads":6,"head_dim":16,"short_conv_kernel_size":4,"use_full_rank_gate":true,
                        "gate_lower_bound":-5.0,"full_attn_layers":[4,7,8],"kda_layers":[1,2,3,5,6]},
  "first_k_dense_replace":1,"moe_layer_freq":1,"num_experts":16,"num_experts_per_token":4,"num_shared_experts":2,
  "moe_intermediate_size":96,"routed_expert_hidden_size":64,"latent_moe_use_norm":true,
  "moe_router_activation_func":"sigmoid","moe_renormalize":true,"routed_scaling_factor":1.0,"num_expert_group":1,
  "topk_group":1,"use_grouped_topk":true,"topk_method":"noaux_tc","num_nextn_predict_layers":0,
  "bos_token_id":512,"eos_token_id":514,"pad_token_id":767,
  "quantization_config":{
   "quant_method":"compressed-tensors","format":"mxfp4-pack-quantized","quantization_status":"compressed",
   "config_groups":{"group_0":{"format":"mxfp4-pack-quantized","targets":["Linear"],
    "weights":{"type":"float","num_bits":4,"group_size":32,"strategy":"group","symmetric":true,
               "scale_dtype":"torch.uint8"}}},
   "ignore":["re:.*self_attn.*","re:.*shared_experts.*","re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
             "re:.*lm_head.*","re:.*vision_tower.*","re:.*mm_projector.*"]}},
 "vision_config":{
  "patch_size":14,"init_pos_emb_height":8,"init_pos_emb_width":8,"init_pos_emb_time":4,
  "pos_emb_type":"divided_fixed","pos_emb_interpolation_mode":"bilinear","patch_embed_proj_bias":false,
  "vt_hidden_size":32,"vt_num_hidden_layers":2,"vt_num_attention_heads":3,"vt_intermediate_size":64,
  "qkv_hidden_size":48,"norm_type":"rmsnorm","mlp_type":"mlp2","activation_func":"gelu_pytorch_tanh",
  "attn_bias":false,"linear_bias":false,"merge_type":"sd2_tpool","merge_kernel_size":[2,2],
  "mm_projector_type":"patchmergerv2","mm_hidden_size":32,"projector_hidden_act":"gelu","projector_ln_eps":1e-05,
  "text_hidden_size":128}}
)json");
}

Files tiny_checkpoint(const json& config, const TinyOptions& options) {
  const bool k3 = config.contains("text_config");
  const json& text = k3 ? config["text_config"] : config;
  std::vector<WrittenTensor> tensors = tiny_tensors(config, options);
  Shards shards = k3 ? k3_shards(std::move(tensors), config) : linear_shards(std::move(tensors), config);
  Files files = shard_files(std::move(shards), options);
  files["config.json"] = config.dump(1);
  if (config.contains("eos_token_id")) {
    files["generation_config.json"] = json{{"eos_token_id", config["eos_token_id"]}}.dump();
  }
  if (options.tokenizer && text["vocab_size"].get<uint64_t>() >= kTokenizerVocabulary) files.merge(tiny_tokenizer(k3));
  return files;
}

}  // namespace headrace::test
