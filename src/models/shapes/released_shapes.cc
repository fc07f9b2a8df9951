#include "models/shapes/released_shapes.h"

namespace headrace {
namespace {

constexpr std::string_view kKimiLinear = R"json({
  "architectures": ["KimiLinearForCausalLM"],
  "model_type": "kimi_linear",
  "dtype": "bfloat16",
  "bos_token_id": 163584,
  "eos_token_id": 163586,
  "pad_token_id": 163839,
  "vocab_size": 163840,
  "hidden_size": 2304,
  "num_hidden_layers": 27,
  "intermediate_size": 9216,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false,
  "model_max_length": 1048576,
  "num_attention_heads": 32,
  "num_key_value_heads": 32,
  "head_dim": 72,
  "q_lora_rank": null,
  "kv_lora_rank": 512,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "v_head_dim": 128,
  "mla_use_nope": true,
  "rope_theta": 10000.0,
  "rope_scaling": null,
  "linear_attn_config": {
    "num_heads": 32,
    "head_dim": 128,
    "short_conv_kernel_size": 4,
    "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
    "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26]
  },
  "first_k_dense_replace": 1,
  "moe_layer_freq": 1,
  "num_experts": 256,
  "num_experts_per_token": 8,
  "num_shared_experts": 1,
  "moe_intermediate_size": 1024,
  "moe_router_activation_func": "sigmoid",
  "moe_renormalize": true,
  "routed_scaling_factor": 2.446,
  "num_expert_group": 1,
  "topk_group": 1,
  "use_grouped_topk": true,
  "num_nextn_predict_layers": 0,
  "initializer_range": 0.02
}
)json";

constexpr std::string_view kKimiK3 = R"json({
  "architectures": ["KimiK3ForConditionalGeneration"],
  "model_type": "kimi_k3",
  "dtype": "bfloat16",
  "bos_token_id": 163584,
  "eos_token_id": 163586,
  "pad_token_id": 163839,
  "ignore_index": -100,
  "media_placeholder_token_id": 163605,
  "image_placeholder": "<|kimi_image_placeholder|>",
  "tie_word_embeddings": false,
  "text_config": {
    "architectures": ["KimiLinearForCausalLM"],
    "model_type": "kimi_linear",
    "dtype": "bfloat16",
    "bos_token_id": 163584,
    "eos_token_id": 163586,
    "pad_token_id": 163839,
    "vocab_size": 163840,
    "hidden_size": 7168,
    "num_hidden_layers": 93,
    "intermediate_size": 33792,
    "hidden_act": "situ",
    "activation_situ_beta": 4.0,
    "activation_situ_linear_beta": 25.0,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": false,
    "max_position_embeddings": 1048576,
    "num_attention_heads": 96,
    "num_key_value_heads": 96,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "mla_use_nope": true,
    "mla_use_output_gate": true,
    "attn_res_block_size": 12,
    "linear_attn_config": {
      "num_heads": 96,
      "head_dim": 128,
      "short_conv_kernel_size": 4,
      "use_full_rank_gate": true,
      "gate_lower_bound": -5.0,
      "full_attn_layers": [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 93],
      "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26, 27, 29, 30, 31, 33, 34, 35,
                     37, 38, 39, 41, 42, 43, 45, 46, 47, 49, 50, 51, 53, 54, 55, 57, 58, 59, 61, 62, 63, 65, 66, 67, 69, 70, 71,
                     73, 74, 75, 77, 78, 79, 81, 82, 83, 85, 86, 87, 89, 90, 91]
    },
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_shared_experts": 2,
    "moe_intermediate_size": 3072,
    "routed_expert_hidden_size": 3584,
    "latent_moe_use_norm": true,
    "moe_router_activation_func": "sigmoid",
    "moe_renormalize": true,
    "routed_scaling_factor": 1.0,
    "num_expert_group": 1,
    "topk_group": 1,
    "use_grouped_topk": true,
    "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 0,
    "initializer_range": 0.02,
    "quantization_config": {
      "quant_method": "compressed-tensors",
      "format": "mxfp4-pack-quantized",
      "quantization_status": "compressed",
      "kv_cache_scheme": null,
      "global_compression_ratio": null,
      "config_groups": {
        "group_0": {
          "format": "mxfp4-pack-quantized",
          "targets": ["Linear"],
          "input_activations": null,
          "output_activations": null,
          "weights": {
            "type": "float", "num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": true,
            "scale_dtype": "torch.uint8", "zp_dtype": null, "dynamic": false, "actorder": null,
            "block_structure": null, "observer": "minmax", "observer_kwargs": {}
          }
        }
      },
      "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
                 "re:.*lm_head.*", "re:.*vision_tower.*", "re:.*mm_projector.*"]
    }
  },
  "vision_config": {
    "patch_size": 14,
    "init_pos_emb_height": 64,
    "init_pos_emb_width": 64,
    "init_pos_emb_time": 4,
    "pos_emb_type": "divided_fixed",
    "pos_emb_interpolation_mode": "bilinear",
    "patch_embed_proj_bias": false,
    "vt_hidden_size": 1024,
    "vt_num_hidden_layers": 27,
    "vt_num_attention_heads": 12,
    "vt_intermediate_size": 4096,
    "qkv_hidden_size": 1536,
    "norm_type": "rmsnorm",
    "mlp_type": "mlp2",
    "activation_func": "gelu_pytorch_tanh",
    "attn_bias": false,
    "linear_bias": false,
    "merge_type": "sd2_tpool",
    "merge_kernel_size": [2, 2],
    "mm_projector_type": "patchmergerv2",
    "mm_hidden_size": 1024,
    "projector_hidden_act": "gelu",
    "projector_ln_eps": 1e-05,
    "text_hidden_size": 7168
  }
}
)json";

}  // namespace

std::optional<std::string_view> released_shape(std::string_view name) {
  if (name == "kimi-linear-48b") return kKimiLinear;
  if (name == "kimi-k3") return kKimiK3;
  return std::nullopt;
}

}  // namespace headrace
