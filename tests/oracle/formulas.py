"""The formulas of spec/kimi.md sections 5 to 9 and 11 in float64, each on its own. Rows are tokens."""

import numpy as np

E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow at either end."""
    x = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def softplus(x):
    """log(1 + exp(x)), and x itself above 20 (section 5 step 4)."""
    x = np.asarray(x, dtype=np.float64)
    return np.where(x > 20.0, x, np.log1p(np.exp(np.minimum(x, 20.0))))


def softmax(x):
    """Softmax over the last axis."""
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def silu(x):
    """x * sigma(x)."""
    return x * sigmoid(x)


def rms_norm(x, weight, epsilon):
    """Section 8."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def l2_norm(x):
    """Section 5 step 6: a sum, with epsilon 1e-6 inside the root."""
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6)


def swiglu(gate, up):
    """Section 8."""
    return silu(gate) * up


def situ(gate, up, beta, linear_beta):
    """Section 8; without a linear beta the up branch is not squashed."""
    squashed = up if linear_beta is None else linear_beta * np.tanh(up / linear_beta)
    return beta * np.tanh(gate / beta) * sigmoid(gate) * squashed


def decay(logits, a_log, lower_bound):
    """Log decay g of section 5 step 4: softplus form, or bounded form if there is a lower bound."""
    if lower_bound is None:
        return -np.exp(a_log) * softplus(logits)
    return lower_bound * sigmoid(np.exp(a_log) * logits)


def short_convolution(inputs, weight):
    """Section 5 step 2 with zero history. inputs [T, N], weight [N, 1, K]; the last tap meets the current token."""
    taps = weight.shape[-1]
    padded = np.concatenate([np.zeros((taps - 1, inputs.shape[1])), inputs])
    count = len(inputs)
    total = sum(padded[j:j + count] * weight[:, 0, j] for j in range(taps))
    return silu(total)


def delta_step(state, query, key, value, log_decay, beta):
    """Section 5 step 7 for one head. Returns the new state and the output; q and k come normalised and scaled."""
    state = np.exp(log_decay)[:, None] * state
    prediction = state.T @ key
    state = state + beta * np.outer(key, value - prediction)
    return state, state.T @ query


def attend(query, keys, values, scale):
    """Section 6 step 4 for one head and one query: keys and values are those of the positions seen so far."""
    return softmax(keys @ query * scale) @ values


def _keep_best_groups(choice, groups, kept):
    """Section 7 step 3. Returns the masked scores and the gap between the last kept and first dropped group."""
    by_group = choice.reshape(groups, -1)
    group_score = np.sum(np.sort(by_group, axis=1)[:, -2:], axis=1)
    order = np.argsort(-group_score, kind="stable")
    masked = np.full_like(by_group, -np.inf)
    masked[order[:kept]] = by_group[order[:kept]]
    return masked.reshape(-1), group_score[order[kept - 1]] - group_score[order[kept]]


def route(logits, bias, settings):
    """Section 7 steps 1 to 5 for one token.

    Returns expert ids (best first, ties to the lowest index), their unbiased weights, and the smallest gap between a
    last chosen and a first rejected score (of experts, and of groups where they are limited).
    """
    score = sigmoid(logits) if settings.router_activation == "sigmoid" else softmax(logits)
    choice, gap = score + bias, np.inf
    if settings.groups > 1 and settings.groups > settings.groups_kept:
        choice, gap = _keep_best_groups(choice, settings.groups, settings.groups_kept)
    order = np.argsort(-choice, kind="stable")
    chosen = order[:settings.top_k]
    if settings.top_k < len(order):
        gap = min(gap, choice[chosen[-1]] - choice[order[settings.top_k]])
    weights = score[chosen]
    if settings.top_k > 1 and settings.renormalize:
        weights = weights / (np.sum(weights) + 1e-20)
    return chosen, weights * settings.routed_scale, gap


def mix(sources, norm, projection, epsilon):
    """Attention-residual mixer of section 9. sources [m, T, hidden]; returns the mix, p and scores [T, m]."""
    stacked = np.stack(sources)
    normalised = stacked / np.sqrt(np.mean(stacked * stacked, axis=-1, keepdims=True) + epsilon)
    scores = np.moveaxis(normalised @ (norm * projection), 0, -1)
    probability = softmax(scores)
    return np.einsum("tm,mth->th", probability, stacked), probability, scores


def decode_mxfp4(packed, scale):
    """Section 11: low nibble first, one power-of-two scale for 32 elements. Returns [rows, 2 * bytes]."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
    magnitude = E2M1[codes & 7]
    values = np.where(codes & 8, -magnitude, magnitude)
    factors = np.ldexp(1.0, scale.astype(np.int64) - 127)
    return values * np.repeat(factors, 32, axis=-1)[:, :values.shape[1]]
