"""How the parameters of the training graph are cut into the tensors of a K3 checkpoint (specification section 3.3).

Export and import read the same table, so they cannot disagree. The order is that of the files.
"""
from typing import Callable, NamedTuple

import torch

PREFIX = "language_model."
ALL_ROWS = slice(None)


class Form(NamedTuple):
    """Type and shape of a tensor in the file, from and to the shape in the graph (always float32)."""

    dtype: torch.dtype
    to_file: Callable
    from_file: Callable


def _same(tensor):
    return tensor


BF16 = Form(torch.bfloat16, _same, _same)
F32 = Form(torch.float32, _same, _same)
BF16_ROW = Form(torch.bfloat16, lambda tensor: tensor[None], lambda tensor: tensor[0])  # [hidden] as [1, hidden]
F32_CONV = Form(torch.float32, lambda tensor: tensor[:, None, :], lambda tensor: tensor[:, 0])  # [N, 4] as [N, 1, 4]


def f32_padded(used, width):
    """`used` values followed by zeros up to `width`."""
    return Form(torch.float32, lambda tensor: torch.nn.functional.pad(tensor, (0, width - used)),
                lambda tensor: tensor[:used])


class StoredTensor(NamedTuple):
    """One tensor of the file: rows of a parameter in a form."""

    name: str
    parameter: str
    form: Form = BF16
    rows: slice = ALL_ROWS


class ExpertTensor(NamedTuple):
    """One matrix of one routed expert, stored as <name>_packed and <name>_scale: rows of parameter[expert]."""

    name: str
    parameter: str
    expert: int
    rows: slice


def layer_tensors(sizes, layer):
    """StoredTensors of one layer without the routed experts."""
    prefix, parameter = f"{PREFIX}model.layers.{layer}.", f"{layer}/"
    attention = _mla_tensors if sizes.is_mla(layer) else _kda_tensors
    tensors = _norm_tensors() + attention(sizes) + (_dense_tensors(sizes) if layer == 0 else _moe_tensors(sizes))
    return [tensor._replace(name=prefix + tensor.name, parameter=parameter + tensor.parameter) for tensor in tensors]


def expert_tensors(sizes, layer):
    """ExpertTensors of one MoE layer: w1 (gate), w2 (down), w3 (up) of every expert."""
    prefix, width = f"{PREFIX}model.layers.{layer}.block_sparse_moe.experts.", sizes.expert_width
    matrices = [("w1", "expert_gate_up", slice(0, width)), ("w2", "expert_down", ALL_ROWS),
                ("w3", "expert_gate_up", slice(width, 2 * width))]
    return [ExpertTensor(f"{prefix}{expert}.{name}.weight", f"{layer}/{parameter}", expert, rows)
            for expert in range(sizes.experts) for name, parameter, rows in matrices]


def model_tensors():
    """StoredTensors outside the layers."""
    return [
        StoredTensor(PREFIX + "model.embed_tokens.weight", "embedding"),
        StoredTensor(PREFIX + "lm_head.weight", "head"),
        StoredTensor(PREFIX + "model.norm.weight", "final_norm"),
        StoredTensor(PREFIX + "model.output_attn_res_norm.weight", "output_mixer_norm"),
        StoredTensor(PREFIX + "model.output_attn_res_proj.weight", "output_mixer_proj", BF16_ROW),
    ]


def _norm_tensors():
    return [
        StoredTensor("input_layernorm.weight", "attention_norm"),
        StoredTensor("post_attention_layernorm.weight", "ffn_norm"),
        StoredTensor("self_attention_res_norm.weight", "attention_mixer_norm"),
        StoredTensor("mlp_res_norm.weight", "ffn_mixer_norm"),
        StoredTensor("self_attention_res_proj.weight", "attention_mixer_proj", BF16_ROW),
        StoredTensor("mlp_res_proj.weight", "ffn_mixer_proj", BF16_ROW),
    ]


def _mla_tensors(sizes):
    query_end = sizes.query_rank
    kv_end = query_end + sizes.kv_rank + sizes.shared_key_width
    return [
        StoredTensor("self_attn.q_a_proj.weight", "mla_in", BF16, slice(0, query_end)),
        StoredTensor("self_attn.q_a_layernorm.weight", "query_latent_norm"),
        StoredTensor("self_attn.q_b_proj.weight", "query_up"),
        StoredTensor("self_attn.kv_a_proj_with_mqa.weight", "mla_in", BF16, slice(query_end, kv_end)),
        StoredTensor("self_attn.kv_a_layernorm.weight", "kv_latent_norm"),
        StoredTensor("self_attn.kv_b_proj.weight", "kv_up"),
        StoredTensor("self_attn.g_proj.weight", "mla_in", BF16, slice(kv_end, None)),
        StoredTensor("self_attn.o_proj.weight", "attention_out"),
    ]


def _kda_tensors(sizes):
    channels = sizes.kda_channels
    streams = [slice(index * channels, (index + 1) * channels) for index in range(4)]
    beta = slice(4 * channels, None)
    inputs = [StoredTensor(f"self_attn.{name}_proj.weight", "kda_in", BF16, rows)
              for name, rows in zip("qkvgb", streams + [beta])]
    convolutions = [StoredTensor(f"self_attn.{name}_conv1d.weight", "conv", F32_CONV, rows)
                    for name, rows in zip("qkv", streams)]
    return inputs + convolutions + [
        StoredTensor("self_attn.A_log", "decay_log", f32_padded(sizes.kda_heads, sizes.kda_dim)),  # as released
        StoredTensor("self_attn.dt_bias", "decay_bias", F32),
        StoredTensor("self_attn.f_a_proj.weight", "decay_down"),
        StoredTensor("self_attn.f_b_proj.weight", "decay_up"),
        StoredTensor("self_attn.o_norm.weight", "kda_out_norm", F32),
        StoredTensor("self_attn.o_proj.weight", "attention_out"),
    ]


def _gated_mlp_tensors(name, parameter, width):
    return [
        StoredTensor(name + "gate_proj.weight", parameter + "_gate_up", BF16, slice(0, width)),
        StoredTensor(name + "up_proj.weight", parameter + "_gate_up", BF16, slice(width, 2 * width)),
        StoredTensor(name + "down_proj.weight", parameter + "_down"),
    ]


def _dense_tensors(sizes):
    return _gated_mlp_tensors("mlp.", "dense", sizes.dense_width)


def _moe_tensors(sizes):
    prefix = "block_sparse_moe."
    return [
        StoredTensor(prefix + "gate.weight", "router"),
        StoredTensor(prefix + "gate.e_score_correction_bias", "router_bias", F32),
        StoredTensor(prefix + "routed_expert_down_proj.weight", "latent_down"),
        StoredTensor(prefix + "routed_expert_norm.weight", "latent_norm"),
        StoredTensor(prefix + "routed_expert_up_proj.weight", "latent_up"),
    ] + _gated_mlp_tensors(prefix + "shared_experts.", "shared", sizes.shared_width)
