"""Rows of token ids as inputs and targets of the training graph."""
import numpy as np
import torch

from model_sizes import DEMO
from tokenizer import PAD_OFFSET

PAD = DEMO.ranks + PAD_OFFSET
IGNORED = -1
COPIED_TOKENS_MIN, COPIED_TOKENS_END = 30, 160


def batch(rows):
    """rows [count, tokens + 1] -> inputs and targets, both int64 [count, tokens]; padding is not predicted."""
    ids = torch.from_numpy(rows.astype(np.int64))
    targets = ids[:, 1:].clone()
    targets[targets == PAD] = IGNORED
    return ids[:, :-1].contiguous(), targets.contiguous()


def batch_with_copies(rows, rng, share):
    """Like batch(), with a share of the rows replaced by their beginning, repeated.

    Repetition can only be predicted from the context, so the model should learn early to copy names and things from
    what it has read. The step back to the start is not a target.
    """
    rows = rows.astype(np.int64)
    skipped = np.zeros(rows.shape, bool)
    for index in range(len(rows)):
        if rng.random() < share:
            length = rng.integers(COPIED_TOKENS_MIN, COPIED_TOKENS_END)
            rows[index] = np.resize(rows[index, :length], rows.shape[1])
            skipped[index, length::length] = True
    ids, targets = batch(rows)
    targets[torch.from_numpy(skipped[:, 1:])] = IGNORED
    return ids, targets


@torch.no_grad()
def mean_loss(model, rows, rows_per_batch=20):
    """Mean loss in nats per predicted token over all rows."""
    total, token_count = 0.0, 0
    for first in range(0, len(rows), rows_per_batch):
        ids, targets = batch(rows[first:first + rows_per_batch])
        scored = int((targets >= 0).sum())
        total += float(model.loss(ids, targets)) * scored
        token_count += scored
    return total / token_count
