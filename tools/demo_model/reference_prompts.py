"""The prompts of the reference: their ids, logits, argmax and greedy continuation."""
import numpy as np

from chat_format import render
from scoring import rounded

GREEDY_TOKENS = 40


def prompts(tokenizer, held_out_text):
    """Plain text, chat without thinking, and the default chat call (thinking on, effort max)."""
    request = [{"role": "user", "content": "Tell me a story about a red kite."}]
    first_story = held_out_text[:held_out_text.index("\n\n\n")]
    question = [{"role": "user", "content": first_story + "\n\nWho is the story about?"}]
    return [
        {"name": "plain text", "text": "Once upon a time", "ids": tokenizer.encode("Once upon a time")},
        {"name": "chat, thinking off", "messages": request, "thinking": False,
         "ids": render(tokenizer, request, False, None, generate=True)},
        {"name": "chat, thinking on, effort max", "messages": question, "thinking": True, "effort": "max",
         "ids": render(tokenizer, question, True, "max", generate=True)},
    ]


def run_prompt(model, prompt, tokenizer):
    """The prompt with its results: norms and argmax at every position, logits at the middle and the last one."""
    ids = prompt["ids"]
    norms, argmax, kept_logits = [], [], {}
    model.reset()
    for position, token in enumerate(ids):
        logits = model.step(token)
        norms.append(rounded(np.linalg.norm(logits), 10))
        argmax.append(int(logits.argmax()))
        if position in (len(ids) // 2, len(ids) - 1):
            kept_logits[str(position)] = [rounded(value, 12) for value in logits]
    return {
        **prompt,
        "logit_norms": norms,
        "argmax": argmax,
        "logits": kept_logits,
        "experts_at_last_token": model.chosen_experts,
        "smallest_router_gap_in_prompt": float(model.smallest_router_gap),
        "greedy": _continue_greedily(model, logits, tokenizer),
    }


def _continue_greedily(model, logits, tokenizer):
    ids, margins = [], []
    for _ in range(GREEDY_TOKENS):
        first, second = np.argsort(-logits, kind="stable")[:2]
        ids.append(int(first))
        margins.append(rounded(logits[first] - logits[second], 6))
        logits = model.step(int(first))
    return {
        "ids": ids,
        "top1_margins": margins,
        "smallest_margin": min(margins),
        "smallest_router_gap": float(model.smallest_router_gap),
        "text": tokenizer.decode(ids),
        "note": f"stop ids are not obeyed: always {GREEDY_TOKENS} tokens",
    }
