#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/ensure.h"
#include "support/tiny_checkpoint.h"
#include "support/value_generator.h"

namespace headrace::test {
namespace {

using nlohmann::json;

constexpr uint64_t kMxfp4Block = 32;

/// A key by value: absent, null and false count as 0.
uint64_t number(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return 0;
  if (found->is_boolean()) return found->get<bool>() ? 1 : 0;
  return found->get<uint64_t>();
}

uint64_t needed(const json& config, const char* key) {
  const uint64_t value = number(config, key);
  ENSURE(value > 0);
  return value;
}

bool contains(const json& list, uint64_t value) {
  return std::find(list.begin(), list.end(), json(value)) != list.end();
}

/// Writes down the tensors of a config.
class TensorList {
 public:
  TensorList(const json& config, const TinyOptions& options, bool with_bytes)
      : config_(config),
        nested_(config.contains("text_config")),
        text_(nested_ ? config["text_config"] : config),
        options_(options),
        with_bytes_(with_bytes) {
    hidden_ = needed(text_, "hidden_size");
    small_type_ = options.small_type.empty() ? "F32" : options.small_type;
    // The flat release stores these two kinds as BF16.
    conv_type_ = !options.small_type.empty() ? options.small_type : nested_ ? "F32" : "BF16";
  }

  std::vector<WrittenTensor> all() {
    prefix_ = nested_ ? "language_model." : "";
    const uint64_t layers = needed(text_, "num_hidden_layers");
    for (uint64_t layer = 0; layer < layers; ++layer) add_layer(layer);
    add_ends();
    prefix_ = "";
    if (config_.contains("vision_config") && config_["vision_config"].is_object()) add_vision(config_["vision_config"]);
    return std::move(tensors_);
  }

 private:
  void add(const std::string& name, const std::string& type, std::vector<uint64_t> shape, const ValueRule& rule,
           uint64_t nonzero_count = UINT64_MAX) {
    uint64_t count = 1;
    for (const uint64_t dim : shape) count *= dim;
    WrittenTensor tensor{prefix_ + name, type, std::move(shape), {}};
    if (with_bytes_) tensor.bytes = tensor_bytes(tensor.name, type, rule, count, nonzero_count);
    tensors_.push_back(std::move(tensor));
  }
  void add_linear(const std::string& name, uint64_t out, uint64_t in) {
    add(name, "BF16", {out, in}, {.scale = std::sqrt(3.0 / static_cast<double>(in))});
  }
  void add_norm(const std::string& name, uint64_t size, const std::string& type = "BF16") {
    add(name, type, {size}, {.offset = 1, .scale = 0.25});
  }

  void add_layer(uint64_t layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".";
    add_norm(name + "input_layernorm.weight", hidden_);
    add_norm(name + "post_attention_layernorm.weight", hidden_);
    if (number(text_, "attn_res_block_size") > 0) {
      for (const char* part : {"self_attention", "mlp"}) {
        add_norm(name + part + "_res_norm.weight", hidden_);
        add_linear(name + part + "_res_proj.weight", 1, hidden_);
      }
    }
    if (contains(text_["linear_attn_config"]["kda_layers"], layer + 1)) {
      add_kda(name + "self_attn.", text_["linear_attn_config"]);
    } else {
      add_mla(name + "self_attn.");
    }
    const uint64_t frequency = std::max<uint64_t>(1, number(text_, "moe_layer_freq"));
    const bool moe = number(text_, "num_experts") > 0 && layer >= number(text_, "first_k_dense_replace");
    if (moe && layer % frequency == 0) {
      add_moe(name + "block_sparse_moe.");
    } else {
      add_mlp(name + "mlp.", needed(text_, "intermediate_size"));
    }
  }

  void add_kda(const std::string& name, const json& kda) {
    const uint64_t heads = needed(kda, "num_heads");
    const uint64_t head_dim = needed(kda, "head_dim");
    const uint64_t width = heads * head_dim;
    for (const char* part : {"q", "k", "v"}) add_linear(name + part + "_proj.weight", width, hidden_);
    for (const char* part : {"q", "k", "v"}) {
      add(name + part + "_conv1d.weight", conv_type_, {width, 1, needed(kda, "short_conv_kernel_size")},
          {.scale = 0.5});
    }
    if (nested_) {
      // Stored wider than it is used, like the release.
      add(name + "A_log", small_type_, {std::max(heads, head_dim)}, {.scale = 0.75}, heads);
    } else {
      add(name + "A_log", small_type_, {1, 1, heads, 1}, {.scale = 0.75});
    }
    add(name + "dt_bias", small_type_, {width}, {.offset = -1});
    add_linear(name + "f_a_proj.weight", head_dim, hidden_);
    add_linear(name + "f_b_proj.weight", width, head_dim);
    add_linear(name + "b_proj.weight", heads, hidden_);
    if (number(kda, "use_full_rank_gate")) {
      add_linear(name + "g_proj.weight", width, hidden_);
    } else {
      add_linear(name + "g_a_proj.weight", head_dim, hidden_);
      add_linear(name + "g_b_proj.weight", width, head_dim);
    }
    add_norm(name + "o_norm.weight", head_dim, conv_type_);
    add_linear(name + "o_proj.weight", hidden_, width);
  }

