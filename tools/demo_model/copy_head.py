"""Makes the last MLA layer of a half-trained checkpoint a copy head, then saves the checkpoint for further training.

    python3 copy_head.py DATA_DIR MODEL_DIR IN.pt OUT.pt

Why: in a run of minutes a model of this size learns the sentences of the stories, but not to repeat the right name: it
knows that a name comes next, and picks any. The parts of the mechanism are all there, only the circuit is missing. So
it is solved for by ridge regression on the activations that enter the layer:

  * key: is this token a name (a color, a toy, ...)? Query: will the next token be one? They meet in the dimensions of
    the key that all heads share.
  * value: a random 32-dimensional code of the token. Output: the directions of the final hidden state that are used
    least.
  * output head: the same codes are added to the rows of these tokens. Gate: open where the query fires.

The step by itself lowers the loss a little; the training after it (all weights free) does the rest.
"""
import math
import sys

import numpy as np
import torch

import checkpoint
from batches import batch
from model import Model
from model_sizes import DEMO
from tokenizer import Tokenizer
from words import (ANIMALS, BOYS, BREAKABLE, BUILDS, COLORS, FOODS, GIRLS, GIVERS, INGREDIENTS, PETS, PLACES, PLANTS,
                   SMALL_ANIMALS, TOYS)

FITTED_ROWS = 64  # the last training rows
# Strengths, found by a small search on the loss.
KEY_GAIN, OUTPUT_SCALE, CODE_SCALE, GATE_SCALE, GATE_GAIN = 30.0, 40.0, 1.0, 5.0, 3.0
RIDGE_STRENGTH = 1e-3
CODE_WIDTH = 32  # value width of a head
OTHER_TOKEN_WEIGHT = 0.02  # of tokens outside the classes, when a value is fitted

# (words of a class, head of the layer that copies them)
CLASSES = [
    (GIRLS + BOYS + PETS, 0),
    (COLORS, 1),
    (TOYS + BREAKABLE + ["plane", "paper"], 1),
    (list(ANIMALS) + SMALL_ANIMALS + ["lion", "wolf", "giant", "ox", "weasel", "crow", "girl", "boy"], 2),
    (GIVERS + ["king", "queen"], 2),
    (["he", "him", "his", "himself"], 3),
    (["she", "her", "herself"], 3),
    (FOODS + INGREDIENTS, 1),
    (PLANTS + BUILDS + "tree house fort castle net hole bush mud rope flute fiddle horn drum baker farmer sailor "
     "painter shepherd tailor miller fisherman nurse".split(), 2),
    ("one two three four five six seven eight nine ten eleven twelve".split(), 3),
    (list(PLACES) + "hill bench fountain slide gate well shed rock log barn".split(), 2),
]
NAME_CLASSES, OTHER_CLASSES = [0], list(range(1, len(CLASSES)))


class RecordingModel(Model):
    """Keeps what enters the attention of each MLA layer: attention_input[layer], [rows, hidden]."""

    def __init__(self):
        super().__init__(DEMO)
        self.attention_input = {}

    def _mla(self, x, prefix, batch_size, tokens):
        self.attention_input[int(prefix[:-1])] = x
        return super()._mla(x, prefix, batch_size, tokens)


def class_members(tokenizer):
    """[vocabulary, classes]: 1 where a token is a word of the class, with or without space and capital."""
    member = torch.zeros(DEMO.vocabulary, len(CLASSES))
    for index, (words, _) in enumerate(CLASSES):
        for word in words:
            for form in (" " + word, word, " " + word.capitalize(), word.capitalize()):
                ids = tokenizer.encode(form)
                if len(ids) == 1:
                    member[ids[0], index] = 1
    return member


def ridge(inputs, targets, weight=None):
    """Matrix [targets, inputs] that maps rows of inputs to rows of targets, in double precision."""
    if weight is None:
        weight = torch.ones(len(inputs), dtype=torch.double)
    weighted = inputs * weight[:, None].double()
    gram = weighted.T @ inputs
    penalty = RIDGE_STRENGTH * gram.diagonal().mean() * torch.eye(inputs.shape[1], dtype=torch.double)
    return torch.linalg.solve(gram + penalty, weighted.T @ targets.double()).T


class CopyHead:
    """The regressions, from one pass of the model over the given batch."""

    def __init__(self, model, tokenizer, ids, targets):
        self.model = model
        self.layer = DEMO.mla_layers[-1] - 1
        self.loss_before = float(model.loss(ids, targets))
        self.inputs = model.attention_input[self.layer].double()  # [rows, hidden]
        self.tokens, following = ids.reshape(-1), targets.reshape(-1)
        known = following >= 0
        self.member = class_members(tokenizer)
        self.key = ridge(self.inputs, self.member[self.tokens])  # [classes, hidden], as the next two
        self.query = ridge(self.inputs[known], self.member[following[known]])
        self.constant = ridge(self.inputs, torch.ones(len(self.inputs), 1))
        self.low_directions = self._low_directions(ids)
        self.code = self._token_codes()

    def _low_directions(self, ids):
        """[hidden, CODE_WIDTH]: the directions of the final hidden state that are used least."""
        hidden = self.model.hidden(ids)
        _, vectors = torch.linalg.eigh((hidden.T @ hidden / len(hidden)).double())  # in ascending order
        return vectors[:, :CODE_WIDTH].float()

    def _token_codes(self):
        """[vocabulary, CODE_WIDTH]: a random unit vector per token of a class, zero for others."""
        code = torch.randn(DEMO.vocabulary, CODE_WIDTH, generator=torch.Generator().manual_seed(11))
        return code / code.norm(dim=1, keepdim=True) * (self.member.sum(1) > 0)[:, None]

    def value_matrix(self, classes):
        """[CODE_WIDTH, hidden]: the code of the current token if it is in the classes, every token counting alike."""
        is_ours = (self.member[:, classes].sum(1) > 0)[self.tokens]
        count = torch.bincount(self.tokens[is_ours], minlength=DEMO.vocabulary).float()
        our_weight = 1 / count[self.tokens].clamp_min(1).sqrt()
        weight = torch.where(is_ours, our_weight, torch.full((len(self.tokens),), OTHER_TOKEN_WEIGHT))
        matrix = ridge(self.inputs, self.code[self.tokens] * is_ours[:, None], weight).float()
        return matrix / (self.inputs[is_ours].float() @ matrix.T).pow(2).mean().sqrt()


