"""Autograd wrappers around the C kernels. All tensors are float32 and contiguous unless noted.

`rows` in a shape is batch times tokens. What an operation computes stands in kernels/<name>.c.
"""
import ctypes

import torch
from torch.autograd import Function

import kernel_library

LIBRARY = kernel_library.load()
MXFP4_GROUP = 32


def _call(name, tensors, sizes, scalars=()):
    """Calls a kernel: addresses of tensors (None is a null pointer), then 64-bit sizes and float scalars."""
    arguments = [_address(tensor) for tensor in tensors]
    getattr(LIBRARY, name)(*arguments, *map(ctypes.c_int64, sizes), *map(ctypes.c_float, scalars))


def _address(tensor):
    if tensor is None or isinstance(tensor, ctypes.Array):
        return tensor
    assert tensor.is_contiguous()
    return ctypes.c_void_p(tensor.data_ptr())


def _addresses(tensors):
    assert all(tensor.is_contiguous() for tensor in tensors)
    return (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


class RmsNorm(Function):
    """x [..., width], weight [width] -> [..., width]."""

    @staticmethod
    def forward(context, x, weight, epsilon):
        width = x.shape[-1]
        rows = x.numel() // width
        y, inverse_rms = torch.empty_like(x), torch.empty(rows)
        _call("rms_norm_forward", (x, weight, y, inverse_rms), (rows, width), (epsilon,))
        context.save_for_backward(x, weight, inverse_rms)
        return y

    @staticmethod
    def backward(context, d_y):
        x, weight, inverse_rms = context.saved_tensors
        d_y = d_y.contiguous()
        d_x, d_weight = torch.empty_like(x), torch.zeros_like(weight)
        _call("rms_norm_backward", (x, weight, inverse_rms, d_y, d_x, d_weight), (inverse_rms.numel(), x.shape[-1]))
        return d_x, d_weight, None


class Mixer(Function):
    """Mixer of the attention residuals: score_weight [width] (norm times proj), sources [rows, width] in order."""

    @staticmethod
    def forward(context, score_weight, epsilon, *sources):
        width, source_count = score_weight.numel(), len(sources)
        rows = sources[0].numel() // width
        out = torch.empty_like(sources[0])
        probabilities, inverse_rms = torch.empty(rows, source_count), torch.empty(rows, source_count)
        _call("mixer_forward", (_addresses(sources), score_weight, out, probabilities, inverse_rms),
              (rows, width, source_count), (epsilon,))
        context.save_for_backward(score_weight, probabilities, inverse_rms, *sources)
        return out

    @staticmethod
    def backward(context, d_out):
        score_weight, probabilities, inverse_rms, *sources = context.saved_tensors
        rows, source_count = probabilities.shape
        d_sources = [torch.empty_like(source) for source in sources]
        d_score_weight = torch.zeros_like(score_weight)
        _call("mixer_backward",
              (_addresses(sources), score_weight, probabilities, inverse_rms, d_out.contiguous(),
               _addresses(d_sources), d_score_weight),
              (rows, score_weight.numel(), source_count))
        return (d_score_weight, None, *d_sources)


class Situ(Function):
    """gate_up [..., 2 * width] -> [..., width]."""

    @staticmethod
    def forward(context, gate_up):
        width = gate_up.shape[-1] // 2
        y = torch.empty(*gate_up.shape[:-1], width)
        _call("situ_forward", (gate_up, y), (y.numel() // width, width))
        context.save_for_backward(gate_up)
        return y

    @staticmethod
    def backward(context, d_y):
        gate_up, = context.saved_tensors
        d_gate_up, width = torch.empty_like(gate_up), d_y.shape[-1]
        _call("situ_backward", (gate_up, d_y.contiguous(), d_gate_up), (d_y.numel() // width, width))
        return d_gate_up


class Kda(Function):
    """projected [rows, 4 * N + heads] (q0, k0, v0, gate, beta logits), decay_logits [rows, N], conv_weight [3 * N, 4],
    decay_log [heads] (A_log), norm_weight [32] -> [rows, N]; N = heads * 32."""

    @staticmethod
    def forward(context, projected, decay_logits, conv_weight, decay_log, norm_weight, sizes, epsilon):
        """sizes: (batch, tokens, heads)."""
        out = torch.empty_like(decay_logits)
        inputs = (projected, decay_logits, conv_weight, decay_log, norm_weight)
        _call("kda_forward", (*inputs, out), sizes, (epsilon,))
        context.save_for_backward(*inputs)
        context.sizes, context.epsilon = sizes, epsilon
        return out

    @staticmethod
    def backward(context, d_out):
        inputs = context.saved_tensors
        written = [torch.empty_like(tensor) for tensor in inputs[:2]]
        accumulated = [torch.zeros_like(tensor) for tensor in inputs[2:]]
        _call("kda_backward", (*inputs, d_out.contiguous(), *written, *accumulated), context.sizes,
              (context.epsilon,))
        return (*written, *accumulated, None, None)


class Mla(Function):
    """query [rows, heads * (key + shared)], kv [rows, heads * (key + value)], shared_key [rows, shared] ->
    [rows, heads * value]."""

    @staticmethod
    def forward(context, query, kv, shared_key, sizes):
        """sizes: (batch, tokens, heads, key width, shared width, value width)."""
        batch, tokens, heads, _, _, value_width = sizes
        out = torch.empty(batch * tokens, heads * value_width)
        _call("mla_forward", (query, kv, shared_key, out), sizes)
        context.save_for_backward(query, kv, shared_key)
        context.sizes = sizes
        return out

    @staticmethod
    def backward(context, d_out):
        inputs = context.saved_tensors
        gradients = [torch.empty_like(tensor) for tensor in inputs]
        _call("mla_backward", (*inputs, d_out.contiguous(), *gradients), context.sizes)
        return (*gradients, None)


class Router(Function):
    """logits [rows, experts], bias [experts] -> weights [rows, chosen], expert indices [rows, chosen] (int32) and
    tokens per expert [experts] (int64). The bias takes part in the choice only and has no gradient."""

    @staticmethod
    def forward(context, logits, bias, chosen_count):
        rows, expert_count = logits.shape
        indices = torch.empty(rows, chosen_count, dtype=torch.int32)
        weights, scores = torch.empty(rows, chosen_count), torch.empty(rows, chosen_count)
        tokens_of_expert = torch.zeros(expert_count, dtype=torch.int64)
        _call("router_forward", (logits, bias, indices, weights, scores, tokens_of_expert),
              (rows, expert_count, chosen_count))
        context.save_for_backward(indices, weights, scores)
        context.expert_count = expert_count
        context.mark_non_differentiable(indices, tokens_of_expert)
        return weights, indices, tokens_of_expert

    @staticmethod
    def backward(context, d_weights, *_):
        indices, weights, scores = context.saved_tensors
        rows, chosen_count = weights.shape
        d_logits = torch.empty(rows, context.expert_count)
        _call("router_backward", (indices, weights, scores, d_weights.contiguous(), d_logits),
              (rows, context.expert_count, chosen_count))
        return d_logits, None, None


class Experts(Function):
    """y[i] = sum_j weights[i, j] * down[e] situ(gate_up[e] x[i]) with e = indices[i, j].

    x [rows, width], indices and weights [rows, chosen], gate_up [experts, 2 * inner, width], down [experts, width,
    inner] -> [rows, width]. One backward pass only: it overwrites what the forward pass kept.
    """

    @staticmethod
    def forward(context, x, indices, weights, gate_up, down):
        rows, width = x.shape
        expert_count, _, inner = down.shape
        chosen_count = indices.shape[1]
        choices = rows * chosen_count
        y = torch.empty_like(x)
        position = torch.empty(rows, chosen_count, dtype=torch.int32)
        first_row = torch.empty(expert_count + 1, dtype=torch.int64)
        inputs, gate_up_values = torch.empty(choices, width), torch.empty(choices, 2 * inner)
        activations, outputs = torch.empty(choices, inner), torch.empty(choices, width)
        kept = (position, first_row, inputs, gate_up_values, activations, outputs)
        _call("experts_forward", (x, indices, weights, gate_up, down, y, *kept),
              (rows, width, inner, expert_count, chosen_count))
        context.save_for_backward(weights, gate_up, down)
        context.kept = kept
        return y

    @staticmethod
    def backward(context, d_y):
        weights, gate_up, down = context.saved_tensors
        kept, context.kept = context.kept, None
        rows, width = d_y.shape
        expert_count, _, inner = down.shape
        d_y = d_y.contiguous()
        d_x, d_weights = torch.empty_like(d_y), torch.empty_like(weights)
        d_gate_up, d_down = torch.empty_like(gate_up), torch.empty_like(down)
        _call("experts_backward", (d_y, weights, gate_up, down, *kept, d_x, d_weights, d_gate_up, d_down),
              (rows, width, inner, expert_count, weights.shape[1]))
        return d_x, None, d_weights, d_gate_up, d_down


class HeadLoss(Function):
    """Mean cross-entropy in nats of hidden @ head.T against targets, without materialising the logits.

    hidden [rows, width], head [vocabulary, width], targets [rows] (int64, negative = ignored).
    """

    @staticmethod
    def forward(context, hidden, head, targets):
        rows, width = hidden.shape
        scored_count = int((targets >= 0).sum())
        losses = torch.empty(rows)
        wants_gradient = torch.is_grad_enabled() or hidden.requires_grad
        d_hidden, d_head = (torch.empty_like(hidden), torch.zeros_like(head)) if wants_gradient else (None, None)
        arguments = [_address(tensor) for tensor in (hidden, head, targets, losses, d_hidden, d_head)]
        LIBRARY.head_loss(*arguments, ctypes.c_float(1.0 / scored_count),
                          *map(ctypes.c_int64, (rows, width, head.shape[0])))
        context.gradients = (d_hidden, d_head)
        return losses.sum() / scored_count

    @staticmethod
    def backward(context, d_loss):
        (d_hidden, d_head), context.gradients = context.gradients, None
        return d_hidden * d_loss, d_head * d_loss, None


class RoundToMxfp4(Function):
    """MXFP4 rounding with a straight-through gradient."""

    @staticmethod
    def forward(context, weight):
        rounded = torch.empty_like(weight)
        _call("round_to_mxfp4", (weight, rounded, None, None), (weight.numel(),))
        return rounded

    @staticmethod
    def backward(context, gradient):
        return gradient


def pack_mxfp4(weight):
    """weight [out, in] -> (packed uint8 [out, in / 2], scales uint8 [out, in / 32])."""
    weight = weight.contiguous()
    outputs, inputs = weight.shape
    packed = torch.empty(outputs, inputs // 2, dtype=torch.uint8)
    scales = torch.empty(outputs, inputs // MXFP4_GROUP, dtype=torch.uint8)
    _call("round_to_mxfp4", (weight, torch.empty_like(weight), packed, scales), (weight.numel(),))
    return packed, scales
