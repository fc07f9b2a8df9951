#include "models/families/kimi_config.h"

#include <algorithm>

namespace headrace {
namespace {

// Generous beside the released models, small enough that no product of two of them wraps.
constexpr ConfigObject::Range kWidth{1, 1 << 20};
constexpr ConfigObject::Range kWidthOrOff{0, 1 << 20};
constexpr ConfigObject::Range kHeads{1, 1 << 14};
constexpr ConfigObject::Range kHeadDim{1, 1 << 14};
constexpr ConfigObject::Range kVocabulary{1, 1 << 24};
constexpr ConfigObject::Range kContext{1, 1 << 30};
constexpr size_t kLayersMax = 1000;
constexpr size_t kExpertsMax = 1 << 16;
constexpr size_t kConvolutionWidth = 4;

Error unsupported(const ConfigObject& config, const char* key, const std::string& value, const char* supported) {
  return error(Code::kUnsupported, "%s: \"%s\" is %s; this version runs %s", config.path().c_str(), key, value.c_str(),
               supported);
}

/// Refuses what the formulas do not cover, by name (spec 2.3.9).
Status refuse_unsupported(const ConfigObject& text) {
  if (!TRY(text.boolean({"mla_use_nope"}))) return unsupported(text, "mla_use_nope", "false", "true");
  if (TRY(text.boolean_or_false({"tie_word_embeddings"}))) {
    return unsupported(text, "tie_word_embeddings", "true", "false");
  }
  const size_t draft_layers = TRY(text.integer_or({"num_nextn_predict_layers"}, 0, {0, kLayersMax}));
  if (draft_layers > 0) {
    return unsupported(text, "num_nextn_predict_layers", std::to_string(draft_layers), "0");
  }
  const std::string method = TRY(text.text_or({"topk_method"}, "noaux_tc"));
  if (method != "noaux_tc") return unsupported(text, "topk_method", quoted(method), "noaux_tc");
  return {};
}

/// Experts stored in 4 bits have one supported form (spec 2.3.9); which tensors use it is decided by the tensors.
Status check_quantization(const ConfigObject& holder) {
  if (!holder.has({"quantization_config"})) return {};
  const ConfigObject quantization = TRY(holder.object("quantization_config"));
  const std::string format = TRY(quantization.text_or({"format"}, "(absent)"));
  if (format != "mxfp4-pack-quantized")
    return unsupported(quantization, "format", quoted(format), "mxfp4-pack-quantized");
  if (!quantization.has_object("config_groups")) return {};
  const ConfigObject groups = TRY(quantization.object("config_groups"));
  if (!groups.has_object("group_0")) return {};
  const ConfigObject group = TRY(groups.object("group_0"));
  if (!group.has_object("weights")) return {};
  const ConfigObject weights = TRY(group.object("weights"));
  const size_t group_size = TRY(weights.integer_or({"group_size"}, 32, {0, 1 << 20}));
  if (group_size != 32) return unsupported(weights, "group_size", std::to_string(group_size), "32");
  const size_t bits = TRY(weights.integer_or({"num_bits"}, 4, {0, 64}));
  if (bits != 4) return unsupported(weights, "num_bits", std::to_string(bits), "4");
  return {};
}

Result<Activation> read_activation(const ConfigObject& text) {
  const std::string name = TRY(text.text({"hidden_act"}));
  Activation activation;
  if (name == "silu") return activation;
  if (name != "situ") return unsupported(text, "hidden_act", quoted(name), "silu and situ");
  activation.kind = Activation::Kind::kSitu;
  activation.beta = TRY(text.optional_number({"activation_situ_beta"})).value_or(0.0f);
  if (activation.beta == 0.0f) activation.beta = 1.0f;  // Spec 2.3.6.
  const std::optional<float> linear_beta = TRY(text.optional_number({"activation_situ_linear_beta"}));
  if (linear_beta && *linear_beta == 0.0f) {
    return unsupported(text, "activation_situ_linear_beta", "0", "numbers other than 0, or none");
  }
  activation.linear_beta = linear_beta.value_or(0.0f);
  return activation;
}

/// Which layers are KDA; the two lists are 1-based and must partition the layers (spec 2.3.2).
Result<std::vector<bool>> read_layer_kinds(const ConfigObject& text, const ConfigObject& linear_attention) {
  const size_t layers = TRY(text.integer({"num_hidden_layers"}, {1, kLayersMax}));
  std::vector<int> kinds(layers, -1);
  const char* const lists[] = {"full_attn_layers", "kda_layers"};
  for (int kind = 0; kind < 2; ++kind) {
    for (const size_t number : TRY(linear_attention.integers({lists[kind]}, {1, layers}, layers))) {
      if (kinds[number - 1] != -1) {
        return error(Code::kFormat, "%s: layer %zu stands twice in the lists of layers",
                     linear_attention.path().c_str(), number);
      }
      kinds[number - 1] = kind;
    }
  }
  const auto missing = std::ranges::find(kinds, -1);
  if (missing != kinds.end()) {
    return error(Code::kFormat, "%s: layer %td of %zu is neither in full_attn_layers nor in kda_layers",
                 linear_attention.path().c_str(), missing - kinds.begin() + 1, layers);
  }
  return std::vector<bool>(kinds.begin(), kinds.end());
}

Result<KdaShape> read_kda(const ConfigObject& linear_attention, size_t hidden, float epsilon) {
  KdaShape kda;
  kda.hidden = hidden;
  kda.epsilon = epsilon;
  kda.heads = TRY(linear_attention.integer({"num_heads"}, kHeads));
  kda.head_dim = TRY(linear_attention.integer({"head_dim"}, kHeadDim));
  kda.full_rank_gate = TRY(linear_attention.boolean_or_false({"use_full_rank_gate"}));
  kda.gate_lower_bound = TRY(linear_attention.optional_number({"gate_lower_bound"}));
  if (kda.gate_lower_bound && *kda.gate_lower_bound > 0.0f) {
    return error(Code::kFormat, "%s: \"gate_lower_bound\" is %g; a decay exponent is never above 0",
                 linear_attention.path().c_str(), static_cast<double>(*kda.gate_lower_bound));
  }
  const size_t width = TRY(linear_attention.integer({"short_conv_kernel_size"}, {1, 1024}));
  if (width != kConvolutionWidth) {
    return unsupported(linear_attention, "short_conv_kernel_size", std::to_string(width), "4");
  }
  return kda;
}

Result<MlaShape> read_mla(const ConfigObject& text, size_t hidden, float epsilon) {
  MlaShape mla;
  mla.hidden = hidden;
  mla.epsilon = epsilon;
  // The released Python leaves these two norms at 1e-6; every serving engine uses rms_norm_eps (spec 6, 18).
  mla.projection_epsilon = epsilon;
  mla.heads = TRY(text.integer({"num_attention_heads"}, kHeads));
  const size_t key_heads = TRY(text.integer_or({"num_key_value_heads"}, mla.heads, kHeads));
  if (key_heads != mla.heads) {
    return unsupported(text, "num_key_value_heads", std::to_string(key_heads), "as many as num_attention_heads");
  }
  mla.query_rank = TRY(text.integer_or({"q_lora_rank"}, 0, kWidthOrOff));
  mla.latent = TRY(text.integer({"kv_lora_rank"}, kWidth));
  mla.nope = TRY(text.integer({"qk_nope_head_dim"}, kHeadDim));
  mla.rope = TRY(text.integer({"qk_rope_head_dim"}, kHeadDim));
  mla.value = TRY(text.integer({"v_head_dim"}, kHeadDim));
  mla.output_gate = TRY(text.boolean_or_false({"mla_use_output_gate"}));
  return mla;
}

Result<RouterRules> read_router(const ConfigObject& text, size_t experts) {
  RouterRules rules;
  rules.top_k = TRY(text.integer({"num_experts_per_token", "num_experts_per_tok"}, {1, experts}));
  rules.group_count = TRY(text.integer_or({"num_expert_group", "n_group"}, 1, {1, experts}));
  rules.groups_kept = TRY(text.integer_or({"topk_group"}, rules.group_count, {1, rules.group_count}));
  rules.renormalize = TRY(text.boolean({"moe_renormalize", "norm_topk_prob"}));
  rules.scale = TRY(text.number({"routed_scaling_factor"}));
  const size_t group_size = experts / rules.group_count;
  if (experts % rules.group_count != 0) {
    return error(Code::kFormat, "%s: %zu experts do not divide into %zu groups", text.path().c_str(), experts,
                 rules.group_count);
  }
  if (rules.top_k > group_size * rules.groups_kept) {
    return error(Code::kFormat, "%s: %zu experts per token, but the %zu kept groups hold %zu", text.path().c_str(),
                 rules.top_k, rules.groups_kept, group_size * rules.groups_kept);
  }
  if (rules.group_count > rules.groups_kept && group_size < 2) {
    return error(Code::kFormat, "%s: groups are scored by their two best experts, but hold one", text.path().c_str());
  }
  return rules;
}

Result<MoeShape> read_moe(const ConfigObject& text, size_t hidden, float epsilon) {
  MoeShape moe;
  moe.hidden = hidden;
  moe.epsilon = epsilon;
  moe.experts = TRY(text.integer_or({"num_experts", "n_routed_experts", "num_local_experts"}, 0, {0, kExpertsMax}));
  if (moe.experts == 0) return moe;
  moe.width = TRY(text.integer({"moe_intermediate_size"}, kWidth));
  moe.latent = TRY(text.integer_or({"routed_expert_hidden_size"}, 0, kWidthOrOff));
  moe.latent_norm = moe.latent > 0 && TRY(text.boolean_or_false({"latent_moe_use_norm"}));
  moe.shared_width = moe.width * TRY(text.integer_or({"num_shared_experts", "n_shared_experts"}, 0, {0, 64}));
  moe.router = TRY(read_router(text, moe.experts));
  const std::string scores = TRY(text.text({"moe_router_activation_func"}));
  if (scores != "sigmoid" && scores != "softmax") {
    return unsupported(text, "moe_router_activation_func", quoted(scores), "sigmoid and softmax");
  }
  moe.softmax_scores = scores == "softmax";
  return moe;
}

/// Which layers have experts (spec 2.3.3).
Result<std::vector<bool>> read_moe_layers(const ConfigObject& text, size_t layers, bool has_experts) {
  std::vector<bool> is_moe(layers, false);
  if (!has_experts) return is_moe;
  const size_t first = TRY(text.integer({"first_k_dense_replace"}, {0, kLayersMax}));
  const size_t every = TRY(text.integer_or({"moe_layer_freq"}, 1, {1, kLayersMax}));
  for (size_t layer = first; layer < layers; ++layer) is_moe[layer] = layer % every == 0;
  return is_moe;
}

}  // namespace

Result<KimiConfig> read_kimi_config(const ConfigObject& outer) {
  KimiConfig config;
  config.is_nested = outer.has({"text_config"});
  config.has_vision = outer.has({"vision_config"});
  config.tensor_prefix = config.is_nested ? "language_model." : "";
  const ConfigObject text = config.is_nested ? TRY(outer.object("text_config")) : outer;
  TRY(refuse_unsupported(text));
  TRY(check_quantization(text));
  TRY(check_quantization(outer));
  config.vocabulary_size = TRY(text.integer({"vocab_size"}, kVocabulary));
  config.hidden = TRY(text.integer({"hidden_size"}, kWidth));
  config.context_tokens_max = TRY(text.integer({"max_position_embeddings", "model_max_length"}, kContext));
  config.epsilon = TRY(text.number({"rms_norm_eps"}));
  if (!(config.epsilon > 0.0f && config.epsilon < 1.0f)) {
    return error(Code::kFormat, "%s: \"rms_norm_eps\" is %g; a number between 0 and 1 is expected", text.path().c_str(),
                 static_cast<double>(config.epsilon));
  }
  config.activation = TRY(read_activation(text));
  config.residual_block = TRY(text.integer_or({"attn_res_block_size"}, 0, {0, kLayersMax}));
  const ConfigObject linear_attention = TRY(text.object("linear_attn_config"));
  config.layer_is_kda = TRY(read_layer_kinds(text, linear_attention));
  config.kda = TRY(read_kda(linear_attention, config.hidden, config.epsilon));
  config.mla = TRY(read_mla(text, config.hidden, config.epsilon));
  config.moe = TRY(read_moe(text, config.hidden, config.epsilon));
  config.layer_is_moe = TRY(read_moe_layers(text, config.layer_count(), config.moe.experts > 0));
  if (std::ranges::find(config.layer_is_moe, false) != config.layer_is_moe.end()) {
    config.dense_width = TRY(text.integer({"intermediate_size"}, kWidth));
  }
  config.stop_ids = TRY(text.token_ids({"eos_token_id"}));
  const auto outer_ids = TRY(outer.token_ids({"eos_token_id"}));
  for (const int32_t id : outer_ids) {
    if (std::ranges::find(config.stop_ids, id) == config.stop_ids.end()) config.stop_ids.push_back(id);
  }
  return config;
}

}  // namespace headrace
