"""Writes split_vectors.txt: random texts cut by the published pattern itself, with Python's `regex` module, which knows
set intersection. Run it with Python 3.11 (Unicode 14, as in Debian 12's PCRE2) and `pip install regex`.

One line is one text: its pieces as hexadecimal UTF-8, separated by spaces.
"""

import os
import random
import unicodedata

import regex

UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = regex.compile("|".join([
    r"[\p{Han}]+",
    BEFORE + UPPER + "*" + LOWER + "+" + CONTRACTION,
    BEFORE + UPPER + "+" + LOWER + "*" + CONTRACTION,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
]), regex.V1)

TEXT_COUNT = 400
COMMON = list("aAbBzZéÉsSſtTrReEvVmMlLdD'''’ \t\n\r  \n12Ⅷ²中文〇々。、ーあ!?.,_-/\"(){}<|>\u0301\u0300\u0345ǅʼªⅰⒶ👍🏽\u200d\ufe0f\u00a0"
              "\u3000\u2028\u0085\x1c\x1f\u180e\u200b\u00ad\U0001F1E9")
WORDS = ["don't", "HTTPServer", "it's", " the", "中文测试", "hello", "WORLD", "12345", "camelCase", " \n ", "\r\n\r\n", "}\n///",
         "。\n\n", "〇", "'S", "'LL", "'ſ"]


def characters_by_category():
    result = {}
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category not in ("Cs", "Cn"):
            result.setdefault(category, []).append(chr(code))
    return result


def random_text(generator, by_category):
    parts = []
    for _ in range(generator.randrange(1, 30)):
        kind = generator.random()
        if kind < 0.55:
            parts.append(generator.choice(COMMON) * generator.choice((1, 1, 1, 1, 2, 3, 5)))
        elif kind < 0.75:
            parts.append(generator.choice(WORDS))
        else:
            parts.append(generator.choice(by_category[generator.choice(sorted(by_category))]))
    return "".join(parts)


def main():
    assert unicodedata.unidata_version == "14.0.0"
    generator = random.Random(20)
    by_category = characters_by_category()
    with open(os.path.join(os.path.dirname(__file__), "split_vectors.txt"), "w", encoding="ascii") as file:
        for _ in range(TEXT_COUNT):
            text = random_text(generator, by_category)
            file.write(" ".join(match.group().encode("utf-8").hex() for match in PATTERN.finditer(text)) + "\n")


main()
