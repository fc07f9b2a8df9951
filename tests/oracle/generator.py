"""Tiny checkpoints without files: tensor lists (spec/kimi.md section 3) and hashed values (section 15.1).

Everything follows from the config and the name of a tensor, so that two programs which share nothing produce the
same bytes.
"""

import math
from dataclasses import dataclass

import numpy as np

import safetensors_folder
import tiny_tokenizer
from settings import is_nested, quantized_by_config, read_settings

GOLDEN_RATIO = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1
ELEMENT_BYTES = {"BF16": 2, "F32": 4, "U8": 1}


@dataclass(frozen=True)
class Tensor:
    """One tensor of a checkpoint. `live` is the number of leading values that are not forced to zero."""

    name: str
    dtype: str
    shape: tuple
    kind: str
    live: int = -1

    @property
    def count(self):
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def byte_count(self):
        """Number of data bytes."""
        return self.count * ELEMENT_BYTES[self.dtype]


# ---- values, 15.1

def fnv1a(name):
    """FNV-1a, 64 bits, of the UTF-8 name."""
    value = 0xCBF29CE484222325
    for byte in name.encode("utf-8"):
        value = ((value ^ byte) * 0x100000001B3) & WORD
    return value


def random_words(name, count):
    """r_i of 15.1 for i = 0..count-1, as uint64."""
    index = np.arange(1, count + 1, dtype=np.uint64)
    z = np.uint64(fnv1a(name)) + index * np.uint64(GOLDEN_RATIO)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bf16_bits(values):
    """float32 values rounded to nearest, ties to even, as the 16 bits of a bfloat16."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16)


def bf16_values(bits):
    """The float32 values that bfloat16 bits stand for."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def offset_and_scale(tensor):
    """a and b of the table in 15.1."""
    if tensor.kind == "linear":
        return 0.0, math.sqrt(3.0 / tensor.shape[-1])
    if tensor.kind == "patch":
        return 0.0, math.sqrt(3.0 / math.prod(tensor.shape[1:]))
    return {"norm": (1.0, 0.25), "embedding": (0.0, 1.0), "convolution": (0.0, 0.5), "a_log": (0.0, 0.75),
            "dt_bias": (-1.0, 1.0), "router_bias": (0.0, 0.25)}[tensor.kind]


