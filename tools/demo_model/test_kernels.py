"""Compares every kernel, forward and backward, with plain PyTorch autograd.

    python3 test_kernels.py
"""
import math

import torch

from operations import Experts, HeadLoss, Kda, Mixer, Mla, RmsNorm, RoundToMxfp4, Router, Situ

RELATIVE_ERROR_MAX = 2e-4  # float32 sums in another order; all kernels stay near 1e-6
EPSILON = 1e-5


def random_tensor(*shape, scale=1.0, shift=0.0):
    return (torch.randn(*shape) * scale + shift).requires_grad_()


def check(name, kernel, expected, inputs):
    """Compares the outputs of two functions of the inputs, and the gradients for a random gradient of the output."""
    ours, theirs = kernel(*inputs), expected(*inputs)
    gradient = torch.randn_like(ours)
    our_gradients = torch.autograd.grad(ours, inputs, gradient)
    their_gradients = torch.autograd.grad(theirs, inputs, gradient)
    errors = [float((ours - theirs).norm() / theirs.norm())]
    for our_gradient, their_gradient in zip(our_gradients, their_gradients):
        errors.append(float((our_gradient - their_gradient).norm() / (their_gradient.norm() + 1e-12)))
    print(f"{name:8s} largest relative error {max(errors):.1e}  ", " ".join(f"{error:.0e}" for error in errors))
    assert max(errors) < RELATIVE_ERROR_MAX, name


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * weight


def situ(gate, up):
    return 4 * torch.tanh(gate / 4) * torch.sigmoid(gate) * 25 * torch.tanh(up / 25)


def check_rms_norm():
    check("rms", lambda x, weight: RmsNorm.apply(x, weight, EPSILON), rms_norm, [random_tensor(50, 192),
                                                                                  random_tensor(192)])


def check_mixer():
    def expected(score_weight, *sources):
        stacked = torch.stack(sources)
        probabilities = torch.softmax((rms_norm(stacked, 1.0) * score_weight).sum(-1), 0)
        return (probabilities[..., None] * stacked).sum(0)

    sources = [random_tensor(50, 192) for _ in range(3)]
    check("mixer", lambda weight, *rows: Mixer.apply(weight, EPSILON, *rows), expected, [random_tensor(192), *sources])


def check_situ():
    check("situ", Situ.apply, lambda gate_up: situ(*gate_up.chunk(2, -1)), [random_tensor(50, 64, scale=5)])


def expected_kda(projected, decay_logits, conv_weight, decay_log, norm_weight, sizes):
    """Section 5, token by token."""
    batch, tokens, heads = sizes
    dim = norm_weight.numel()
    channels = heads * dim
    streams = projected.view(batch, tokens, -1)

    def convolved(stream):
        values = streams[..., stream * channels:(stream + 1) * channels]
        padded = torch.cat([torch.zeros(batch, 3, channels), values], 1)
        taps = conv_weight[stream * channels:(stream + 1) * channels]
        total = sum(padded[:, tap:tap + tokens] * taps[:, tap] for tap in range(4))
        return (total * torch.sigmoid(total)).view(batch, tokens, heads, dim)

    def normalised(x):
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)

    query, key, value = normalised(convolved(0)) * dim ** -0.5, normalised(convolved(1)), convolved(2)
    bent = torch.sigmoid(torch.exp(decay_log)[:, None] * decay_logits.view(batch, tokens, heads, dim))
    decay = torch.exp(-5 * bent)
    beta = torch.sigmoid(streams[..., 4 * channels:])
    state, outputs = torch.zeros(batch, heads, dim, dim), []
    for t in range(tokens):
        state = state * decay[:, t, :, :, None]
        error = value[:, t] - torch.einsum("bhkv,bhk->bhv", state, key[:, t])
        state = state + beta[:, t, :, None, None] * key[:, t, :, :, None] * error[:, :, None]
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, query[:, t]))
    normed = rms_norm(torch.stack(outputs, 1), norm_weight).reshape(batch * tokens, channels)
    return normed * torch.sigmoid(projected[:, 3 * channels:4 * channels])


