"""Training rows: documents as token ids, packed into rows of equal length."""
import random

import numpy as np

from chat_format import render
from chats import conversation
from stories import make_story

ROW_TOKENS = 448  # predictions per row; a row holds one token more
PLAIN_SHARE = 0.52  # of the documents; the others are conversations
SECOND_STORY_SHARE = 0.15
STORY_SEPARATOR = "\n\n\n"
POOL_DOCUMENTS = 400  # choice for the packing
FILLER_TOKENS_MIN = 12  # a smaller gap at the end of a row is padded


def document(rng, tokenizer):
    """One synthetic document as token ids: one or two stories, or a conversation."""
    if rng.random() < PLAIN_SHARE:
        return tokenizer.encode(_plain_text(rng)) + [tokenizer.end_of_text]
    chat = conversation(rng)
    return render(tokenizer, chat["messages"], chat["thinking"], chat["effort"])


def _plain_text(rng):
    text = make_story(rng)["text"]
    if rng.random() < SECOND_STORY_SHARE:
        text += STORY_SEPARATOR + make_story(rng)["text"]
    return text


def synthetic_rows(seed, row_count, tokenizer):
    """(uint16 [row_count, ROW_TOKENS + 1], number of documents that were too long for a row).

    Best-fit packing: every row starts with a document drawn at random and goes on with the longest that fit. The last
    gap takes the beginning of a story, or padding, which is never predicted.
    """
    rng = random.Random(seed)
    rows = np.full((row_count, ROW_TOKENS + 1), tokenizer.pad, np.uint16)
    pool, too_long_count = [], 0
    for row in rows:
        while len(pool) < POOL_DOCUMENTS:
            ids = document(rng, tokenizer)
            if len(ids) <= ROW_TOKENS + 1:
                pool.append(ids)
            else:
                too_long_count += 1
        ids = _pack(rng, pool)
        room = ROW_TOKENS + 1 - len(ids)
        if room >= FILLER_TOKENS_MIN:
            ids += tokenizer.encode(make_story(rng)["text"])[:room]
        row[:len(ids)] = ids
    return rows, too_long_count


def _pack(rng, pool):
    """Moves documents from the pool into one row of at most ROW_TOKENS + 1 ids."""
    ids = []
    while True:
        fitting = [document_ids for document_ids in pool if len(ids) + len(document_ids) <= ROW_TOKENS + 1]
        if not fitting:
            return ids
        chosen = max(fitting, key=len) if ids else fitting[rng.randrange(len(fitting))]
        pool.remove(chosen)
        ids += chosen


def prose_rows(rng, paragraphs, row_count, tokenizer):
    """uint16 [row_count, ROW_TOKENS + 1] of continuous prose; each row starts at a random paragraph."""
    encoded = [tokenizer.encode(paragraph + "\n\n") for paragraph in paragraphs]
    rows = []
    while len(rows) < row_count:
        index, row = rng.randrange(len(encoded)), []
        while len(row) < ROW_TOKENS + 1 and index < len(encoded):
            row += encoded[index]
            index += 1
        if len(row) > ROW_TOKENS:
            rows.append(row[:ROW_TOKENS + 1])
    return np.array(rows, np.uint16)
