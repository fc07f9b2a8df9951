"""Writes and reads checkpoint folders: config files, index and safetensors shards (spec/kimi.md section 3.1)."""

import json
import os
import random

import numpy as np

PREPROCESSOR = {"media_proc_cfg": {
    "patch_size": 14, "merge_kernel_size": 2, "in_patch_limit": 65536, "patch_limit_on_one_side": 512,
    "fixed_output_tokens": None, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    "transparent_bg_config": {"pattern": "chessboard", "chessboard_square_size": 8,
                              "chessboard_square_on_top_left": True, "chessboard_white_value": 255,
                              "chessboard_gray_value": 180},
    "transparent_bg_fill_stage": "after_resize"}}


def _write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def shard_name(config, index, count):
    """K3 files carry five and six digits, Linear files five and five."""
    digits = 6 if "text_config" in config else 5
    return f"model-{index + 1:05d}-of-{count:0{digits}d}.safetensors"


def _header(tensors, odd):
    """JSON header, padded with spaces so that data start at a multiple of 8, or at an odd offset."""
    entries, offset = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                                "data_offsets": [offset, offset + tensor.byte_count]}
        offset += tensor.byte_count
    text = json.dumps(entries, separators=(",", ":")).encode("utf-8")
    padding = (len(text) + 1) % 2 if odd else -len(text) % 8
    return text + b" " * padding


def _write_shard(path, tensors, stored_bytes, odd):
    header = _header(tensors, odd)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for tensor in tensors:
            file.write(stored_bytes(tensor))


def _generation_config(config):
    keys = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {key: config[key] for key in keys if key in config}


def _shuffled(tensors, seed):
    order = list(tensors)
    random.Random(seed).shuffle(order)
    return order


def write(folder, config, groups, stored_bytes, shuffle_seed=None):
    """Write config files, index and one shard per group."""
    os.makedirs(folder, exist_ok=True)
    weight_map, total = {}, 0
    for index, tensors in enumerate(groups):
        name = shard_name(config, index, len(groups))
        order = tensors if shuffle_seed is None else _shuffled(tensors, shuffle_seed + index)
        _write_shard(os.path.join(folder, name), order, stored_bytes, shuffle_seed is not None)
        weight_map.update({tensor.name: name for tensor in tensors})
        total += sum(tensor.byte_count for tensor in tensors)
    _write_json(folder, "config.json", config)
    _write_json(folder, "generation_config.json", _generation_config(config))
    _write_json(folder, "model.safetensors.index.json",
                {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))})
    if config.get("vision_config"):
        _write_json(folder, "preprocessor_config.json", PREPROCESSOR)


def _decode(entry, data):
    """float64 values of a stored tensor; raw bytes of a U8 tensor."""
    raw = data[entry["data_offsets"][0]:entry["data_offsets"][1]]
    if entry["dtype"] == "U8":
        return np.frombuffer(raw, np.uint8).reshape(entry["shape"])
    if entry["dtype"] == "BF16":
        bits = np.frombuffer(raw, "<u2").astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).astype(np.float64).reshape(entry["shape"])
    return np.frombuffer(raw, "<f4").astype(np.float64).reshape(entry["shape"])


def read(folder):
    """All tensors of a folder as name -> values, located through the index."""
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        weight_map = json.load(file)["weight_map"]
    result = {}
    for shard in sorted(set(weight_map.values())):
        with open(os.path.join(folder, shard), "rb") as file:
            content = file.read()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length])
        for name, entry in header.items():
            if name != "__metadata__":
                assert weight_map[name] == shard
                result[name] = _decode(entry, content[8 + length:])
    return result