def check_kda():
    sizes = batch, tokens, heads = 3, 20, 2
    rows, channels = batch * tokens, heads * 32
    inputs = [random_tensor(rows, 4 * channels + heads), random_tensor(rows, channels, shift=-2),
              random_tensor(3 * channels, 4), random_tensor(heads, scale=0.3), random_tensor(32)]
    check("kda", lambda *tensors: Kda.apply(*tensors, sizes, EPSILON),
          lambda *tensors: expected_kda(*tensors, sizes), inputs)


def expected_mla(query, kv, shared_key, sizes):
    """Section 6 with per-head keys."""
    batch, tokens, heads, key_width, shared_width, value_width = sizes
    query = query.view(batch, tokens, heads, key_width + shared_width)
    own_key, value = kv.view(batch, tokens, heads, key_width + value_width).split([key_width, value_width], -1)
    shared = shared_key.view(batch, tokens, 1, shared_width).expand(batch, tokens, heads, shared_width)
    key = torch.cat([own_key, shared], -1)
    scores = torch.einsum("bthd,bshd->bhts", query, key) / math.sqrt(key_width + shared_width)
    future = torch.ones(tokens, tokens).triu(1).bool()
    probabilities = torch.softmax(scores.masked_fill(future, -1e9), -1)
    return torch.einsum("bhts,bshv->bthv", probabilities, value).reshape(batch * tokens, heads * value_width)


def check_mla():
    sizes = batch, tokens, heads, key_width, shared_width, value_width = 3, 20, 2, 32, 16, 32
    rows = batch * tokens
    inputs = [random_tensor(rows, heads * (key_width + shared_width)),
              random_tensor(rows, heads * (key_width + value_width)), random_tensor(rows, shared_width)]
    check("mla", lambda *tensors: Mla.apply(*tensors, sizes), lambda *tensors: expected_mla(*tensors, sizes), inputs)


def check_router_and_experts():
    bias = torch.randn(8)

    def expected_weights(logits):
        scores = torch.sigmoid(logits)
        weights = scores.gather(1, torch.topk(scores + bias, 3).indices)
        return weights / weights.sum(1, keepdim=True)

    logits = random_tensor(40, 8)
    check("router", lambda values: Router.apply(values, bias, 3)[0], expected_weights, [logits])
    _, indices, _ = Router.apply(logits, bias, 3)

    def expected_experts(x, weights, gate_up, down):
        chosen = indices.long()
        gate, up = torch.einsum("nl,nkol->nko", x, gate_up[chosen]).chunk(2, -1)
        return torch.einsum("nki,nkli,nk->nl", situ(gate, up), down[chosen], weights)

    inputs = [random_tensor(40, 64), random_tensor(40, 3), random_tensor(8, 64, 64, scale=0.2),
              random_tensor(8, 64, 32, scale=0.2)]
    check("experts", lambda x, *others: Experts.apply(x, indices, *others), expected_experts, inputs)


def check_head_loss():
    targets = torch.randint(-1, 500, (300,))
    check("head", lambda hidden, head: HeadLoss.apply(hidden, head, targets),
          lambda hidden, head: torch.nn.functional.cross_entropy(hidden @ head.T, targets, ignore_index=-1),
          [random_tensor(300, 64), random_tensor(500, 64)])


def check_mxfp4():
    """Against the nearest value by exhaustive search; only ties may differ, and nothing may be further away."""
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([magnitudes, -magnitudes])
    weight = torch.randn(4096, 32) * torch.exp(torch.randn(4096, 1) * 3)
    scale = 2 ** torch.ceil(torch.log2(weight.abs().max(1, keepdim=True).values / 6))
    nearest = values[(weight / scale)[..., None].sub(values).abs().argmin(-1)] * scale
    ours = RoundToMxfp4.apply(weight)
    assert (ours != nearest).float().mean() < 1e-4
    assert ((ours - weight).abs() <= (nearest - weight).abs() + 1e-7 * scale).all()
    print("mxfp4    ok")


if __name__ == "__main__":
    torch.manual_seed(0)
    check_rms_norm()
    check_mixer()
    check_situ()
    check_kda()
    check_mla()
    check_router_and_experts()
    check_head_loss()
    check_mxfp4()
