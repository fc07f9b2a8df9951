"""Reads an exported model into float64 with NumPy alone (specification sections 3 and 11)."""
import json
import os
import struct

import numpy as np

FP4_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
MXFP4_GROUP = 32
SCALE_BIAS = 127


def read_config(folder):
    """The text part of config.json."""
    with open(os.path.join(folder, "config.json")) as file:
        return json.load(file)["text_config"]


def read_tensors(folder):
    """Name -> float64 array of every tensor. The packed experts become matrices named <expert>.weight."""
    with open(os.path.join(folder, "model.safetensors.index.json")) as file:
        index = json.load(file)
    tensors, total_bytes = {}, 0
    for shard in sorted(set(index["weight_map"].values())):
        shard_tensors, shard_bytes = _read_shard(os.path.join(folder, shard))
        assert all(index["weight_map"][name] == shard for name in shard_tensors)
        tensors.update(shard_tensors)
        total_bytes += shard_bytes
    assert len(tensors) == len(index["weight_map"]) and total_bytes == index["metadata"]["total_size"]
    for name in [name for name in tensors if name.endswith(".weight_packed")]:
        scales = tensors.pop(name.replace("_packed", "_scale"))
        tensors[name.replace("_packed", "")] = _unpack_mxfp4(tensors.pop(name), scales)
    return tensors


def _read_shard(path):
    """(tensors of one file, bytes of their data)."""
    with open(path, "rb") as file:
        raw = file.read()
    header_bytes = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + header_bytes]), raw[8 + header_bytes:]
    header.pop("__metadata__", None)
    tensors, total_bytes = {}, 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = _decode(data[begin:end], entry["dtype"]).reshape(entry["shape"])
        total_bytes += end - begin
    return tensors, total_bytes


def _decode(data, type_name):
    """BF16 and F32 become float64, U8 stays."""
    if type_name == "BF16":
        bits = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    if type_name == "F32":
        return np.frombuffer(data, "<f4").astype(np.float64)
    assert type_name == "U8"
    return np.frombuffer(data, np.uint8)


def _unpack_mxfp4(packed, scales):
    """packed [out, in / 2], low nibble first, and scales [out, in / 32] -> [out, in]."""
    values = np.empty((packed.shape[0], packed.shape[1] * 2))
    values[:, 0::2] = FP4_VALUES[packed & 15]
    values[:, 1::2] = FP4_VALUES[packed >> 4]
    return values * np.repeat(2.0 ** (scales.astype(np.float64) - SCALE_BIAS), MXFP4_GROUP, axis=1)
