"""Writes the committed vectors that tests of the engine read. Layouts: README.md.

Run: python3 tests/oracle/make_vectors.py [NAME ...]
"""

import json
import os
import sys

sys.dont_write_bytecode = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import kernel_vectors
import kimi
from configurations import CONFIGS, EXPERT_FORMATS, PROMPTS
from generator import all_tensors, expert_format_of

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors")
GREEDY_COUNT = 8
DIGITS = 12


def rounded(value):
    """Computed numbers with 12 significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [rounded(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{DIGITS}g}") + 0.0
    return int(value) if isinstance(value, np.integer) else value


def _experts(trace, token):
    """[[layer, ids ascending, weights in that order], ...] of one token."""
    result = []
    for layer, record in enumerate(trace.layers):
        if "experts" in record:
            order = np.argsort(record["experts"][token])
            result.append([layer, record["experts"][token][order], record["weights"][token][order]])
    return result


def model_vector(name):
    """Everything that a test compares for one configuration."""
    config, prompt = CONFIGS[name], PROMPTS[name]
    expert_format = EXPERT_FORMATS.get(name) or expert_format_of(config)
    tensors = all_tensors(config, expert_format)
    model = kimi.Model(config, kimi.generated_weights(config, expert_format))
    trace = model.run(prompt)
    ids, margins, gap = kimi.greedy(model, prompt, GREEDY_COUNT)
    residuals = [[[*row[:4], np.linalg.norm(row)] for row in record["residual"]] for record in trace.layers]
    return {"name": name, "config": config, "expert_format": expert_format, "prompt": prompt, "logits": trace.logits,
            "residuals": residuals, "experts": [_experts(trace, token) for token in range(len(prompt))],
            "greedy": {"ids": ids, "margins": margins}, "smallest_router_gap": min(gap, trace.smallest_gap),
            "tensors": {"count": len(tensors), "bytes": sum(t.byte_count for t in tensors)}}


def _line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(vector):
    """JSON with one key per line, and one element per line in the long lists."""
    lines = []
    for key, value in vector.items():
        if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
            rows = ",\n  ".join(_line(item) for item in value)
            lines.append(f' "{key}":[\n  {rows}]')
        else:
            lines.append(f' "{key}":{_line(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(kind, name, vector):
    """One file of the committed folder; `config` is kept as it stands."""
    os.makedirs(os.path.join(FOLDER, kind), exist_ok=True)
    config = {"config": vector["config"]} if "config" in vector else {}
    with open(os.path.join(FOLDER, kind, name + ".json"), "w", encoding="utf-8") as file:
        file.write(text_of({**rounded(vector), **config}))


def main(names):
    """Write the named vectors, or all."""
    for name in CONFIGS:
        if not names or name in names:
            write("models", name, model_vector(name))
    for name, table in kernel_vectors.tables().items():
        if not names or name in names:
            write("kernels", name, table)


if __name__ == "__main__":
    main(sys.argv[1:])