def stored_values(tensor):
    """Values as stored: uint8, uint16 holding bfloat16 bits, or float32."""
    words = random_words(tensor.name, tensor.count)
    if tensor.kind == "packed":
        return (words >> np.uint64(56)).astype(np.uint8).reshape(tensor.shape)
    if tensor.kind == "scale":
        return (np.uint64(121) + (words >> np.uint64(62))).astype(np.uint8).reshape(tensor.shape)
    offset, scale = offset_and_scale(tensor)
    uniform = (words >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0
    values = (offset + scale * uniform).astype(np.float32)
    if tensor.live >= 0:
        values[tensor.live:] = 0.0
    values = values.reshape(tensor.shape)
    return bf16_bits(values) if tensor.dtype == "BF16" else values


def stored_bytes(tensor):
    """Little-endian data bytes of a tensor."""
    values = stored_values(tensor)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def decoded_values(tensor):
    """float64 values of a BF16 or F32 tensor; the raw bytes of a U8 tensor."""
    values = stored_values(tensor)
    if tensor.dtype == "BF16":
        values = bf16_values(values)
    return values if tensor.dtype == "U8" else values.astype(np.float64)


# ---- tensor lists, section 3

def _linear(name, rows, columns):
    return Tensor(name + ".weight", "BF16", (rows, columns), "linear")


def _norm(name, width, dtype="BF16"):
    return Tensor(name + ".weight", dtype, (width,), "norm")


def _a_log(name, settings, nested):
    """[1,1,H,1] in Kimi-Linear; in K3 padded to head_dim, zero from num_heads on (15.1)."""
    heads = settings.kda_heads
    if not nested:
        return Tensor(name, "F32", (1, 1, heads, 1), "a_log")
    return Tensor(name, "F32", (max(heads, settings.kda_dim),), "a_log", live=heads)


def _kda(base, settings, nested):
    """Attention tensors of a KDA layer, tables of 3.2 and 3.3."""
    width = settings.kda_heads * settings.kda_dim
    hidden, rank = settings.hidden, settings.kda_dim
    small = "F32" if nested else "BF16"
    result = [_linear(base + f"{x}_proj", width, hidden) for x in "qkv"]
    result += [Tensor(base + f"{x}_conv1d.weight", small, (width, 1, settings.kernel), "convolution") for x in "qkv"]
    result += [_a_log(base + "A_log", settings, nested), Tensor(base + "dt_bias", "F32", (width,), "dt_bias")]
    result += [_linear(base + "f_a_proj", rank, hidden), _linear(base + "f_b_proj", width, rank)]
    result.append(_linear(base + "b_proj", settings.kda_heads, hidden))
    if settings.full_rank_gate:
        result.append(_linear(base + "g_proj", width, hidden))
    else:
        result += [_linear(base + "g_a_proj", rank, hidden), _linear(base + "g_b_proj", width, rank)]
    result += [_norm(base + "o_norm", settings.kda_dim, small), _linear(base + "o_proj", hidden, width)]
    return result


def _mla(base, settings):
    """Attention tensors of an MLA layer, tables of 3.2 and 3.3."""
    hidden, heads = settings.hidden, settings.heads
    query_width = heads * (settings.nope + settings.rope)
    result = []
    if settings.query_rank:
        result += [_linear(base + "q_a_proj", settings.query_rank, hidden),
                   _norm(base + "q_a_layernorm", settings.query_rank),
                   _linear(base + "q_b_proj", query_width, settings.query_rank)]
    else:
        result.append(_linear(base + "q_proj", query_width, hidden))
    result += [_linear(base + "kv_a_proj_with_mqa", settings.latent + settings.rope, hidden),
               _norm(base + "kv_a_layernorm", settings.latent),
               _linear(base + "kv_b_proj", heads * (settings.nope + settings.value), settings.latent)]
    if settings.mla_gate:
        result.append(_linear(base + "g_proj", heads * settings.value, hidden))
    result.append(_linear(base + "o_proj", hidden, heads * settings.value))
    return result


def _gated_mlp(base, width, hidden):
    """gate, up and down of a dense or shared MLP."""
    return [_linear(base + "gate_proj", width, hidden), _linear(base + "up_proj", width, hidden),
            _linear(base + "down_proj", hidden, width)]


def _expert_matrix(base, rows, columns, expert_format):
    """One matrix of a routed expert, plain or MXFP4 (section 11)."""
    if expert_format == "bf16":
        return [_linear(base, rows, columns)]
    assert columns % 32 == 0, f"{base}: MXFP4 needs a multiple of 32 inputs, not {columns}"
    return [Tensor(base + ".weight_packed", "U8", (rows, columns // 2), "packed"),
            Tensor(base + ".weight_scale", "U8", (rows, columns // 32), "scale")]


def _expert(base, settings, expert_format):
    """w1 (gate), w2 (down) and w3 (up) of one routed expert."""
    inner, outer = settings.expert_width, settings.expert_input
    return (_expert_matrix(base + "w1", inner, outer, expert_format)
            + _expert_matrix(base + "w2", outer, inner, expert_format)
            + _expert_matrix(base + "w3", inner, outer, expert_format))


def _moe(base, settings, expert_format):
    """All tensors of block_sparse_moe."""
    hidden = settings.hidden
    result = [_linear(base + "gate", settings.experts, hidden),
              Tensor(base + "gate.e_score_correction_bias", "F32", (settings.experts,), "router_bias")]
    if settings.expert_latent:
        result.append(_linear(base + "routed_expert_down_proj", settings.expert_latent, hidden))
        if settings.latent_norm:
            result.append(_norm(base + "routed_expert_norm", settings.expert_latent))
        result.append(_linear(base + "routed_expert_up_proj", hidden, settings.expert_latent))
    if settings.shared_experts:
        result += _gated_mlp(base + "shared_experts.", settings.expert_width * settings.shared_experts, hidden)
    for expert in range(settings.experts):
        result += _expert(base + f"experts.{expert}.", settings, expert_format)
    return result


def _mixer(base, hidden):
    """Norm and projection of one attention-residual mixer (section 9)."""
    return [_norm(base + "_norm", hidden), _linear(base + "_proj", 1, hidden)]


def layer_tensors(config, layer, expert_format):
    """All tensors of one decoder layer."""
    settings = read_settings(config)
    base = f"{settings.prefix}model.layers.{layer}."
    result = [_norm(base + name, settings.hidden) for name in ("input_layernorm", "post_attention_layernorm")]
    if settings.residual_block:
        result += _mixer(base + "self_attention_res", settings.hidden) + _mixer(base + "mlp_res", settings.hidden)
    if settings.is_kda(layer):
        result += _kda(base + "self_attn.", settings, is_nested(config))
    else:
        result += _mla(base + "self_attn.", settings)
    if settings.is_moe(layer):
        return result + _moe(base + "block_sparse_moe.", settings, expert_format)
    return result + _gated_mlp(base + "mlp.", settings.intermediate, settings.hidden)


def global_tensors(config):
    """Embedding, head, final norm and output mixer."""
    settings = read_settings(config)
    base = settings.prefix + "model."
    size = (settings.vocabulary, settings.hidden)
    result = [Tensor(base + "embed_tokens.weight", "BF16", size, "embedding"),
              _linear(settings.prefix + "lm_head", *size), _norm(base + "norm", settings.hidden)]
    return result + (_mixer(base + "output_attn_res", settings.hidden) if settings.residual_block else [])


def _vision_block(base, vision):
    """One block of the tower, 3.3."""
    width, inner, attention = vision["vt_hidden_size"], vision["vt_intermediate_size"], vision["qkv_hidden_size"]
    return [_norm(base + "norm0", width), _norm(base + "norm1", width), _linear(base + "wqkv", 3 * attention, width),
            _linear(base + "wo", width, attention), _linear(base + "mlp.fc0", inner, width),
            _linear(base + "mlp.fc1", width, inner)]


def tower_tensors(config):
    """All `vision_tower.` tensors."""
    vision = config["vision_config"]
    width, patch = vision["vt_hidden_size"], vision["patch_size"]
    grid = (vision["init_pos_emb_height"], vision["init_pos_emb_width"], width)
    result = [Tensor("vision_tower.patch_embed.proj.weight", "BF16", (width, 3, patch, patch), "patch"),
              Tensor("vision_tower.patch_embed.pos_emb.weight", "BF16", grid, "embedding")]
    for block in range(vision["vt_num_hidden_layers"]):
        result += _vision_block(f"vision_tower.encoder.blocks.{block}.", vision)
    return result + [_norm("vision_tower.encoder.final_layernorm", width)]


def projector_tensors(config):
    """All `mm_projector.` tensors; the input is a merged window of patches (10.5 step 6)."""
    vision = config["vision_config"]
    merged = math.prod(vision["merge_kernel_size"]) * vision["mm_hidden_size"]
    return [_linear("mm_projector.proj.0", merged, merged),
            _linear("mm_projector.proj.2", vision["text_hidden_size"], merged),
            _norm("mm_projector.post_norm", vision["text_hidden_size"])]


def expert_format_of(config):
    """Default storage of the routed experts: MXFP4 if the config speaks of quantization."""
    return "mxfp4" if quantized_by_config(config) else "bf16"


def tensor_groups(config, expert_format=None):
    """Tensors in the publisher's file groups: each layer, then the globals, the projector and the tower (3.1)."""
    expert_format = expert_format or expert_format_of(config)
    layers = read_settings(config).layers
    groups = [layer_tensors(config, layer, expert_format) for layer in range(layers)]
    groups.append(global_tensors(config))
    if config.get("vision_config"):
        groups += [projector_tensors(config), tower_tensors(config)]
    return groups


def all_tensors(config, expert_format=None):
    """Every tensor of the checkpoint, in the order of `tensor_groups`."""
    return [tensor for group in tensor_groups(config, expert_format) for tensor in group]


# ---- folders

def _even_groups(tensors, count):
    """`count` runs of nearly equal tensor count, cut without regard to layers."""
    edges = [round(i * len(tensors) / count) for i in range(count + 1)]
    return [tensors[a:b] for a, b in zip(edges, edges[1:])]


def shard_groups(config, expert_format=None, shards=None):
    """Files of a checkpoint: K3 one per group, Linear two with a layer split across them; or `shards` even cuts."""
    if shards is None and is_nested(config):
        return tensor_groups(config, expert_format)
    return _even_groups(all_tensors(config, expert_format), shards or 2)


def write_checkpoint(config, folder, shards=None, shuffle_seed=None, expert_format=None, tokenizer=None):
    """Write a complete checkpoint folder.

    With `shuffle_seed`, tensors stand in a random order inside each file and data start at an odd offset. The
    tokenizer (15.3) is written when its 256 bytes and 256 specials fit the vocabulary, or as `tokenizer` says.
    """
    groups = shard_groups(config, expert_format, shards)
    safetensors_folder.write(folder, config, groups, stored_bytes, shuffle_seed)
    vocabulary = read_settings(config).vocabulary
    fits = vocabulary >= tiny_tokenizer.BYTE_COUNT + tiny_tokenizer.SPECIAL_COUNT
    if fits if tokenizer is None else tokenizer:
        tiny_tokenizer.write(folder, is_nested(config), vocabulary)
