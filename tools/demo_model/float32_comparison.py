"""The float32 training graph against the float64 reference, and perplexities with coarser expert formats."""
import math

import numpy as np
import torch

import checkpoint
from import_model import import_model
from scoring import rounded

QUANTISATION_GROUP = 32
INTEGER_BITS = (8, 4, 3, 2)
ABOUT = ("The PyTorch training graph in float32 with the exported weights, against the float64 logits above; then "
         "perplexity of the windows protocol in float32.")


def compare(model_dir, checkpoint_path, windows, prompts):
    """Entry `training_graph_float32` of the reference. The checkpoint (or None) holds the unrounded weights."""
    torch.set_num_threads(2)
    model = import_model(model_dir)
    table = {"exported files, float32": perplexity(model, windows, rounded_experts=False)}
    differences = logit_differences(model, prompts)
    exact = {name: value.clone() for name, value in model.stored_values().items() if "/expert_" in name}
    for bits in INTEGER_BITS:
        for name, weight in exact.items():
            model.stored_values()[name].copy_(requantised(weight, bits))
        label = f"routed experts re-quantised to int{bits}, scale per {QUANTISATION_GROUP}"
        table[label] = perplexity(model, windows, rounded_experts=False)
    if checkpoint_path:
        trained = checkpoint.load_model(checkpoint_path)
        table["training weights, float32, experts not rounded"] = perplexity(trained, windows, rounded_experts=False)
        label = "training weights, float32, experts MXFP4 (as trained)"
        table[label] = perplexity(trained, windows, rounded_experts=True)
    return {"about": ABOUT, "logit_difference": differences, "perplexity": table}


@torch.no_grad()
def perplexity(model, windows, rounded_experts):
    total, token_count = 0.0, 0
    for ids in windows:
        scored = len(ids) - 1
        total += float(model.loss(torch.tensor([ids[:-1]]), torch.tensor([ids[1:]]), rounded_experts)) * scored
        token_count += scored
    return rounded(math.exp(total / token_count), 6)


@torch.no_grad()
def logit_differences(model, prompts):
    """Per prompt: distance at the stored positions, and at how many positions the argmax is the same."""
    rows = []
    for prompt in prompts:
        logits = model.logits(torch.tensor([prompt["ids"]]), rounded=False)[0].double().numpy()
        for position, stored in prompt["logits"].items():
            expected = np.array(stored)
            difference = logits[int(position)] - expected
            rows.append({
                "prompt": prompt["name"],
                "position": int(position),
                "relative_l2": rounded(np.linalg.norm(difference) / np.linalg.norm(expected), 3),
                "max_abs": rounded(np.abs(difference).max(), 3),
            })
        same = sum(ours == theirs for ours, theirs in zip(logits.argmax(1).tolist(), prompt["argmax"]))
        rows.append({"prompt": prompt["name"], "argmax_equal_at": f"{same} of {len(prompt['argmax'])} positions"})
    return rows


def requantised(weight, bits):
    """Symmetric integers, one float scale per group along the row, round to nearest, no retraining."""
    largest = 2 ** (bits - 1) - 1
    groups = weight.reshape(-1, QUANTISATION_GROUP)
    scale = groups.abs().amax(1, keepdim=True) / largest
    codes = torch.round(groups / scale.clamp_min(1e-12)).clamp(-largest, largest)
    return (codes * scale).reshape(weight.shape)
