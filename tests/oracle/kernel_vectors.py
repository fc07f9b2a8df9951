"""Tables of single formulas for tests of kernels: inputs that float32 holds exactly, results in float64.

Inputs come from the hash of section 15.1 of spec/kimi.md, rounded to multiples of 2^-8 unless a table says otherwise.
"""

import math

import numpy as np

import formulas
from generator import bf16_bits, bf16_values, random_words
from settings import read_settings
from configurations import TINY_LINEAR


def inputs(name, shape, span=2.0, step=2.0**-8):
    """Hashed values in [-span, span], multiples of `step`."""
    count = math.prod(shape) if shape else 1
    uniform = (random_words("kernels/" + name, count) >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0
    return (np.round(uniform * span / step) * step).reshape(shape) + 0.0


def positive(name, shape, span=1.0, step=2.0**-8):
    """Hashed values in (0, span]."""
    return np.maximum(np.abs(inputs(name, shape, span, step)), step)


# ---- elementwise functions

def _grid(limit, fine=2.0**-4, fine_limit=4.0):
    """A symmetric grid: fine near zero, powers of two and their neighbours beyond, tiny values, both zeros' sides."""
    near = np.arange(0.0, fine_limit + fine, fine)
    far = [2.0**k * m for k in range(2, 15) for m in (1.0, 1.25, 1.5) if 2.0**k * m <= limit]
    tiny = [2.0**-k for k in (6, 10, 13, 20, 24, 40, 100, 126, 140, 149)]
    positive_side = np.unique(np.concatenate([near, far, tiny, [limit]]))
    return np.unique(np.concatenate([-positive_side, positive_side])) + 0.0


def _gelu_erf(x):
    return np.array([0.5 * v * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x])


def _gelu_tanh(x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def elementwise():
    """exp, log, tanh, sigmoid, softplus, silu, sin, cos and both GELU forms."""
    wide, narrow = _grid(20000.0), _grid(30.0)
    bounded = wide[(wide <= 88.5) & (wide >= -200.0)]
    above_zero = wide[(wide > 0) & (wide >= 2.0**-126)]
    turn = _grid(1000.0)
    table = {"exp": (bounded, np.exp), "log": (above_zero, np.log), "tanh": (wide, np.tanh),
             "sigmoid": (wide, formulas.sigmoid), "softplus": (wide, formulas.softplus), "silu": (wide, formulas.silu),
             "sin": (turn, np.sin), "cos": (turn, np.cos), "gelu_erf": (narrow, _gelu_erf),
             "gelu_tanh": (narrow, _gelu_tanh)}
    return [{"function": name, "x": x, "y": function(x)} for name, (x, function) in table.items()]


def _gate_and_up(name):
    """Hashed pairs, and pairs at the extremes."""
    extremes = [0.0, 0.125, -0.125, 4.0, -4.0, 12.0, -12.0, 60.0, -60.0, 200.0, -200.0, 1000.0, -1000.0]
    gate = np.concatenate([inputs(name + "/gate", (24,), 8.0), extremes])
    up = np.concatenate([inputs(name + "/up", (24,), 30.0), extremes[::-1]])
    return gate, up


def swiglu():
    """act(a, b) = silu(a) * b."""
    gate, up = _gate_and_up("swiglu")
    return [{"gate": gate, "up": up, "y": formulas.swiglu(gate, up)}]


def situ():
    """SiTU; a null linear_beta leaves the up branch as it is."""
    gate, up = _gate_and_up("situ")
    pairs = [(4.0, 25.0), (1.0, None), (2.5, None), (4.0, 10.0), (1.0, 1.0), (0.5, 0.0625)]
    return [{"beta": beta, "linear_beta": linear, "gate": gate, "up": up,
             "y": formulas.situ(gate, up, beta, linear)} for beta, linear in pairs]


def decay():
    """Log decay g; a null lower_bound is the softplus form. One a_log per logit."""
    logits = np.concatenate([inputs("decay/z", (40,), 8.0), [0.0, 19.75, 20.0, 20.25, 25.0, -25.0, 100.0, -100.0]])
    a_log = np.concatenate([inputs("decay/a", (40,), 1.5), [0.0, 0.5, -0.5, 1.0, 0.0, 2.0, 1.0, 1.0]])
    return [{"lower_bound": bound, "logits": logits, "a_log": a_log, "y": formulas.decay(logits, a_log, bound)}
            for bound in (None, -5.0, -2.5, -0.5)]


# ---- vectors

def rms_norm():
    """RMS norms of odd and even widths, an all-zero row, a tiny row and a large one."""
    cases = []
    sizes = [(1, 2, 1e-5), (3, 2, 1e-5), (16, 2, 1e-5), (24, 2, 1e-6), (33, 100, 1e-5), (72, 2, 1e-5),
             (128, 8, 1.1920929e-07), (20, 0, 1e-5), (17, 2.0**-7, 1e-5)]
    for width, span, epsilon in sizes:
        name = f"rms/{width}/{span}"
        x = inputs(name + "/x", (width,), span) if span else np.zeros(width)
        weight = 1.0 + inputs(name + "/w", (width,), 0.25)
        cases.append({"epsilon": epsilon, "x": x, "weight": weight, "y": formulas.rms_norm(x, weight, epsilon)})
    return cases


def gated_norm():
    """Output stage of KDA: RMS norm per head, times the sigmoid of the gate (section 5 step 8)."""
    cases = []
    for width in (5, 16, 24, 128):
        x, weight = inputs(f"gated/{width}/x", (width,)), 1.0 + inputs(f"gated/{width}/w", (width,), 0.25)
        gate = inputs(f"gated/{width}/gate", (width,), 6.0)
        y = formulas.rms_norm(x, weight, 1e-5) * formulas.sigmoid(gate)
        cases.append({"epsilon": 1e-5, "x": x, "weight": weight, "gate": gate, "y": y})
    return cases


def l2_norm():
    """L2 normalisation with a sum and epsilon 1e-6; the second result carries the factor width^-0.5 of queries."""
    cases = []
    for width, span in [(1, 2), (3, 2), (16, 2), (24, 2), (33, 40), (128, 2), (16, 0), (15, 2.0**-8)]:
        x = inputs(f"l2/{width}/{span}", (width,), span) if span else np.zeros(width)
        y = formulas.l2_norm(x)
        cases.append({"x": x, "y": y, "y_query": y * width**-0.5})
    return cases


def softmax():
    """Softmax of several lengths and spreads."""
    sizes = [(1, 2), (2, 2), (7, 8), (16, 8), (17, 1000), (100, 8), (257, 20), (9, 0)]
    rows = [inputs(f"softmax/{n}/{span}", (n,), span) if span else np.zeros(n) for n, span in sizes]
    return [{"x": x, "y": formulas.softmax(x)} for x in rows]


def short_conv():
    """Depthwise convolution with SiLU. `history` holds the inputs before the first token, oldest first."""
    cases = []
    for channels, taps, tokens in [(1, 4, 6), (5, 4, 6), (16, 4, 5), (33, 4, 7), (6, 4, 1), (4, 2, 4)]:
        name = f"conv/{channels}/{taps}/{tokens}"
        weight = inputs(name + "/w", (channels, taps), 0.5)
        history = inputs(name + "/history", (taps - 1, channels))
        x = inputs(name + "/x", (tokens, channels))
        joined = np.concatenate([history, x])
        y = formulas.short_convolution(joined, weight[:, None, :])[taps - 1:]
        cases.append({"weight": weight, "history": history, "x": x, "y": y})
    return cases


# ---- attention

def _kda_steps(name, heads, width, tokens):
    shape = (tokens, heads, width)
    return {"q": inputs(name + "/q", shape), "k": inputs(name + "/k", shape), "v": inputs(name + "/v", shape),
            "log_decay": -positive(name + "/g", shape, 3.0), "beta": positive(name + "/beta", shape[:2], 0.996)}


def _kda_case(heads, width, tokens, rows):
    """Raw q and k: the kernel normalises. State element [h][i][j] starts as left[h][i] * right[h][j]."""
    name = f"kda/{heads}/{width}"
    case = _kda_steps(name, heads, width, tokens)
    left, right = (inputs(name + side, (heads, width), 1.0, 2.0**-4) for side in ("/left", "/right"))
    query, key = formulas.l2_norm(case["q"]) * width**-0.5, formulas.l2_norm(case["k"])
    states, output = np.einsum("hi,hj->hij", left, right), np.zeros(case["q"].shape)
    for t in range(tokens):
        for h in range(heads):
            states[h], output[t, h] = formulas.delta_step(
                states[h], query[t, h], key[t, h], case["v"][t, h], case["log_decay"][t, h], case["beta"][t, h])
    return {"heads": heads, "width": width, "state_left": left, "state_right": right, **case, "o": output,
            "state_rows": rows, "state": states[:, rows], "state_norm": np.sqrt(np.sum(states**2, axis=(1, 2)))}


def kda():
    """Recurrence of section 5 steps 6 and 7, from a state that is not zero."""
    return [_kda_case(1, 2, 3, [0, 1]), _kda_case(3, 5, 4, list(range(5))), _kda_case(2, 16, 4, list(range(16))),
            _kda_case(1, 24, 5, [0, 7, 23]), _kda_case(2, 32, 3, [0, 15, 16, 31]),
            _kda_case(1, 128, 3, [0, 1, 77, 127])]


def _mla_case(nope, rope, value, latent, positions):
    """One head. Queries at some positions; keys and values in both forms follow from the latents."""
    name = f"mla/{nope}/{rope}/{value}/{latent}/{positions}"
    case = {"wk": inputs(name + "/wk", (nope, latent), 0.5), "wv": inputs(name + "/wv", (value, latent), 0.5),
            "latent": inputs(name + "/latent", (positions, latent)),
            "k_rope": inputs(name + "/rope", (positions, rope))}
    places = sorted({0, positions // 2, positions - 1})
    query = inputs(name + "/q", (len(places), nope + rope), 3.0)
    keys = np.concatenate([case["latent"] @ case["wk"].T, case["k_rope"]], axis=1)
    values, scale = case["latent"] @ case["wv"].T, (nope + rope)**-0.5
    scores = [keys[:p + 1] @ query[i] * scale for i, p in enumerate(places)]
    output = [formulas.softmax(score) @ values[:len(score)] for score in scores]
    return {"nope": nope, "rope": rope, "value": value, "latent_width": latent, **case, "query_positions": places,
            "q": query, "scores": scores, "o": output}


def mla():
    """Section 6 steps 3 and 4; a query at position p sees positions 0..p."""
    return [_mla_case(2, 1, 2, 3, 1), _mla_case(10, 6, 9, 20, 5), _mla_case(16, 8, 16, 32, 19),
            _mla_case(3, 1, 4, 5, 70), _mla_case(11, 5, 13, 27, 33)]


def attn_res():
    """Mixers of section 9 over one to nine sources; the running sum is the last source."""
    cases = []
    for count in range(1, 10):
        width = 17 if count % 2 else 24
        name = f"mixer/{count}"
        sources = inputs(name + "/sources", (count, width), 4.0) * (2.0 ** (np.arange(count) % 3))[:, None]
        norm, projection = 1.0 + inputs(name + "/norm", (width,), 0.25), inputs(name + "/projection", (width,), 0.75)
        mixed, probability, scores = formulas.mix(list(sources[:, None]), norm, projection, 1e-5)
        cases.append({"epsilon": 1e-5, "sources": sources, "norm": norm, "projection": projection, "scores": scores[0],
                      "p": probability[0], "y": mixed[0]})
    return cases


# ---- router

def _route(name, logits, bias, top_k, activation="sigmoid", renormalize=True, scale=1.0, groups=1, kept=1):
    config = dict(TINY_LINEAR, num_experts=len(logits), num_experts_per_token=top_k, moe_renormalize=renormalize,
                  moe_router_activation_func=activation, routed_scaling_factor=scale, num_expert_group=groups,
                  topk_group=kept)
    chosen, weights, gap = formulas.route(logits, bias, read_settings(config))
    order = np.argsort(chosen)
    return {"name": name, "activation": activation, "top_k": top_k, "renormalize": renormalize, "scale": scale,
            "groups": groups, "groups_kept": kept, "logits": logits, "bias": bias, "best_first": chosen,
            "ids": chosen[order], "weights": weights[order], "gap": gap if np.isfinite(gap) else None}


def router():
    """Selection and weights of section 7 steps 1 to 5. `gap` is null when nothing was rejected."""
    logits, bias = inputs("router/logits", (16,), 4.0), inputs("router/bias", (16,), 0.25)
    wide = inputs("router/wide", (896,), 6.0, 2.0**-14), inputs("router/wide_bias", (896,), 0.25, 2.0**-14)
    zero, level = np.zeros(16), np.full(16, 0.5)
    twice = np.array([0.5, 2.0, 2.0, -1.0, 2.0, 0.5, 2.0, 0.0])
    spec = (np.array([1, -0.5, 0.25, 2, 0.875, -1]), np.array([0, 0.25, 0.25, -0.5, 0, 0.5]))
    low_rise = np.where(np.arange(16) >= 12, 2.0, 0.0)
    lone = np.array([4, -8, -8, -8, 1, 1.25, -8, -8, 0.5, 0.75, -8, -8, -8, -8, -8, -8])
    return [
        _route("plain", logits, bias, 4, scale=2.446),
        _route("top one keeps its sigmoid", logits, bias, 1, scale=2.446),
        _route("no renormalisation", logits, bias, 3, renormalize=False), _route("softmax", logits, bias, 3, "softmax"),
        _route("softmax without renormalisation", logits, zero, 2, "softmax", renormalize=False, scale=1.5),
        _route("two of four groups", logits, bias, 4, groups=4, kept=2),
        _route("six from two groups", logits, bias, 6, groups=4, kept=2),
        _route("a lone high expert does not save its group", lone, zero, 3, groups=4, kept=2),
        _route("negative scores still beat a dropped group", logits, bias - 2.0, 7, groups=4, kept=2),
        _route("one of four groups, all of it", logits, bias, 4, groups=4, kept=1),
        _route("all groups kept", logits, bias, 4, groups=4, kept=4),
        _route("groups by softmax", logits, bias, 3, "softmax", groups=2, kept=1),
        _route("all equal: lowest indices", level, zero, 4), _route("ties among the best", twice, zero[:8], 3),
        _route("ties at the last place", twice, zero[:8], 5),
        _route("tied groups: lowest first", level, zero, 4, groups=4, kept=2),
        _route("bias chooses, sigmoid weighs", *spec, 3, scale=2.446),
        _route("bias lifts the last four", np.where(low_rise > 0, -6.0, logits), low_rise, 4),
        _route("every expert", logits[:5], bias[:5], 5), _route("extreme logits", logits * 64.0, bias, 4),
        _route("896 experts, top 16", *wide, 16),
    ]


# ---- weights

ALL_CODES = "1032547698badcfe" + "0123456789abcdef"


def _float32_bits(values):
    """Bit patterns: they tell zeros apart, and infinity where a product leaves float32."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).view(np.uint32).reshape(-1)


def _mxfp4_case(name, packed, scale):
    values = formulas.decode_mxfp4(packed, scale)
    return {"name": name, "rows": packed.shape[0], "columns": 2 * packed.shape[1], "packed": packed.tobytes().hex(),
            "scale": scale.tobytes().hex(), "float32_bits": _float32_bits(values)}


def mxfp4():
    """Section 11: all codes in both nibbles under edge scales, and a matrix of several rows and blocks."""
    row = np.frombuffer(bytes.fromhex(ALL_CODES), np.uint8).reshape(1, 16)
    edges = (0, 1, 2, 126, 127, 128, 252, 254)
    cases = [_mxfp4_case(f"all codes, scale {e}", row, np.array([[e]], np.uint8)) for e in edges]
    packed = (random_words("kernels/mxfp4/packed", 3 * 48) >> np.uint64(56)).astype(np.uint8).reshape(3, 48)
    scale = (np.uint64(120) + (random_words("kernels/mxfp4/scale", 9) >> np.uint64(60))).astype(np.uint8).reshape(3, 3)
    return cases + [_mxfp4_case("three rows of three blocks", packed, scale)]


def number_formats():
    """BF16 and F16 bit patterns (subnormals, zeros, extremes) and the float32 bits that they stand for."""
    bf16 = np.array([0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x3F81, 0x4049, 0x7F7F, 0xFF7F], np.uint16)
    f16 = np.array([0, 0x8000, 1, 2, 3, 0x8001, 0x200, 0x3FF, 0x83FF, 0x400, 0x3C00, 0xBC00, 0x3C01, 0x4248, 0x7BFF,
                    0xFBFF], np.uint16)
    return [{"format": "bf16", "bits": bf16, "float32_bits": bf16_values(bf16).view(np.uint32)},
            {"format": "f16", "bits": f16, "float32_bits": _float32_bits(f16.view(np.float16))}]


def _stored_weight(weight, number_format):
    """Bits as stored and the values that they stand for."""
    if number_format == "bf16":
        bits = bf16_bits(weight)
        return bits, bf16_values(bits).astype(np.float64)
    if number_format == "f16":
        half = weight.astype(np.float16)
        return half.view(np.uint16), half.astype(np.float64)
    single = weight.astype(np.float32)
    return single.view(np.uint32), single.astype(np.float64)


def _product(case, weight, x):
    """y = W x, and the sum of |w x| that a rounding error is measured against."""
    return {**case, "x": x, "y": weight @ x, "magnitude": np.abs(weight) @ np.abs(x)}


def matvec():
    """Products with plain and MXFP4 weights; `weight_bits` are the stored bits, row-major."""
    cases = []
    for number_format in ("bf16", "f16", "f32"):
        for rows, columns in [(1, 1), (2, 15), (3, 16), (5, 17), (4, 33), (3, 100)]:
            name = f"matvec/{number_format}/{rows}/{columns}"
            bits, weight = _stored_weight(inputs(name + "/w", (rows, columns), 1.0, 2.0**-20), number_format)
            case = {"format": number_format, "rows": rows, "columns": columns, "weight_bits": bits.reshape(-1)}
            cases.append(_product(case, weight, inputs(name + "/x", (columns,))))
    for rows, columns in [(1, 32), (3, 64), (5, 96), (2, 160)]:
        name = f"matvec/mxfp4/{rows}/{columns}"
        packed = (random_words(name + "/p", rows * columns // 2) >> np.uint64(56)).astype(np.uint8).reshape(rows, -1)
        scale = (np.uint64(121) + (random_words(name + "/s", rows * columns // 32) >> np.uint64(62)))
        scale = scale.astype(np.uint8).reshape(rows, -1)
        case = {"format": "mxfp4", "rows": rows, "columns": columns, "packed": packed.tobytes().hex(),
                "scale": scale.tobytes().hex()}
        cases.append(_product(case, formulas.decode_mxfp4(packed, scale), inputs(name + "/x", (columns,))))
    return cases


TABLES = (elementwise, swiglu, situ, decay, rms_norm, gated_norm, l2_norm, softmax, short_conv, kda, mla, attn_res,
          router, mxfp4, number_formats, matvec)


def tables():
    """File name -> table: what it is, and its cases."""
    return {table.__name__: {"table": table.__name__, "about": table.__doc__, "cases": table()} for table in TABLES}
