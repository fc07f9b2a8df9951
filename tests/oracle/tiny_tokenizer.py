"""The tiny tokenizer of spec/kimi.md section 15.3: rank file and specials at their real offsets."""

import base64
import json
import os

BYTE_COUNT = 256
SPECIAL_COUNT = 256

COMMON_SPECIALS = {0: "[BOS]", 1: "[EOS]", 9: "[EOT]", 254: "[UNK]", 255: "[PAD]"}
K3_SPECIALS = {2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>", 6: "[start_header_id]",
               7: "[end_header_id]", 18: "<|media_begin|>", 19: "<|media_content|>", 20: "<|media_end|>",
               21: "<|media_pad|>", 65: "<osagent_mode>"}
LINEAR_SPECIALS = {2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 6: "<|start_header_id|>",
                   7: "<|end_header_id|>", 10: "<|im_system|>", 11: "<|tool_calls_section_begin|>",
                   12: "<|tool_calls_section_end|>", 13: "<|tool_call_begin|>", 14: "<|tool_call_argument_begin|>",
                   15: "<|tool_call_end|>", 17: "<|im_middle|>"}
PLAIN_SPECIALS = {True: {3, 4, 5}, False: {11, 12, 13, 14, 15}}

# The toy file of 12.5 first: `xyz`, and 中 and 中文 as whole pieces, cannot be reached by merges.
TOY_TOKENS = ["he", "ll", "hell", "hello", " w", "or", " wor", "ld", " world", "xyz", "中", "中文", "  ", " t",
              "th", " th"]
SPLIT_CHARACTERS = [b"\xe4\xb8", b"\xf0\x9f", b"\xc3\xa9", b"\xe6\x96"]
WORDS = ["user", "assistant", "system", "message", "role", "think", "response", "tools", "call", "argument", "index",
         "type", "key", "string", "number", "the", "and", "ing", "ion", "er", "es", "ed", "12", "123", "00",
         '="', "\n\n"]
LETTERS = "etaoinshrdlucmfwypvbgk"


def byte_order():
    """Ranks 0..255 (12.1)."""
    return [*range(33, 127), *range(161, 173), *range(174, 256), *range(0, 33), *range(127, 161), 173]


def _growing_prefixes(word):
    """A word and the prefixes by which merges reach it."""
    return [word[:length] for length in range(2, len(word) + 1)]


def _candidates():
    """Multi-byte tokens in the order of their ranks, with repetitions."""
    yield from (token.encode("utf-8") for token in TOY_TOKENS)
    yield from SPLIT_CHARACTERS
    for word in WORDS:
        yield from (prefix.encode("utf-8") for prefix in _growing_prefixes(word))
    for first in LETTERS:
        yield (" " + first).encode("utf-8")
    for first in LETTERS:
        for second in LETTERS:
            yield (first + second).encode("utf-8")


def ranks(count):
    """`count` tokens: the single bytes, then multi-byte tokens."""
    result = [bytes([byte]) for byte in byte_order()]
    extra = list(dict.fromkeys(_candidates()))
    assert count - len(result) <= len(extra)
    return result + extra[:count - len(result)]


def specials(nested, first):
    """id -> name of the named specials; unnamed slots are reserved tokens by rule (12.1)."""
    names = {**COMMON_SPECIALS, **(K3_SPECIALS if nested else LINEAR_SPECIALS)}
    return {first + offset: name for offset, name in sorted(names.items())}


def _tokenizer_config(nested, first):
    entries = {}
    for index, name in specials(nested, first).items():
        entries[str(index)] = {"content": name, "lstrip": False, "normalized": False, "rstrip": False,
                               "single_word": False, "special": index - first not in PLAIN_SPECIALS[nested]}
    return {"added_tokens_decoder": entries, "bos_token": "[BOS]", "eos_token": "[EOS]", "pad_token": "[PAD]",
            "unk_token": "[UNK]", "clean_up_tokenization_spaces": False, "tokenizer_class": "TikTokenTokenizer"}


def write(folder, nested, vocabulary):
    """Write tiktoken.model and tokenizer_config.json, ranks first and 256 specials after them."""
    count = max(BYTE_COUNT, vocabulary - SPECIAL_COUNT)
    with open(os.path.join(folder, "tiktoken.model"), "wb") as file:
        for rank, token in enumerate(ranks(count)):
            file.write(base64.b64encode(token) + b" %d\n" % rank)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(_tokenizer_config(nested, count), file, indent=1)
        file.write("\n")
