"""Names, shapes and initial values of the parameters.

Matrices are [out, in] as in the checkpoint, except that matrices which read the same input are stored together (`*_in`,
`*_gate_up`) and the experts of a layer are stacked. Names of a layer begin with its number and a slash.
"""
import math

import torch
from torch import nn

CONV_TAPS = 4


def initial_parameters(sizes, generator):
    """ParameterDict of all weights. The order of the draws decides what a seed means."""
    return _Initialiser(sizes, generator).parameters


class _Initialiser:
    def __init__(self, sizes, generator):
        self.sizes = sizes
        self.generator = generator
        self.parameters = nn.ParameterDict()
        self.out_scale = 1.0 / math.sqrt(2 * sizes.layers)  # two sub-layers per layer add to the residual
        self._normal("embedding", (sizes.vocabulary, sizes.hidden), 0.5)
        self._normal("head", (sizes.vocabulary, sizes.hidden), 0.02)
        self._ones("final_norm", sizes.hidden)
        self._ones("output_mixer_norm", sizes.hidden)
        self._zeros("output_mixer_proj", sizes.hidden)
        for layer in range(sizes.layers):
            self._add_layer(layer)

    def _add_layer(self, layer):
        sizes = self.sizes
        for name in ("attention_norm", "ffn_norm", "attention_mixer_norm", "ffn_mixer_norm"):
            self._ones(f"{layer}/{name}", sizes.hidden)
        self._zeros(f"{layer}/attention_mixer_proj", sizes.hidden)
        self._zeros(f"{layer}/ffn_mixer_proj", sizes.hidden)
        if sizes.is_mla(layer):
            self._add_mla(f"{layer}/")
        else:
            self._add_kda(f"{layer}/")
        if layer == 0:
            self._linear("0/dense_gate_up", (2 * sizes.dense_width, sizes.hidden))
            self._linear("0/dense_down", (sizes.hidden, sizes.dense_width), self.out_scale)
        else:
            self._add_moe(f"{layer}/")

    def _add_mla(self, prefix):
        sizes = self.sizes
        query_rows = sizes.mla_heads * (sizes.key_width + sizes.shared_key_width)
        self._linear(prefix + "mla_in", (sum(sizes.mla_input_parts), sizes.hidden))
        self._ones(prefix + "query_latent_norm", sizes.query_rank)
        self._ones(prefix + "kv_latent_norm", sizes.kv_rank)
        self._linear(prefix + "query_up", (query_rows, sizes.query_rank))
        self._linear(prefix + "kv_up", (sizes.mla_heads * (sizes.key_width + sizes.value_width), sizes.kv_rank))
        self._linear(prefix + "attention_out", (sizes.hidden, sizes.mla_value_channels), self.out_scale)

    def _add_kda(self, prefix):
        sizes = self.sizes
        channels = sizes.kda_channels
        self._linear(prefix + "kda_in", (4 * channels + sizes.kda_heads, sizes.hidden))  # q, k, v, gate, beta
        self._linear(prefix + "decay_down", (sizes.kda_dim, sizes.hidden))
        self._linear(prefix + "decay_up", (channels, sizes.kda_dim))
        conv = torch.randn(3 * channels, CONV_TAPS, generator=self.generator) * 0.1
        conv[:, CONV_TAPS - 1] += 0.8  # mostly the current token
        self.parameters[prefix + "conv"] = nn.Parameter(conv)
        self._zeros(prefix + "decay_log", sizes.kda_heads)
        # From 0.995 kept per step (bias -7) to 0.26 (bias -1): memories of many lengths.
        self.parameters[prefix + "decay_bias"] = nn.Parameter(
            torch.linspace(-7.0, -1.0, sizes.kda_dim).repeat(sizes.kda_heads))
        self._ones(prefix + "kda_out_norm", sizes.kda_dim)
        self._linear(prefix + "attention_out", (sizes.hidden, channels), self.out_scale)

    def _add_moe(self, prefix):
        sizes = self.sizes
        self._linear(prefix + "router", (sizes.experts, sizes.hidden))
        self._linear(prefix + "latent_down", (sizes.latent, sizes.hidden))
        self._ones(prefix + "latent_norm", sizes.latent)
        self._linear(prefix + "latent_up", (sizes.hidden, sizes.latent), 0.5 * self.out_scale)
        self._linear(prefix + "shared_gate_up", (2 * sizes.shared_width, sizes.hidden))
        self._linear(prefix + "shared_down", (sizes.hidden, sizes.shared_width), self.out_scale)
        gate_up_shape = (sizes.experts, 2 * sizes.expert_width, sizes.latent)
        down_shape = (sizes.experts, sizes.latent, sizes.expert_width)
        self._normal(prefix + "expert_gate_up", gate_up_shape, 1 / math.sqrt(sizes.latent))
        self._normal(prefix + "expert_down", down_shape, 1 / math.sqrt(sizes.expert_width))

    def _normal(self, name, shape, deviation):
        self.parameters[name] = nn.Parameter(torch.randn(*shape, generator=self.generator) * deviation)

    def _linear(self, name, shape, scale=1.0):
        self._normal(name, shape, scale / math.sqrt(shape[1]))

    def _ones(self, name, width):
        self.parameters[name] = nn.Parameter(torch.ones(width))

    def _zeros(self, name, width):
        self.parameters[name] = nn.Parameter(torch.zeros(width))
