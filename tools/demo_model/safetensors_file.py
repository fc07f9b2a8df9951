"""Writing and reading of safetensors files and sharded checkpoints with PyTorch tensors (specification section 3.1)."""
import json
import os
import struct

import torch

TYPE_NAMES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.uint8: "U8"}
TYPES = {name: dtype for dtype, name in TYPE_NAMES.items()}
INDEX_NAME = "model.safetensors.index.json"
HEADER_ALIGNMENT_BYTES = 8


def write_shard(path, tensors):
    """Writes one file with the tensors in their order. Returns the bytes of data."""
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        blob = _bytes(tensor)
        header[name] = {"dtype": TYPE_NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % HEADER_ALIGNMENT_BYTES)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return offset


def _bytes(tensor):
    """NumPy has no bfloat16: its bits pass as integers."""
    raw = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return raw.numpy().tobytes()


def read_folder(folder):
    """All tensors of a sharded checkpoint; BF16 becomes float32, the others stay."""
    with open(os.path.join(folder, INDEX_NAME)) as file:
        weight_map = json.load(file)["weight_map"]
    tensors = {}
    for shard in sorted(set(weight_map.values())):
        tensors.update(_read_shard(os.path.join(folder, shard)))
    return tensors


def _read_shard(path):
    with open(path, "rb") as file:
        raw = file.read()
    header_bytes = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + header_bytes]), raw[8 + header_bytes:]
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensor = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]]).view(entry["shape"])
        tensors[name] = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return tensors
