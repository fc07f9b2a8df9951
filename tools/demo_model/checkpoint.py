"""Checkpoints of a training run, and the order of the parameters in the optimiser's state."""
import os

import torch

from model import Model
from model_sizes import DEMO


def is_matrix(name, parameter):
    """Matrices get weight decay; vectors and the short convolutions do not."""
    return parameter.dim() >= 2 and "conv" not in name


def optimiser_order(model):
    """(name, parameter) as the optimiser of train.py numbers them: matrices first."""
    named = list(model.named_parameters())
    return [item for item in named if is_matrix(*item)] + [item for item in named if not is_matrix(*item)]


def save(path, content):
    """Writes to a temporary file first: an interrupted run keeps the last complete checkpoint."""
    torch.save(content, path + ".tmp")
    os.replace(path + ".tmp", path)


def load_model(path):
    """The model of a checkpoint file."""
    model = Model(DEMO)
    model.load_state_dict(torch.load(path)["model"])
    return model
