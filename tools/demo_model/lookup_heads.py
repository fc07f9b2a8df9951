"""Restarts the first heads of every KDA layer as look-up heads. Tried in the published run, without effect.

    python3 lookup_heads.py IN.pt OUT.pt

The key is the previous token's projection, made with the query's own matrix, the memory is long, the value is the
current token. Such a head finds what followed the same token earlier in the text, which a short training run discovers
only late. Training is free to change all of it.
"""
import math
import sys

import torch

import checkpoint
from model_sizes import DEMO

HEADS = 2
CURRENT_TOKEN_TAP, PREVIOUS_TOKEN_TAP = 3, 2
LONG_MEMORY_BIAS = -7.5


@torch.no_grad()
def start_lookup_heads(model, generator):
    for layer in range(DEMO.layers):
        if not DEMO.is_mla(layer):
            _start_layer(model.weights, f"{layer}/", generator)


def _start_layer(weights, prefix, generator):
    channels, width = DEMO.kda_channels, HEADS * DEMO.kda_dim
    projection = weights[prefix + "kda_in"]
    query, key, value, gate, beta = projection.split([channels] * 4 + [DEMO.kda_heads])
    query[:width] = key[:width] = torch.randn(width, DEMO.hidden, generator=generator) / math.sqrt(DEMO.hidden)
    value[:width] = torch.randn(width, DEMO.hidden, generator=generator) / math.sqrt(DEMO.hidden)
    gate[:width] = 0
    beta[:HEADS] = 0
    taps = (CURRENT_TOKEN_TAP, PREVIOUS_TOKEN_TAP, CURRENT_TOKEN_TAP)
    for conv, tap in zip(weights[prefix + "conv"].split(channels), taps):
        conv[:width] = 0
        conv[:width, tap] = 1
    weights[prefix + "decay_up"][:width] = 0
    weights[prefix + "decay_bias"][:width] = LONG_MEMORY_BIAS
    weights[prefix + "decay_log"][:HEADS] = 0
    out = torch.randn(DEMO.hidden, width, generator=generator)
    weights[prefix + "attention_out"][:, :width] = out / math.sqrt(2 * DEMO.layers * channels)


def main(source, destination):
    state, model = torch.load(source), checkpoint.load_model(source)
    start_lookup_heads(model, torch.Generator().manual_seed(2))
    state["model"] = model.state_dict()
    torch.save(state, destination)


if __name__ == "__main__":
    main(*sys.argv[1:3])
