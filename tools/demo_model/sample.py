"""Generates text with the training graph from an exported model (the whole prefix is recomputed for every token).

    python3 sample.py MODEL_DIR [TEMPERATURE ...]
"""
import os
import sys

import torch

from chat_format import render
from import_model import import_model
from tokenizer import Tokenizer

STORY_START = "Once upon a time"
STORY_TOKENS_MAX, ANSWER_TOKENS_MAX = 260, 300
# (question, thinking, effort)
QUESTIONS = [
    ("Tell me a story about a red kite.", False, None),
    ("Tell me a story about a brave mouse.", True, "max"),
    ("What does a cow say?", False, None),
    ("Hello!", True, "low"),
]


@torch.no_grad()
def generate(model, prompt_ids, count_max, stop_ids, temperature=0.0, seed=0):
    """At most count_max new ids, the stop id included. Temperature 0 is greedy."""
    generator = torch.Generator().manual_seed(seed)
    ids = list(prompt_ids)
    while len(ids) - len(prompt_ids) < count_max:
        logits = model.hidden(torch.tensor([ids]), rounded=False)[-1] @ model.weights["head"].T
        if temperature == 0:
            token = int(logits.argmax())
        else:
            token = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator))
        ids.append(token)
        if token in stop_ids:
            break
    return ids[len(prompt_ids):]


def main(folder, temperatures):
    torch.set_num_threads(1)
    model, tokenizer = import_model(folder), Tokenizer(os.path.join(folder, "tiktoken.model"))
    stop_ids = (tokenizer.end_of_text, tokenizer.end_of_message)
    for temperature in temperatures:
        print(f"--- temperature {temperature}: {STORY_START}")
        ids = generate(model, tokenizer.encode(STORY_START), STORY_TOKENS_MAX, stop_ids, temperature, seed=1)
        print(STORY_START + tokenizer.decode(ids))
        for question, thinking, effort in QUESTIONS:
            messages = [{"role": "user", "content": question}]
            prompt_ids = render(tokenizer, messages, thinking, effort, generate=True)
            print(f"--- temperature {temperature}, thinking {thinking} {effort}: {question}")
            print(tokenizer.decode(generate(model, prompt_ids, ANSWER_TOKENS_MAX, stop_ids, temperature, seed=2)))


if __name__ == "__main__":
    main(sys.argv[1], [float(value) for value in sys.argv[2:]] or [0.0, 0.7])
