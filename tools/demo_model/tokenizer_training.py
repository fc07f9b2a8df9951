"""Training of the byte-pair ranks."""
import collections
import heapq

from tokenizer import BYTES


def train_ranks(weight_of_piece, size):
    """The first `size` tokens (bytes) in rank order.

    weight_of_piece: pre-token piece (str) -> how much it counts. Starts from the 256 bytes and merges the heaviest
    adjacent pair again and again; of equally heavy pairs the smaller in byte order.
    """
    tokens = [bytes([byte]) for byte in BYTES]
    known = set(tokens)
    pairs = _PairCounts(weight_of_piece)
    while len(tokens) < size:
        pair = pairs.pop_heaviest()
        merged = pair[0] + pair[1]
        if merged not in known:
            known.add(merged)
            tokens.append(merged)
        pairs.merge(pair)
    return tokens


class _PairCounts:
    """Weights of adjacent token pairs over all pieces, with a heap whose outdated entries are dropped when met."""

    def __init__(self, weight_of_piece):
        self.pieces = [([bytes([byte]) for byte in piece.encode()], weight)
                       for piece, weight in weight_of_piece.items()]
        self.weight_of = collections.Counter()
        self.pieces_with = collections.defaultdict(set)
        for index, (parts, weight) in enumerate(self.pieces):
            for pair in zip(parts, parts[1:]):
                self.weight_of[pair] += weight
                self.pieces_with[pair].add(index)
        self.heap = [(-weight, pair) for pair, weight in self.weight_of.items()]
        heapq.heapify(self.heap)

    def pop_heaviest(self):
        while True:
            negative_weight, pair = heapq.heappop(self.heap)
            if -negative_weight == self.weight_of[pair]:
                return pair
            if self.weight_of[pair] > 0:
                heapq.heappush(self.heap, (-self.weight_of[pair], pair))

    def merge(self, pair):
        """Replaces the pair by its concatenation in all pieces."""
        changed = set()
        for index in self.pieces_with.pop(pair):
            parts, weight = self.pieces[index]
            for old_pair in zip(parts, parts[1:]):
                self.weight_of[old_pair] -= weight
                changed.add(old_pair)
            parts[:] = _merged(parts, pair)
            for new_pair in zip(parts, parts[1:]):
                self.weight_of[new_pair] += weight
                self.pieces_with[new_pair].add(index)
                changed.add(new_pair)
        for pair in changed:
            if self.weight_of[pair] > 0:
                heapq.heappush(self.heap, (-self.weight_of[pair], pair))


def _merged(parts, pair):
    """The parts with every occurrence of the pair joined, from left to right."""
    merged, at = [], 0
    while at < len(parts):
        length = 2 if tuple(parts[at:at + 2]) == pair else 1
        merged.append(b"".join(parts[at:at + length]))
        at += length
    return merged
