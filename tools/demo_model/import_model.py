"""Loads an exported model back into the training graph (use it with rounded=False: the experts are rounded already)."""
import torch

from checkpoint_layout import expert_tensors, layer_tensors, model_tensors
from model import Model
from model_sizes import DEMO
from safetensors_file import read_folder

# Value of a 4-bit code (specification section 11).
FP4_VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
MXFP4_GROUP = 32
SCALE_BIAS = 127


def import_model(folder):
    """Model in float32. Every parameter must be filled completely and every tensor of the files used."""
    sizes, tensors, model = DEMO, read_folder(folder), Model(DEMO)
    values, filled_count = model.stored_values(), 0
    stored = [tensor for layer in range(sizes.layers) for tensor in layer_tensors(sizes, layer)] + model_tensors()
    for tensor in stored:
        rows = values[tensor.parameter][tensor.rows]
        rows.copy_(tensor.form.from_file(tensors.pop(tensor.name)))
        filled_count += rows.numel()
    for tensor in [tensor for layer in range(1, sizes.layers) for tensor in expert_tensors(sizes, layer)]:
        rows = values[tensor.parameter][tensor.expert][tensor.rows]
        rows.copy_(_unpack_mxfp4(tensors.pop(tensor.name + "_packed"), tensors.pop(tensor.name + "_scale")))
        filled_count += rows.numel()
    assert not tensors and filled_count == sum(value.numel() for value in values.values())
    return model


def _unpack_mxfp4(packed, scales):
    """packed [out, in / 2], low nibble first, and scales [out, in / 32] -> float32 [out, in]."""
    codes = packed.long()
    values = torch.stack([FP4_VALUES[codes & 15], FP4_VALUES[codes >> 4]], -1).reshape(packed.shape[0], -1)
    return values * torch.exp2(scales.float() - SCALE_BIAS).repeat_interleave(MXFP4_GROUP, 1)
