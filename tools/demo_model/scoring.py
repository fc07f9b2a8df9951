"""Perplexity with the float64 model: likelihoods of token sequences and their summary."""
import math

import numpy as np

CONTEXT_TOKENS, STRIDE_TOKENS = 256, 256


def windows(ids):
    """Consecutive windows of the ids; the last one is shorter."""
    return [ids[first:first + CONTEXT_TOKENS] for first in range(0, len(ids) - 1, STRIDE_TOKENS)]


def score(model, ids):
    """(nats of every token after the first, experts chosen per token and layer), from an empty state."""
    model.reset()
    losses, chosen_experts = [], []
    for index, token in enumerate(ids):
        logits = model.step(token)
        chosen_experts.append(model.chosen_experts)
        if index + 1 < len(ids):
            losses.append(negative_log_likelihood(logits, ids[index + 1]))
    return losses, chosen_experts


def negative_log_likelihood(logits, token):
    """In nats."""
    largest = logits.max()
    return float(math.log(np.exp(logits - largest).sum()) + largest - logits[token])


def rounded(value, digits):
    """The value with so many significant digits, to keep files free of noise."""
    return float(f"{value:.{digits}g}")


def summary(losses, byte_count):
    """Totals and means of losses (nats per token) over tokens whose text has byte_count bytes."""
    token_count, total = len(losses), sum(losses)
    return {
        "tokens_scored": token_count,
        "nll_nats": rounded(total, 10),
        "mean_nll": rounded(total / token_count, 10),
        "perplexity": rounded(math.exp(total / token_count), 8),
        "bytes_scored": byte_count,
        "bits_per_byte": rounded(total / math.log(2) / byte_count, 8),
        "perplexity_per_byte": rounded(math.exp(total / byte_count), 8),
    }
