"""Writes the tokenizer files, the held-out set and the training rows.

    python3 make_data.py DATA_DIR MODEL_DIR REFERENCE_DIR GRIMM.txt ALICE.txt [ROW_COUNT]

DATA_DIR gets train.npy and valid.npy (uint16 [rows, 449], see rows.py), MODEL_DIR tiktoken.model and
tokenizer_config.json, REFERENCE_DIR heldout.txt and heldout_chats.json.
"""
import argparse
import collections
import functools
import json
import multiprocessing
import os
import random

import numpy as np

from books import ALICE_START, GRIMM_START, paragraphs
from chat_format import EFFORT_TEXT
from chats import SYSTEM_MESSAGES, conversation
from rows import STORY_SEPARATOR, prose_rows, synthetic_rows
from stories import make_story
from tokenizer import PIECE_PATTERN, Tokenizer, save_ranks, tokenizer_config
from tokenizer_training import train_ranks

SEED = 20261129
RANK_COUNT = 4096
PROSE_SHARE = 0.12  # of the training rows
HELD_OUT_GRIMM_PARAGRAPHS, HELD_OUT_ALICE_PARAGRAPHS = 14, 25  # the last ones of each book
HELD_OUT_STORIES, HELD_OUT_CHATS = 80, 60
VALIDATION_ROWS = 100
JOBS, PROCESSES = 16, 2

# The text of the tokenizer's training and the weight of each piece in it.
TOKENIZER_STORIES, TOKENIZER_CHATS = 15000, 5000
SYNTHETIC_WEIGHT, PROSE_WEIGHT, FRAME_WEIGHT = 2, 3, 1500
CHAT_FRAME = ["message", "user", "assistant", "system", "response", "think", "tools", "call", "argument", "tool",
              " role", " type", " name", '="', "thinking-effort"]


def tokenizer_weights(rng, prose):
    """Weight of every pre-token piece: stories, conversations, prose and the frame of the chat format."""
    weights = collections.Counter()

    def count(text, weight):
        for piece in PIECE_PATTERN.findall(text):
            weights[piece] += weight

    for _ in range(TOKENIZER_STORIES):
        count(make_story(rng)["text"], SYNTHETIC_WEIGHT)
    for _ in range(TOKENIZER_CHATS):
        for message in conversation(rng)["messages"]:
            count(message["content"] + "\n" + message.get("reasoning_content", ""), SYNTHETIC_WEIGHT)
    count("\n\n".join(prose), PROSE_WEIGHT)
    for text in CHAT_FRAME + [EFFORT_TEXT % effort for effort in ("low", "high", "max")] + SYSTEM_MESSAGES:
        count(text, FRAME_WEIGHT)
    return weights


def write_tokenizer(rng, prose, model_dir):
    os.makedirs(model_dir, exist_ok=True)
    rank_path = os.path.join(model_dir, "tiktoken.model")
    save_ranks(train_ranks(tokenizer_weights(rng, prose), RANK_COUNT), rank_path)
    with open(os.path.join(model_dir, "tokenizer_config.json"), "w") as file:
        json.dump(tokenizer_config(RANK_COUNT), file, indent=1)
    return Tokenizer(rank_path)


def write_held_out(prose, reference_dir):
    """Stories and conversations from a seed of their own, and the prose that is kept out of the training."""
    os.makedirs(reference_dir, exist_ok=True)
    rng = random.Random(SEED + 1)
    stories = [make_story(rng)["text"] for _ in range(HELD_OUT_STORIES)]
    text = STORY_SEPARATOR.join(stories + ["\n\n".join(prose)])
    with open(os.path.join(reference_dir, "heldout.txt"), "w") as file:
        file.write(text + "\n")
    chats = [conversation(rng) for _ in range(HELD_OUT_CHATS)]
    with open(os.path.join(reference_dir, "heldout_chats.json"), "w") as file:
        json.dump(chats, file, indent=1)


def training_rows(rng, prose, row_count, tokenizer):
    """uint16 [about row_count, ROW_TOKENS + 1], synthetic and prose rows in random order."""
    rows_per_job = int(row_count * (1 - PROSE_SHARE)) // JOBS
    make = functools.partial(synthetic_rows, row_count=rows_per_job, tokenizer=tokenizer)
    with multiprocessing.Pool(PROCESSES) as pool:
        parts = pool.map(make, [SEED + 100 + job for job in range(JOBS)], chunksize=1)
    print(sum(too_long for _, too_long in parts), "documents were too long")
    prose_part = prose_rows(rng, prose, int(row_count * PROSE_SHARE), tokenizer)
    rows = np.concatenate([part for part, _ in parts] + [prose_part])
    np.random.default_rng(SEED).shuffle(rows)
    return rows


def main(arguments):
    grimm, alice = paragraphs(arguments.grimm, GRIMM_START), paragraphs(arguments.alice, ALICE_START)
    held_out_prose = grimm[-HELD_OUT_GRIMM_PARAGRAPHS:] + alice[-HELD_OUT_ALICE_PARAGRAPHS:]
    prose = grimm[:-HELD_OUT_GRIMM_PARAGRAPHS] + alice[:-HELD_OUT_ALICE_PARAGRAPHS]
    rng = random.Random(SEED)
    os.makedirs(arguments.data_dir, exist_ok=True)
    tokenizer = write_tokenizer(rng, prose, arguments.model_dir)
    write_held_out(held_out_prose, arguments.reference_dir)
    validation, _ = synthetic_rows(SEED + 2, VALIDATION_ROWS, tokenizer)
    np.save(os.path.join(arguments.data_dir, "valid.npy"), validation)
    rows = training_rows(rng, prose, arguments.row_count, tokenizer)
    np.save(os.path.join(arguments.data_dir, "train.npy"), rows)
    used = int((rows != tokenizer.pad).sum())
    print(f"{len(rows)} rows, {used} tokens ({used / rows.size:.1%} filled)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data_dir", "model_dir", "reference_dir", "grimm", "alice"):
        parser.add_argument(name)
    parser.add_argument("row_count", type=int, nargs="?", default=30000)
    main(parser.parse_args())