def install(model, tokenizer, rows):
    """Writes the copy head into the model, prints the loss before and after, returns the changed parameters' names."""
    with torch.no_grad():
        ids, targets = batch(rows)
        head = CopyHead(model, tokenizer, ids, targets)
        generator = torch.Generator().manual_seed(4)
        query_scale = _write_inputs(head, generator)
        _write_attention(head, generator, query_scale)
        model.weights["head"] += CODE_SCALE * head.code @ head.low_directions.T
        print(f"loss before {head.loss_before:.4f} after {float(model.loss(ids, targets)):.4f}")
    changed = [f"{head.layer}/{name}" for name in ("mla_in", "query_up", "kv_up", "attention_out")] + ["head"]
    return ["weights." + name for name in changed]


def _write_inputs(head, generator):
    """Writes mla_in and the latent norms. Returns the mean RMS of the query latent."""
    sizes, weights = DEMO, head.model.weights
    class_count = len(CLASSES)
    parts = weights[f"{head.layer}/mla_in"].split(sizes.mla_input_parts)
    query_latent, kv_latent, shared_key, gate = parts
    random_rows = torch.randn(sizes.query_rank, sizes.hidden, generator=generator)
    query_latent[:] = random_rows / math.sqrt(sizes.hidden) * 0.5
    query_latent[:class_count] = 2 * head.query.float()
    kv_latent[:] = torch.cat([head.value_matrix(NAME_CLASSES), head.value_matrix(OTHER_CLASSES)])
    shared_key[:] = 0
    shared_key[:class_count] = head.key.float()
    for index in range(sizes.mla_heads):
        fires = sum(head.query[number] for number, (_, owner) in enumerate(CLASSES) if owner == index)
        first = index * sizes.value_width
        gate[first:first + sizes.value_width] = (GATE_SCALE * (GATE_GAIN * fires - head.constant[0])).float()[None]
    weights[f"{head.layer}/query_latent_norm"][:] = 1
    weights[f"{head.layer}/kv_latent_norm"][:] = 1
    return (head.inputs.float() @ query_latent.T).pow(2).mean(1).sqrt().mean()


def _write_attention(head, generator, query_scale):
    """Writes query_up, kv_up and attention_out: head 0 copies names, the others everything else."""
    sizes, weights = DEMO, head.model.weights
    heads, own = sizes.mla_heads, sizes.key_width
    query_width = own + sizes.shared_key_width
    query_up = weights[f"{head.layer}/query_up"].view(heads, query_width, sizes.query_rank)
    kv_up = weights[f"{head.layer}/kv_up"].view(heads, own + sizes.value_width, sizes.kv_rank)
    attention_out = weights[f"{head.layer}/attention_out"].view(sizes.hidden, heads, sizes.value_width)
    query_up.copy_(torch.randn(query_up.shape, generator=generator) * 0.02)
    kv_up.zero_()
    kv_up[:, :own] = torch.randn(heads, own, sizes.kv_rank, generator=generator) * 0.05
    for number, (_, owner) in enumerate(CLASSES):
        query_up[owner, own + number, number] = KEY_GAIN * math.sqrt(query_width) / 2 * query_scale
    direction = head.low_directions / weights["final_norm"][:, None]
    direction = direction / direction.norm(dim=0, keepdim=True)
    identity = torch.eye(sizes.kv_rank)
    for index in range(heads):
        kv_up[index, own:] = identity[:CODE_WIDTH] if index == 0 else identity[CODE_WIDTH:]
        attention_out[:, index] = direction / math.sqrt(CODE_WIDTH) * OUTPUT_SCALE


def forget_momentum(state, model, changed):
    """The optimiser starts anew for the changed parameters, with second moments of at least their old mean."""
    for index, (name, _) in enumerate(checkpoint.optimiser_order(model)):
        if name in changed:
            moments = state["optimiser"]["state"][index]
            moments["exp_avg"].zero_()
            moments["exp_avg_sq"].clamp_(min=float(moments["exp_avg_sq"].mean()))


def main(data_dir, model_dir, source, destination):
    torch.set_num_threads(2)
    state, model = torch.load(source), RecordingModel()
    model.load_state_dict(state["model"])
    rows = np.load(data_dir + "/train.npy", mmap_mode="r")[-FITTED_ROWS:]
    changed = install(model, Tokenizer(model_dir + "/tiktoken.model"), rows)
    forget_momentum(state, model, changed)
    state["model"] = model.state_dict()
    torch.save(state, destination)


if __name__ == "__main__":
    main(*sys.argv[1:5])
