"""Writes a trained checkpoint in the layout of Kimi K3: three safetensors shards, an index and the configuration files.

    python3 export.py CHECKPOINT.pt MODEL_DIR
"""
import collections
import json
import os
import sys

import checkpoint
import model_config
from checkpoint_layout import expert_tensors, layer_tensors, model_tensors
from operations import pack_mxfp4
from safetensors_file import INDEX_NAME, TYPE_NAMES, write_shard


def shards(model):
    """Three dictionaries checkpoint name -> tensor in its stored type: two halves of the layers, then the rest."""
    sizes, values = model.sizes, model.stored_values()
    half = sizes.layers // 2
    return [_layers(sizes, values, range(half)), _layers(sizes, values, range(half, sizes.layers)),
            {tensor.name: _stored(tensor, values) for tensor in model_tensors()}]


def _layers(sizes, values, layers):
    tensors = {}
    for layer in layers:
        tensors.update((tensor.name, _stored(tensor, values)) for tensor in layer_tensors(sizes, layer))
        if layer > 0:
            _add_experts(tensors, sizes, values, layer)
    return tensors


def _stored(tensor, values):
    """BF16 rounds to the nearest value, ties to even."""
    rows = values[tensor.parameter][tensor.rows]
    return tensor.form.to_file(rows).to(tensor.form.dtype).contiguous()


def _add_experts(tensors, sizes, values, layer):
    for tensor in expert_tensors(sizes, layer):
        packed, scales = pack_mxfp4(values[tensor.parameter][tensor.expert][tensor.rows])
        tensors[tensor.name + "_packed"] = packed
        tensors[tensor.name + "_scale"] = scales


def write_model(model, folder):
    os.makedirs(folder, exist_ok=True)
    parts = shards(model)
    weight_map, total_bytes, type_counts = {}, 0, collections.Counter()
    for index, tensors in enumerate(parts):
        shard = f"model-{index + 1:05d}-of-{len(parts):06d}.safetensors"  # five and six digits, as released
        total_bytes += write_shard(os.path.join(folder, shard), tensors)
        weight_map.update((name, shard) for name in tensors)
        type_counts.update(TYPE_NAMES[tensor.dtype] for tensor in tensors.values())
    _write_json(folder, INDEX_NAME, {"metadata": {"total_size": total_bytes}, "weight_map": weight_map})
    _write_json(folder, "config.json", model_config.config(model.sizes))
    _write_json(folder, "generation_config.json", model_config.generation_config(model.sizes))
    print(len(weight_map), "tensors", dict(type_counts), total_bytes, "bytes of data")


def _write_json(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        file.write(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    write_model(checkpoint.load_model(sys.argv[1]), sys.argv[2])
