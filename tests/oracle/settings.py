"""The text model that a config.json describes, read by the rules of spec/kimi.md section 2.3."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Settings:
    """Every number and switch of the text model; optional features are None, False or 0 when off."""

    prefix: str
    vocabulary: int
    hidden: int
    layers: int
    intermediate: int
    activation: str
    situ_beta: float
    situ_linear_beta: Optional[float]
    epsilon: float
    heads: int
    query_rank: int
    latent: int
    nope: int
    rope: int
    value: int
    mla_gate: bool
    residual_block: int
    kda_heads: int
    kda_dim: int
    kernel: int
    full_rank_gate: bool
    decay_lower_bound: Optional[float]
    kda_layers: tuple
    dense_layers: int
    moe_frequency: int
    experts: int
    top_k: int
    shared_experts: int
    expert_width: int
    expert_latent: int
    latent_norm: bool
    router_activation: str
    renormalize: bool
    routed_scale: float
    groups: int
    groups_kept: int

    def is_kda(self, layer):
        """Layer lists are 1-based (2.3 rule 2)."""
        return layer + 1 in self.kda_layers

    def is_moe(self, layer):
        """2.3 rule 3."""
        return bool(self.experts) and layer >= self.dense_layers and layer % self.moe_frequency == 0

    @property
    def expert_input(self):
        """Width that the routed experts see: the latent if there is one (section 7 step 6)."""
        return self.expert_latent or self.hidden


def text_config(config):
    """The sub-object that describes the text model (2.3 rule 1)."""
    return config.get("text_config", config)


def is_nested(config):
    """True for the K3 layout, whose text tensors carry the prefix `language_model.`."""
    return "text_config" in config


def quantized_by_config(config):
    """True if a quantization_config is present, in either place (2.3 rule 10)."""
    return bool(config.get("quantization_config") or text_config(config).get("quantization_config"))


def _check(config, settings):
    """Layer lists must partition 1..layers, and the unsupported is refused (2.3 rules 2 and 9)."""
    text = text_config(config)
    full = text["linear_attn_config"]["full_attn_layers"]
    both = sorted(list(full) + list(settings.kda_layers))
    assert both == list(range(1, settings.layers + 1)), "layer lists do not partition the layers"
    assert text["mla_use_nope"] is True
    assert settings.activation in ("silu", "situ")
    assert settings.router_activation in ("sigmoid", "softmax")


def read_settings(config):
    """Settings of a whole config.json object. Shape-defining keys have no default (2.3 rule 8)."""
    text = text_config(config)
    kda = text["linear_attn_config"]
    settings = Settings(
        prefix="language_model." if is_nested(config) else "",
        vocabulary=text["vocab_size"],
        hidden=text["hidden_size"],
        layers=text["num_hidden_layers"],
        intermediate=text["intermediate_size"],
        activation=text["hidden_act"],
        situ_beta=text.get("activation_situ_beta") or 1.0,
        situ_linear_beta=text.get("activation_situ_linear_beta"),
        epsilon=text["rms_norm_eps"],
        heads=text["num_attention_heads"],
        query_rank=text.get("q_lora_rank") or 0,
        latent=text["kv_lora_rank"],
        nope=text["qk_nope_head_dim"],
        rope=text["qk_rope_head_dim"],
        value=text["v_head_dim"],
        mla_gate=bool(text.get("mla_use_output_gate")),
        residual_block=text.get("attn_res_block_size") or 0,
        kda_heads=kda["num_heads"],
        kda_dim=kda["head_dim"],
        kernel=kda["short_conv_kernel_size"],
        full_rank_gate=bool(kda.get("use_full_rank_gate")),
        decay_lower_bound=kda.get("gate_lower_bound"),
        kda_layers=tuple(kda["kda_layers"]),
        dense_layers=text["first_k_dense_replace"],
        moe_frequency=text["moe_layer_freq"],
        experts=text.get("num_experts") or 0,
        top_k=text["num_experts_per_token"],
        shared_experts=text.get("num_shared_experts") or 0,
        expert_width=text["moe_intermediate_size"],
        expert_latent=text.get("routed_expert_hidden_size") or 0,
        latent_norm=bool(text.get("latent_moe_use_norm")),
        router_activation=text["moe_router_activation_func"],
        renormalize=bool(text["moe_renormalize"]),
        routed_scale=text["routed_scaling_factor"],
        groups=text["num_expert_group"],
        groups_kept=text["topk_group"],
    )
    _check(config, settings)
    return settings
