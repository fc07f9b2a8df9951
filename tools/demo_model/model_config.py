"""The configuration files of the checkpoint, with the field names of Kimi K3 (specification section 2)."""

QUANTISED_WEIGHTS = {
    "type": "float", "num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": True,
    "scale_dtype": "torch.uint8", "zp_dtype": None, "dynamic": False, "actorder": None, "block_structure": None,
    "observer": "minmax", "observer_kwargs": {},
}
QUANTISATION = {
    "quant_method": "compressed-tensors",
    "format": "mxfp4-pack-quantized",
    "quantization_status": "compressed",
    "kv_cache_scheme": None,
    "global_compression_ratio": None,
    "config_groups": {
        "group_0": {
            "format": "mxfp4-pack-quantized",
            "targets": ["Linear"],
            "input_activations": None,
            "output_activations": None,
            "weights": QUANTISED_WEIGHTS,
        },
    },
    "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
               "re:.*lm_head.*", "re:.*vision_tower.*", "re:.*mm_projector.*"],
}


def token_ids(sizes):
    """End of sequence is the end of a message (rank count + 2), not [EOS]."""
    return {"bos_token_id": sizes.ranks, "eos_token_id": sizes.ranks + 2, "pad_token_id": sizes.ranks + 255}


def generation_config(sizes):
    return {"eos_token_id": token_ids(sizes)["eos_token_id"]}


def config(sizes):
    """Content of config.json. There is no vision part."""
    return {
        "architectures": ["KimiK3ForConditionalGeneration"],
        "model_type": "kimi_k3",
        "dtype": "bfloat16",
        **token_ids(sizes),
        "ignore_index": -100,
        "media_placeholder_token_id": sizes.ranks + 21,
        "image_placeholder": "<|kimi_image_placeholder|>",
        "tie_word_embeddings": False,
        "text_config": _text_config(sizes),
    }


def _text_config(sizes):
    return {
        "architectures": ["KimiLinearForCausalLM"],
        "model_type": "kimi_linear",
        "dtype": "bfloat16",
        **token_ids(sizes),
        "vocab_size": sizes.vocabulary,
        "hidden_size": sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "intermediate_size": sizes.dense_width,
        "hidden_act": "situ",
        "activation_situ_beta": 4.0,
        "activation_situ_linear_beta": 25.0,
        "rms_norm_eps": sizes.epsilon,
        "tie_word_embeddings": False,
        "max_position_embeddings": 4096,
        **_attention_config(sizes),
        **_moe_config(sizes),
        "num_nextn_predict_layers": 0,
        "initializer_range": 0.02,
        "quantization_config": QUANTISATION,
    }


def _attention_config(sizes):
    kda_layers = [layer + 1 for layer in range(sizes.layers) if not sizes.is_mla(layer)]
    return {
        "num_attention_heads": sizes.mla_heads,
        "num_key_value_heads": sizes.mla_heads,
        "q_lora_rank": sizes.query_rank,
        "kv_lora_rank": sizes.kv_rank,
        "qk_nope_head_dim": sizes.key_width,
        "qk_rope_head_dim": sizes.shared_key_width,
        "v_head_dim": sizes.value_width,
        "mla_use_nope": True,
        "mla_use_output_gate": True,
        "attn_res_block_size": sizes.residual_block,
        "linear_attn_config": {
            "num_heads": sizes.kda_heads,
            "head_dim": sizes.kda_dim,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
            "gate_lower_bound": sizes.decay_bound,
            "full_attn_layers": list(sizes.mla_layers),
            "kda_layers": kda_layers,
        },
    }


def _moe_config(sizes):
    return {
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "num_experts": sizes.experts,
        "num_experts_per_token": sizes.chosen_experts,
        "num_shared_experts": sizes.shared_experts,
        "moe_intermediate_size": sizes.expert_width,
        "routed_expert_hidden_size": sizes.latent,
        "latent_moe_use_norm": True,
        "moe_router_activation_func": "sigmoid",
        "moe_renormalize": True,
        "routed_scaling_factor": 1.0,
        "num_expert_group": 1,
        "topk_group": 1,
        "use_grouped_topk": True,
        "topk_method": "noaux_tc",
    }
