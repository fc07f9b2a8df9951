"""Cleans two public-domain books into paragraphs: header, licence, contents, titles and verse layout are removed.

The books are plain-text files of the GITenberg repositories: 2591.txt of Grimms-Fairy-Tales_2591 and 11.txt of
Alice-s-Adventures-in-Wonderland_11.
"""
import re

GRIMM_START = "\n\nA certain king had"
ALICE_START = "\n\nAlice was beginning"
LAST_LINE = re.compile(r"\n(\*\*\*\*\*|\*\*\* ?END|\s+THE END|End of (the )?Project)")
HEADING = re.compile(r"(CHAPTER|[IVX]+\.|\d+\.|FIRST|SECOND) ")
CHARACTERS_MIN = 20


def paragraphs(path, start):
    """Paragraphs (str, one line each) of the book from the text `start` to the end mark."""
    with open(path, encoding="ascii", errors="ignore") as file:
        text = file.read().replace("\r", "")
    text = text[text.index(start):]
    text = text[:LAST_LINE.search(text).start()]
    blocks = [block for block in re.split(r"\n\s*\n", text) if not _is_layout(block)]
    return [prose for prose in map(_one_line, blocks) if not _is_heading(prose)]


def _is_layout(block):
    """Verse is indented; asterisks and brackets mark breaks and pictures."""
    return block.startswith("  ") or "*" in block or "[" in block or "Gutenberg" in block


def _one_line(block):
    return " ".join(block.split()).replace("_", "").replace("--", " - ")


def _is_heading(prose):
    return prose.isupper() or HEADING.match(prose) or len(prose) < CHARACTERS_MIN