  void add_mla(const std::string& name) {
    const uint64_t heads = needed(text_, "num_attention_heads");
    const uint64_t nope = needed(text_, "qk_nope_head_dim");
    const uint64_t rope = needed(text_, "qk_rope_head_dim");
    const uint64_t value = needed(text_, "v_head_dim");
    const uint64_t latent = needed(text_, "kv_lora_rank");
    const uint64_t query_latent = number(text_, "q_lora_rank");
    if (query_latent > 0) {
      add_linear(name + "q_a_proj.weight", query_latent, hidden_);
      add_norm(name + "q_a_layernorm.weight", query_latent);
      add_linear(name + "q_b_proj.weight", heads * (nope + rope), query_latent);
    } else {
      add_linear(name + "q_proj.weight", heads * (nope + rope), hidden_);
    }
    add_linear(name + "kv_a_proj_with_mqa.weight", latent + rope, hidden_);
    add_norm(name + "kv_a_layernorm.weight", latent);
    add_linear(name + "kv_b_proj.weight", heads * (nope + value), latent);
    if (number(text_, "mla_use_output_gate")) add_linear(name + "g_proj.weight", heads * value, hidden_);
    add_linear(name + "o_proj.weight", hidden_, heads * value);
  }

  void add_mlp(const std::string& name, uint64_t width) {
    add_linear(name + "gate_proj.weight", width, hidden_);
    add_linear(name + "up_proj.weight", width, hidden_);
    add_linear(name + "down_proj.weight", hidden_, width);
  }

  void add_moe(const std::string& name) {
    const uint64_t experts = number(text_, "num_experts");
    const uint64_t width = needed(text_, "moe_intermediate_size");
    const uint64_t latent = number(text_, "routed_expert_hidden_size");
    const uint64_t input = latent > 0 ? latent : hidden_;
    add_linear(name + "gate.weight", experts, hidden_);
    add(name + "gate.e_score_correction_bias", small_type_, {experts}, {.scale = 0.25});
    if (latent > 0) {
      add_linear(name + "routed_expert_down_proj.weight", latent, hidden_);
      if (number(text_, "latent_moe_use_norm")) add_norm(name + "routed_expert_norm.weight", latent);
      add_linear(name + "routed_expert_up_proj.weight", hidden_, latent);
    }
    const uint64_t shared = number(text_, "num_shared_experts");
    if (shared > 0) add_mlp(name + "shared_experts.", shared * width);
    for (uint64_t expert = 0; expert < experts; ++expert) {
      const std::string one = name + "experts." + std::to_string(expert) + ".";
      add_expert_matrix(one + "w1", width, input);
      add_expert_matrix(one + "w2", input, width);
      add_expert_matrix(one + "w3", width, input);
    }
  }

  void add_expert_matrix(const std::string& name, uint64_t out, uint64_t in) {
    if (!stores_mxfp4()) return add_linear(name + ".weight", out, in);
    ENSURE(in % kMxfp4Block == 0);
    add(name + ".weight_packed", "U8", {out, in / 2}, {.kind = ValueRule::Kind::kPackedByte});
    add(name + ".weight_scale", "U8", {out, in / kMxfp4Block}, {.kind = ValueRule::Kind::kScaleByte});
  }

  bool stores_mxfp4() const {
    if (!options_.expert_format.empty()) return options_.expert_format == "mxfp4";
    return config_.contains("quantization_config") || text_.contains("quantization_config");
  }

  void add_ends() {
    const uint64_t vocabulary = needed(text_, "vocab_size");
    add("model.embed_tokens.weight", "BF16", {vocabulary, hidden_}, {});
    if (!number(text_, "tie_word_embeddings")) add_linear("lm_head.weight", vocabulary, hidden_);
    add_norm("model.norm.weight", hidden_);
    if (number(text_, "attn_res_block_size") == 0) return;
    add_norm("model.output_attn_res_norm.weight", hidden_);
    add_linear("model.output_attn_res_proj.weight", 1, hidden_);
  }

  void add_vision(const json& vision) {
    const uint64_t width = needed(vision, "vt_hidden_size");
    const uint64_t inner = needed(vision, "vt_intermediate_size");
    const uint64_t qkv = needed(vision, "qkv_hidden_size");
    const uint64_t patch = needed(vision, "patch_size");
    add("vision_tower.patch_embed.proj.weight", "BF16", {width, 3, patch, patch},
        {.scale = std::sqrt(3.0 / static_cast<double>(3 * patch * patch))});
    add("vision_tower.patch_embed.pos_emb.weight", "BF16",
        {needed(vision, "init_pos_emb_height"), needed(vision, "init_pos_emb_width"), width}, {});
    for (uint64_t block = 0; block < needed(vision, "vt_num_hidden_layers"); ++block) {
      const std::string name = "vision_tower.encoder.blocks." + std::to_string(block) + ".";
      add_norm(name + "norm0.weight", width);
      add_norm(name + "norm1.weight", width);
      add_linear(name + "wqkv.weight", 3 * qkv, width);
      add_linear(name + "wo.weight", width, qkv);
      add_linear(name + "mlp.fc0.weight", inner, width);
      add_linear(name + "mlp.fc1.weight", width, inner);
    }
    add_norm("vision_tower.encoder.final_layernorm.weight", width);
    // Two by two patches become one token.
    const uint64_t merged = 4 * needed(vision, "mm_hidden_size");
    add_linear("mm_projector.proj.0.weight", merged, merged);
    add_linear("mm_projector.proj.2.weight", hidden_, merged);
    add_norm("mm_projector.post_norm.weight", hidden_);
  }

  const json& config_;
  const bool nested_;
  const json& text_;
  const TinyOptions& options_;
  const bool with_bytes_;
  uint64_t hidden_ = 0;
  std::string small_type_;
  std::string conv_type_;
  std::string prefix_;
  std::vector<WrittenTensor> tensors_;
};

}  // namespace

std::vector<WrittenTensor> tiny_tensors(const json& config, const TinyOptions& options, bool with_bytes) {
  return TensorList(config, options, with_bytes).all();
}

}  // namespace headrace::test
