"""Byte-level BPE with K3's pre-tokenisation and special tokens (specification section 12).

    python3 tokenizer.py      checks the toy vectors of section 12.5
"""
import base64
import tempfile

import regex

# Section 12.4: ordered alternatives, Unicode classes, set operations of regex.V1.
PIECE_PATTERN = regex.compile("|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
]), regex.V1)

# Ranks 0 to 255: the bytes in K3's order, printable ones first.
BYTES = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
BYTES += [byte for byte in range(256) if byte not in BYTES]

# Offset from the number of ranks -> (name, "special" flag of the configuration), section 12.2.
SPECIAL_TOKENS = {
    0: ("[BOS]", True), 1: ("[EOS]", True), 2: ("<|end_of_msg|>", True),
    3: ("<|open|>", False), 4: ("<|close|>", False), 5: ("<|sep|>", False),
    6: ("[start_header_id]", True), 7: ("[end_header_id]", True), 9: ("[EOT]", True),
    18: ("<|media_begin|>", True), 19: ("<|media_content|>", True), 20: ("<|media_end|>", True),
    21: ("<|media_pad|>", True), 65: ("<osagent_mode>", True), 254: ("[UNK]", True), 255: ("[PAD]", True),
}
PAD_OFFSET = 255
NO_RANK = 1 << 30

TOY_TOKENS = ["he", "ll", "hell", "hello", " w", "or", " wor", "ld", " world", "xyz",
              "中", "中文", "  ", " t", "th", " th"]
TOY_VECTORS = [
    ("hello world", [259, 264]), ("Hello worlds", [39, 68, 257, 78, 264, 82]), ("xyz", [265]),
    ("xyzq", [87, 88, 89, 80]), ("中文 中", [267, 220, 266]), ("   x", [268, 220, 87]), (" the", [269, 256]),
    ("shell", [82, 258]),
]


class Tokenizer:
    """Encoder and decoder of one rank file."""

    def __init__(self, path):
        self.rank_of = {}
        with open(path, "rb") as file:
            for line in file:
                token, rank = line.split()
                self.rank_of[base64.b64decode(token)] = int(rank)
        self.bytes_of = {rank: token for token, rank in self.rank_of.items()}
        self.rank_count = len(self.rank_of)
        self._known_pieces = {}
        self.end_of_text = self.rank_count + 1
        self.end_of_message = self.rank_count + 2
        self.open = self.rank_count + 3
        self.close = self.rank_count + 4
        self.separator = self.rank_count + 5
        self.pad = self.rank_count + PAD_OFFSET

    def encode(self, text):
        """Ids of a text in content mode: no special token is ever produced (section 12.3)."""
        return [token for match in PIECE_PATTERN.finditer(text) for token in self._encode_piece(match.group())]

    def decode(self, ids):
        return b"".join(map(self._token_bytes, ids)).decode("utf-8", "replace")

    def content_bytes(self, ids):
        """Length in bytes of the text of the ids; special tokens count nothing."""
        return sum(len(self.bytes_of[token]) for token in ids if token < self.rank_count)

    def _token_bytes(self, token):
        if token < self.rank_count:
            return self.bytes_of[token]
        name, _ = SPECIAL_TOKENS.get(token - self.rank_count, (f"<|reserved_token_{token}|>", True))
        return name.encode()

    def _encode_piece(self, piece):
        if piece not in self._known_pieces:
            self._known_pieces[piece] = self._merge(piece.encode())
        return self._known_pieces[piece]

    def _merge(self, piece):
        """The whole piece if it is a token, else merges of lowest rank first, leftmost on ties (section 12.5)."""
        if piece in self.rank_of:
            return [self.rank_of[piece]]
        parts = [bytes([byte]) for byte in piece]
        while len(parts) > 1:
            pairs = enumerate(zip(parts, parts[1:]))
            rank, at = min((self.rank_of.get(left + right, NO_RANK), index) for index, (left, right) in pairs)
            if rank == NO_RANK:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return [self.rank_of[part] for part in parts]


def save_ranks(tokens, path):
    """Writes a rank file: one line per token, base64 of its bytes and its rank."""
    with open(path, "wb") as file:
        for rank, token in enumerate(tokens):
            file.write(base64.b64encode(token) + b" %d\n" % rank)


def tokenizer_config(rank_count):
    """Content of tokenizer_config.json."""
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    added = {str(rank_count + offset): {"content": name, **flags, "special": special}
             for offset, (name, special) in SPECIAL_TOKENS.items()}
    return {
        "added_tokens_decoder": added,
        "additional_special_tokens": [name for name, special in SPECIAL_TOKENS.values() if special and name[0] == "<"],
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1048576,
        "tokenizer_class": "TikTokenTokenizer",
    }


def check_toy_vectors():
    tokens = [bytes([byte]) for byte in BYTES] + [token.encode() for token in TOY_TOKENS]
    with tempfile.NamedTemporaryFile() as file:
        save_ranks(tokens, file.name)
        tokenizer = Tokenizer(file.name)
    for text, expected in TOY_VECTORS:
        assert tokenizer.encode(text) == expected, (text, tokenizer.encode(text))
    print("toy vectors ok")


if __name__ == "__main__":
    check_toy_vectors()
