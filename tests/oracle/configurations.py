"""Named configurations: the two tiny models of spec/kimi.md sections 15.2 and 15.3, and small ones that vary a feature.

Each entry has a complete config.json object, a prompt, and the storage of the routed experts.
"""

import copy

PROMPT = [0, 17, 255, 301, 42, 42, 7, 500, 512, 532, 100, 64]

TINY_LINEAR = {
    "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "dtype": "bfloat16",
    "bos_token_id": 512, "eos_token_id": 514, "pad_token_id": 767,
    "vocab_size": 768, "hidden_size": 64, "num_hidden_layers": 6, "intermediate_size": 128, "hidden_act": "silu",
    "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "model_max_length": 4096,
    "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "q_lora_rank": None, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "mla_use_nope": True,
    "linear_attn_config": {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4,
                           "full_attn_layers": [4, 6], "kda_layers": [1, 2, 3, 5]},
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_experts": 8, "num_experts_per_token": 2,
    "num_shared_experts": 1, "moe_intermediate_size": 32, "moe_router_activation_func": "sigmoid",
    "moe_renormalize": True, "routed_scaling_factor": 2.446, "num_expert_group": 1, "topk_group": 1,
    "use_grouped_topk": True, "num_nextn_predict_layers": 0,
}

QUANTIZATION = {
    "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "quantization_status": "compressed",
    "config_groups": {"group_0": {
        "format": "mxfp4-pack-quantized", "targets": ["Linear"],
        "weights": {"type": "float", "num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": True,
                    "scale_dtype": "torch.uint8"}}},
    "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
               "re:.*lm_head.*", "re:.*vision_tower.*", "re:.*mm_projector.*"],
}

TINY_K3 = {
    "architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "dtype": "bfloat16",
    "bos_token_id": 512, "eos_token_id": 514, "pad_token_id": 767, "ignore_index": -100,
    "media_placeholder_token_id": 533, "image_placeholder": "<|kimi_image_placeholder|>", "tie_word_embeddings": False,
    "text_config": {
        "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear",
        "vocab_size": 768, "hidden_size": 128, "num_hidden_layers": 8, "intermediate_size": 256,
        "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "max_position_embeddings": 4096,
        "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 48, "kv_lora_rank": 32,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "mla_use_nope": True,
        "mla_use_output_gate": True, "attn_res_block_size": 3,
        "linear_attn_config": {"num_heads": 6, "head_dim": 16, "short_conv_kernel_size": 4,
                               "use_full_rank_gate": True, "gate_lower_bound": -5.0,
                               "full_attn_layers": [4, 7, 8], "kda_layers": [1, 2, 3, 5, 6]},
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_experts": 16, "num_experts_per_token": 4,
        "num_shared_experts": 2, "moe_intermediate_size": 96, "routed_expert_hidden_size": 64,
        "latent_moe_use_norm": True, "moe_router_activation_func": "sigmoid", "moe_renormalize": True,
        "routed_scaling_factor": 1.0, "num_expert_group": 1, "topk_group": 1, "use_grouped_topk": True,
        "topk_method": "noaux_tc", "num_nextn_predict_layers": 0,
        "bos_token_id": 512, "eos_token_id": 514, "pad_token_id": 767, "quantization_config": QUANTIZATION,
    },
    "vision_config": {
        "patch_size": 14, "init_pos_emb_height": 8, "init_pos_emb_width": 8, "init_pos_emb_time": 4,
        "pos_emb_type": "divided_fixed", "pos_emb_interpolation_mode": "bilinear", "patch_embed_proj_bias": False,
        "vt_hidden_size": 32, "vt_num_hidden_layers": 2, "vt_num_attention_heads": 3, "vt_intermediate_size": 64,
        "qkv_hidden_size": 48, "norm_type": "rmsnorm", "mlp_type": "mlp2", "activation_func": "gelu_pytorch_tanh",
        "attn_bias": False, "linear_bias": False, "merge_type": "sd2_tpool", "merge_kernel_size": [2, 2],
        "mm_projector_type": "patchmergerv2", "mm_hidden_size": 32, "projector_hidden_act": "gelu",
        "projector_ln_eps": 1e-05, "text_hidden_size": 128,
    },
}


def _attention(heads, width, full, layers, **more):
    """linear_attn_config with 1-based layer lists; `full` names the MLA layers."""
    kda = [layer for layer in range(1, layers + 1) if layer not in full]
    return {"num_heads": heads, "head_dim": width, "short_conv_kernel_size": 4, "full_attn_layers": list(full),
            "kda_layers": kda, **more}


def _special_ids(vocabulary):
    return {"bos_token_id": vocabulary - 8, "eos_token_id": vocabulary - 6, "pad_token_id": vocabulary - 1}


def small_linear(vocabulary=128, **changes):
    """A Kimi-Linear layout of four layers (KDA, KDA, MLA, KDA)."""
    config = copy.deepcopy(TINY_LINEAR)
    config.update(_special_ids(vocabulary), vocab_size=vocabulary, hidden_size=48, num_hidden_layers=4,
                  intermediate_size=80, num_attention_heads=2, num_key_value_heads=2, kv_lora_rank=32,
                  linear_attn_config=_attention(2, 16, [3], 4), moe_intermediate_size=32)
    config.update(changes)
    config["num_key_value_heads"] = config["num_attention_heads"]
    return config


