"""Writes a named configuration as a checkpoint folder: python3 tests/oracle/write_checkpoint.py NAME OUT."""

import argparse
import sys

sys.dont_write_bytecode = True

from configurations import CONFIGS, EXPERT_FORMATS
from generator import write_checkpoint


def arguments():
    """The command line; names are those of the vectors."""
    parser = argparse.ArgumentParser(description="write a named configuration as a checkpoint folder")
    parser.add_argument("name", choices=list(CONFIGS), metavar="NAME", help=", ".join(CONFIGS))
    parser.add_argument("out", metavar="OUT", help="folder, made if absent")
    parser.add_argument("--shards", type=int, metavar="N", help="N files of nearly equal tensor count")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="random tensor order, data at odd offsets")
    parser.add_argument("--tokenizer", action="store_true", default=None,
                        help="write the tokenizer also where its 512 ids exceed the vocabulary")
    return parser.parse_args()


def main():
    """Write the folder."""
    wanted = arguments()
    write_checkpoint(CONFIGS[wanted.name], wanted.out, shards=wanted.shards, shuffle_seed=wanted.shuffle,
                     expert_format=EXPERT_FORMATS.get(wanted.name), tokenizer=wanted.tokenizer)


if __name__ == "__main__":
    main()
