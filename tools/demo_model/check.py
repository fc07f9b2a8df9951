"""Checks the exported model against the stored reference numbers, with NumPy alone.

    python3 check.py [MODEL_DIR REFERENCE_DIR]      default: models/demo and tests/data/demo of this repository

The float64 model is run again on the files: logits, argmax and greedy continuation of the three prompts, and the
perplexity of the first windows of the held-out text. About ten seconds. Exit status 1 if anything differs.
"""
import json
import math
import os
import sys

import numpy as np

from float64_model import Float64Model
from scoring import score

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The stored values have 12 (logits, losses) and 10 (norms) significant digits. The order of the sums inside the model
# is up to the BLAS in use, which moves float64 results by about 1e-13.
LOGIT_ERROR_MAX = 1e-9  # relative L2
NORM_ERROR_MAX = 1e-8  # relative
LOSS_ERROR_MAX = 1e-9  # relative


class Report:
    """Prints one line per check and remembers failures."""

    def __init__(self):
        self.failure_count = 0

    def __call__(self, passed, text):
        print("ok    " if passed else "FAILED", text)
        self.failure_count += not passed


def check_prompt(model, prompt, report):
    ids = prompt["ids"]
    model.reset()
    logits = [model.step(token) for token in ids]
    for position, stored in prompt["logits"].items():
        error = relative_distance(logits[int(position)], np.array(stored))
        report(error < LOGIT_ERROR_MAX, f"{prompt['name']}: logits at position {position}, relative error {error:.1e}")
    norm_error = max(abs(np.linalg.norm(row) / norm - 1) for row, norm in zip(logits, prompt["logit_norms"]))
    report(norm_error < NORM_ERROR_MAX,
           f"{prompt['name']}: logit norms at {len(ids)} positions, relative error {norm_error:.1e}")
    same = sum(int(row.argmax()) == expected for row, expected in zip(logits, prompt["argmax"]))
    report(same == len(ids) == len(prompt["argmax"]), f"{prompt['name']}: argmax at {same} of {len(ids)} positions")
    report(model.chosen_experts == prompt["experts_at_last_token"], f"{prompt['name']}: experts of the last token")
    check_greedy(model, prompt, logits[-1], report)


def check_greedy(model, prompt, logits, report):
    ids, expected = [], prompt["greedy"]["ids"]
    for _ in expected:
        ids.append(int(logits.argmax()))
        logits = model.step(ids[-1])
    same = sum(ours == theirs for ours, theirs in zip(ids, expected))
    report(ids == expected, f"{prompt['name']}: greedy continuation, {same} of {len(expected)} tokens")


def relative_distance(ours, expected):
    return np.linalg.norm(ours - expected) / np.linalg.norm(expected)


def check_window(model, index, window, report):
    losses, _ = score(model, window["ids"])
    error = abs(sum(losses) / window["nll_nats"] - 1)
    perplexity = math.exp(sum(losses) / len(losses))
    report(error < LOSS_ERROR_MAX, f"window {index}: {len(losses)} tokens scored, perplexity {perplexity:.6f}, "
                                   f"relative error of the loss {error:.1e}")


def read_json(folder, name):
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def main(model_dir, reference_dir):
    model, report = Float64Model(model_dir), Report()
    print(len(model.tensors), "matrices and vectors read from", os.path.relpath(model_dir))
    for prompt in read_json(reference_dir, "reference.json")["prompts"]:
        check_prompt(model, prompt, report)
    for index, window in enumerate(read_json(reference_dir, "first_windows.json")["windows"]):
        check_window(model, index, window, report)
    print("everything agrees" if report.failure_count == 0 else f"{report.failure_count} checks failed")
    return 1 if report.failure_count else 0


if __name__ == "__main__":
    directories = sys.argv[1:3] or [os.path.join(REPOSITORY, "models", "demo"),
                                    os.path.join(REPOSITORY, "tests", "data", "demo")]
    sys.exit(main(*directories))