def small_k3(vocabulary=128, **changes):
    """A K3 layout without vision, five layers (KDA, KDA, MLA, KDA, MLA), residual blocks of two."""
    config = copy.deepcopy(TINY_K3)
    del config["vision_config"]
    config.update(_special_ids(vocabulary), media_placeholder_token_id=vocabulary - 2)
    text = config["text_config"]
    text.update(_special_ids(vocabulary), vocab_size=vocabulary, hidden_size=64, num_hidden_layers=5,
                intermediate_size=96, num_attention_heads=3, q_lora_rank=24, attn_res_block_size=2,
                linear_attn_config=_attention(4, 16, [3, 5], 5, use_full_rank_gate=True, gate_lower_bound=-5.0),
                num_experts=8, num_experts_per_token=3, moe_intermediate_size=64, routed_expert_hidden_size=32)
    text.update(changes)
    text["num_key_value_heads"] = text["num_attention_heads"]
    return config


def _quantization_at_top(config):
    """Moves quantization_config out of text_config (2.3 rule 10: look in both places)."""
    config["quantization_config"] = config["text_config"].pop("quantization_config")
    return config


def _without(config, key):
    """Removes a key of the text configuration."""
    del config["text_config"][key]
    return config


# Odd widths everywhere: no vector of the model is a multiple of 16 long. Experts are BF16, as MXFP4 needs 32.
ODD_LINEAR = small_linear(
    vocabulary=101, hidden_size=72, intermediate_size=100, num_attention_heads=3, kv_lora_rank=20,
    qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=9, linear_attn_config=_attention(5, 24, [2, 4], 4),
    moe_intermediate_size=25)
ODD_K3 = small_k3(
    vocabulary=97, hidden_size=72, intermediate_size=90, num_attention_heads=5, q_lora_rank=21, kv_lora_rank=27,
    qk_nope_head_dim=11, qk_rope_head_dim=5, v_head_dim=13, num_experts=9, moe_intermediate_size=37,
    routed_expert_hidden_size=43,
    linear_attn_config=_attention(3, 24, [3, 5], 5, use_full_rank_gate=True, gate_lower_bound=-5.0))

CONFIGS = {
    "tiny_linear": TINY_LINEAR,
    "tiny_k3": TINY_K3,
    "groups": small_linear(num_experts=16, num_experts_per_token=4, num_expert_group=4, topk_group=2),
    "top_one": small_linear(num_experts_per_token=1),
    "no_renormalize": small_linear(num_experts_per_token=3, moe_renormalize=False),
    "residual_block_one": small_k3(attn_res_block_size=1),
    "residual_block_large": small_k3(attn_res_block_size=99),
    "no_latent": _quantization_at_top(small_k3(routed_expert_hidden_size=None, latent_moe_use_norm=False)),
    "latent_norm_off": small_k3(latent_moe_use_norm=False, routed_scaling_factor=1.5),
    "no_query_rank": small_k3(q_lora_rank=None),
    "no_mla_gate": small_k3(mla_use_output_gate=False, num_experts=16, num_expert_group=4, topk_group=2),
    "two_dense_layers": small_linear(first_k_dense_replace=2),
    "odd_linear": ODD_LINEAR,
    "odd_k3": ODD_K3,
    "moe_frequency_two": small_linear(moe_layer_freq=2, num_hidden_layers=5,
                                      linear_attn_config=_attention(2, 16, [3, 5], 5)),
    "no_shared_experts": small_linear(num_shared_experts=0),
    "softmax_router": small_linear(moe_router_activation_func="softmax", num_experts_per_token=3),
    "bounded_low_rank": small_linear(linear_attn_config=_attention(3, 16, [3], 4, gate_lower_bound=-5.0)),
    "mla_gate_linear": small_linear(mla_use_output_gate=True, num_shared_experts=2),
    "situ_no_linear_beta": _without(small_k3(activation_situ_beta=2.5), "activation_situ_linear_beta"),
    "narrow_widths": small_linear(kv_lora_rank=20, qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=14,
                                  hidden_size=40, moe_intermediate_size=20),
}

# Small prompts are such that no router gap of prompt or continuation is below 1e-3, and no top-1 margin below 0.01.
PROMPTS = {
    "tiny_linear": PROMPT,
    "tiny_k3": PROMPT,
    "groups": [14, 23, 21, 92, 43, 78, 64, 54, 9, 40, 110],
    "top_one": [60, 77, 26, 101, 122, 39, 23, 17, 5],
    "no_renormalize": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "residual_block_one": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "residual_block_large": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "no_latent": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "latent_norm_off": [60, 77, 26, 101, 122, 39, 23, 17, 5],
    "no_query_rank": [60, 77, 26, 101, 122, 39, 23, 17, 5],
    "no_mla_gate": [14, 23, 21, 92, 43, 78, 64, 54, 9, 40, 110],
    "two_dense_layers": [14, 23, 21, 92, 43, 78, 64, 54, 9, 40, 110],
    "odd_linear": [7, 11, 10, 46, 21, 94, 85, 39, 32, 77, 27],
    "odd_k3": [30, 38, 13, 92, 50, 61, 19, 11, 8],
    "moe_frequency_two": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "no_shared_experts": [60, 77, 26, 101, 122, 39, 23, 17, 5],
    "softmax_router": [20, 124, 66, 9, 0, 37, 120, 95, 81, 5, 69],
    "bounded_low_rank": [14, 23, 21, 92, 43, 78, 64, 54, 9, 40, 110],
    "mla_gate_linear": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "situ_no_linear_beta": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
    "narrow_widths": [34, 16, 65, 30, 126, 115, 120, 97, 53, 24],
}

# K3 layouts whose quantization_config stands although the experts are BF16: only tensor presence tells (2.3 rule 10).
EXPERT_FORMATS = {"odd_k3": "bf16"}
