"""Computes reference.json and first_windows.json from the exported files with the float64 model.

    OMP_NUM_THREADS=1 python3 reference.py MODEL_DIR REFERENCE_DIR [CHECKPOINT.pt]

REFERENCE_DIR holds heldout.txt and heldout_chats.json and gets the results. The float32 training graph is compared as
well; with the checkpoint, the unrounded training weights are measured too. About four minutes with two processes.
"""
import json
import multiprocessing
import os
import sys

from chat_format import render
from float32_comparison import compare
from float64_model import Float64Model
from reference_prompts import prompts, run_prompt
from routing_statistics import routing_statistics
from scoring import CONTEXT_TOKENS, STRIDE_TOKENS, rounded, score, summary, windows
from tokenizer import Tokenizer

PROCESSES = 2
FIRST_WINDOWS = 4
SEPARATOR = "\n\n\n"
ABOUT = ("Float64 reference computed from the exported files by tools/demo_model/float64_model.py. Positions and "
         "layers are 0-based. Token ids are for models/demo/tiktoken.model.")
WINDOWS_PROTOCOL = (
    "heldout.txt encoded as one string in content mode (no special tokens), cut into consecutive windows of "
    f"{CONTEXT_TOKENS} tokens, stride {STRIDE_TOKENS} (the last is shorter); each window starts from an empty state; "
    "every token of a window but its first is scored, given the tokens before it in the window; bytes are those of the "
    "scored tokens")
STORIES_PROTOCOL = (
    "each story of heldout.txt (the parts before the last, split at three newlines) encoded alone in content mode, "
    "from an empty state; every token but the first is scored")
CHATS_PROTOCOL = (
    "each conversation of heldout_chats.json rendered in K3's format with its thinking and effort flags (no generation "
    "prompt), from an empty state; every id but the first is scored, structure included; special ids count no bytes")
FIRST_WINDOWS_ABOUT = ("The first windows of the windows protocol of reference.json, with their token ids and the "
                       "float64 sum of the negative log likelihoods in nats.")


class HeldOut:
    """The held-out text and conversations as token ids."""

    def __init__(self, folder, tokenizer):
        with open(os.path.join(folder, "heldout.txt")) as file:
            self.text = file.read()
        with open(os.path.join(folder, "heldout_chats.json")) as file:
            chats = json.load(file)
        self.ids = tokenizer.encode(self.text)
        self.windows = windows(self.ids)
        self.stories = [tokenizer.encode(story) for story in self.text.split(SEPARATOR)[:-1]]
        self.chats = [render(tokenizer, chat["messages"], chat["thinking"], chat["effort"]) for chat in chats]
        self.prose_start = self.text.rindex(SEPARATOR) + len(SEPARATOR)  # the text is ASCII: characters are bytes


class Scorer:
    """Scores sequences in worker processes, each with its own copy of the model."""

    def __init__(self, model_dir):
        self.pool = multiprocessing.Pool(PROCESSES, _load_worker_model, (model_dir,))

    def __call__(self, sequences):
        """[(losses, chosen experts, smallest router gap)] per sequence."""
        return self.pool.map(_score_in_worker, sequences, 4)


def _load_worker_model(model_dir):
    global worker_model  # one per process; a pool has no other place for it
    worker_model = Float64Model(model_dir)


def _score_in_worker(ids):
    losses, chosen_experts = score(worker_model, ids)
    return losses, chosen_experts, worker_model.smallest_router_gap


def summarise(tokenizer, sequences, results):
    losses = [loss for sequence_losses, _, _ in results for loss in sequence_losses]
    return summary(losses, sum(tokenizer.content_bytes(ids[1:]) for ids in sequences))


def windows_entry(tokenizer, held_out, results):
    """Totals of the windows, and apart for those that start in the stories and in the prose."""
    story_count, position = 0, 0
    for ids in held_out.windows:
        story_count += position < held_out.prose_start
        position += tokenizer.content_bytes(ids)
    part = lambda first, end: summarise(tokenizer, held_out.windows[first:end], results[first:end])
    return {
        "protocol": WINDOWS_PROTOCOL,
        "context": CONTEXT_TOKENS,
        "stride": STRIDE_TOKENS,
        "tokens": len(held_out.ids),
        "windows": len(held_out.windows),
        "whole_file": part(0, None),
        "windows_that_start_in_the_stories": part(0, story_count),
        "windows_that_start_in_the_prose": part(story_count, None),
    }


def documents_entry(tokenizer, protocol, sequences, results):
    return {"protocol": protocol, "documents": len(sequences), **summarise(tokenizer, sequences, results)}


def first_windows(held_out, results):
    """Content of first_windows.json."""
    entries = [{"ids": ids, "nll_nats": rounded(sum(losses), 12)}
               for ids, (losses, _, _) in zip(held_out.windows[:FIRST_WINDOWS], results)]
    return {"about": FIRST_WINDOWS_ABOUT, "windows": entries}


def write_json(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file, separators=(",", ":"))


def main(model_dir, reference_dir, checkpoint_path=None):
    tokenizer = Tokenizer(os.path.join(model_dir, "tiktoken.model"))
    held_out, model, scorer = HeldOut(reference_dir, tokenizer), Float64Model(model_dir), Scorer(model_dir)
    prompt_results = [run_prompt(model, prompt, tokenizer) for prompt in prompts(tokenizer, held_out.text)]
    of_windows, of_stories, of_chats = map(scorer, (held_out.windows, held_out.stories, held_out.chats))
    smallest_gap = min(gap for _, _, gap in of_windows)
    write_json(reference_dir, "first_windows.json", first_windows(held_out, of_windows))
    write_json(reference_dir, "reference.json", {
        "about": ABOUT,
        "prompts": prompt_results,
        "perplexity": {
            "windows": windows_entry(tokenizer, held_out, of_windows),
            "stories": documents_entry(tokenizer, STORIES_PROTOCOL, held_out.stories, of_stories),
            "chats": documents_entry(tokenizer, CHATS_PROTOCOL, held_out.chats, of_chats),
        },
        "routing": routing_statistics(model.config, [route for _, route, _ in of_windows], smallest_gap),
        "training_graph_float32": compare(model_dir, checkpoint_path, held_out.windows, prompt_results),
    })


if __name__ == "__main__":
    main(*sys.argv[1:4])
