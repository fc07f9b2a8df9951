"""Trains the demo model. The learning-rate schedule follows the clock, so a run always ends on time.

    python3 train.py DATA_DIR OUT_DIR MINUTES [--resume] [--rows 14] [--peak 0.003] [--copies 0]

Writes OUT_DIR/last.pt (weights, optimiser, position) every three minutes and OUT_DIR/log.txt.
"""
import argparse
import math
import os
import time

import numpy as np
import torch

import checkpoint
from batches import batch_with_copies, mean_loss
from model import Model
from model_sizes import DEMO

THREADS = 2
WARMUP_STEPS = 60
RATE_FLOOR = 0.02  # of the peak, reached at the end
WEIGHT_DECAY = 0.05
GRADIENT_NORM_MAX = 1.0
BALANCE_RATE = 2e-3
BALANCE_END = 0.97  # of the run; the selection bias rests afterwards
COPIES_END = 0.7  # of the run; the share of copied rows falls to zero until then
LOG_STEPS = 50
SAVE_SECONDS = 180
QUICK_VALIDATION_ROWS = 40


class Log:
    """Prints lines and appends them to a file."""

    def __init__(self, path):
        self.file = open(path, "a")

    def __call__(self, line):
        print(line, flush=True)
        self.file.write(line + "\n")
        self.file.flush()


class ExpertLoad:
    """Running mean of the tokens per expert, per MoE layer."""

    def __init__(self):
        self.tokens = {layer: torch.zeros(DEMO.experts) for layer in range(1, DEMO.layers)}

    def add(self, tokens_of_expert):
        for layer, counts in tokens_of_expert.items():
            self.tokens[layer] = 0.98 * self.tokens[layer] + 0.02 * counts

    def range(self):
        """(least, largest) load of any expert, relative to the mean of its layer."""
        relative = [tokens / tokens.mean() for tokens in self.tokens.values()]
        return min(float(load.min()) for load in relative), max(float(load.max()) for load in relative)


class Trainer:
    """Model, optimiser and position of one run."""

    def __init__(self, options):
        self.options = options
        self.rows = np.load(os.path.join(options.data_dir, "train.npy"), mmap_mode="r")
        self.path = os.path.join(options.out_dir, "last.pt")
        self.model = Model()
        ordered = checkpoint.optimiser_order(self.model)
        matrices = [parameter for name, parameter in ordered if checkpoint.is_matrix(name, parameter)]
        others = [parameter for name, parameter in ordered if not checkpoint.is_matrix(name, parameter)]
        groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=options.peak, betas=(0.9, 0.95), foreach=True)
        self.copy_rng = np.random.default_rng(7)
        self.load = ExpertLoad()
        self.step = self.tokens = self.position = 0
        spent_seconds = self._resume() if options.resume else 0.0
        self.start = time.time() - spent_seconds
        self.gradient_norm = self.rate = 0.0

    def _resume(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.tokens, self.position = state["step"], state["tokens"], state["position"]
        return state["spent_seconds"]

    def save(self):
        checkpoint.save(self.path, {
            "model": self.model.state_dict(), "optimiser": self.optimiser.state_dict(), "step": self.step,
            "tokens": self.tokens, "position": self.position, "spent_seconds": self.spent_seconds()})

    def spent_seconds(self):
        return time.time() - self.start

    def train_step(self, progress):
        """One optimisation step at `progress` (0 to 1) of the schedule. Returns the loss in nats per token."""
        self.rate = rate_factor(self.step, progress)
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.peak * self.rate
        ids, targets = self._next_batch(progress)
        loss = self.model.loss(ids, targets)
        loss.backward()
        self.gradient_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM_MAX)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.model.balance(BALANCE_RATE * max(self.rate, 0.05) if progress < BALANCE_END else 0.0)
        self.load.add(self.model.tokens_of_expert)
        self.step += 1
        self.tokens += int((targets >= 0).sum())
        return float(loss)

    def _next_batch(self, progress):
        count = self.options.rows
        first = self.position % (len(self.rows) - count)
        self.position += count
        share = self.options.copies * max(0.0, 1 - progress / COPIES_END)
        return batch_with_copies(self.rows[first:first + count], self.copy_rng, share)

    def progress_line(self, losses):
        seconds = self.spent_seconds()
        least, largest = self.load.range()
        return (f"step {self.step} tokens {self.tokens / 1e6:.2f}M loss {np.mean(losses[-LOG_STEPS:]):.4f} "
                f"norm {float(self.gradient_norm):.2f} lr {self.options.peak * self.rate:.5f} "
                f"time {seconds / 60:.1f} min tok/s {self.tokens / seconds:.0f} "
                f"expert load min {least:.2f} max {largest:.2f}")


def rate_factor(step, progress):
    """Linear warm-up over steps, cosine over the clock down to RATE_FLOOR; 1 is the peak."""
    warmup = min(1.0, (step + 1) / WARMUP_STEPS)
    return warmup * (RATE_FLOOR + (1 - RATE_FLOOR) * 0.5 * (1 + math.cos(math.pi * progress)))


def train(options):
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    os.makedirs(options.out_dir, exist_ok=True)
    validation = np.load(os.path.join(options.data_dir, "valid.npy"))
    trainer, log = Trainer(options), Log(os.path.join(options.out_dir, "log.txt"))
    log(f"{sum(parameter.numel() for parameter in trainer.model.parameters())} parameters, {len(trainer.rows)} rows")
    saved_at, losses = time.time(), []
    while (progress := trainer.spent_seconds() / (options.minutes * 60)) < 1:
        losses.append(trainer.train_step(progress))
        if trainer.step % LOG_STEPS == 0:
            log(trainer.progress_line(losses))
        if time.time() - saved_at > SAVE_SECONDS:
            trainer.save()
            held_out = mean_loss(trainer.model, validation[:QUICK_VALIDATION_ROWS])
            log(f"step {trainer.step} held-out loss {held_out:.4f}")
            saved_at = time.time()
    trainer.save()
    log(f"done: step {trainer.step} tokens {trainer.tokens} held-out loss {mean_loss(trainer.model, validation):.4f} "
        f"minutes {trainer.spent_seconds() / 60:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir")
    parser.add_argument("out_dir")
    parser.add_argument("minutes", type=float, help="length of the whole schedule, time before a resume included")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--rows", type=int, default=14, help="rows per step")
    parser.add_argument("--peak", type=float, default=3e-3, help="largest learning rate")
    parser.add_argument("--copies", type=float, default=0.0, help="share of rows that repeat their beginning")
    train(parser.parse_args())
