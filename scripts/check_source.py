#!/usr/bin/env python3
"""Refuses what the compilers and clang-tidy let through, though the rules of CONTRIBUTING.md do not.

- Files over their limit: 800 lines (.cc), 400 lines (.h). A long table may be longer with a reason: a line "// over the limit: <reason>".
- Printing, ending the process, throwing or reading the environment below src/cli.
- Detached threads.
- TRY after another element inside braces: the compilers forget to destroy what stands there already.

Usage: check_source.py [folder of the project]
"""

import pathlib
import re
import sys

LINES_MAX = {".cc": 800, ".h": 400, ".hpp": 400}
PRINTING_LAYERS = {"cli", "tools"}
# ENSURE prints the bug and ends the process: the one place for both.
PRINTING_FILES = {"src/base/ensure.cc"}
REASON = re.compile(r"//.*over the limit: \S+")

FORBIDDEN = [
    (re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w:.>])(?:std::)?(?:printf|puts|putchar|fprintf|perror)\s*\("),
     "prints below cli"),
    (re.compile(r"(?<![\w.>])(?:std::|::)?_?(?:exit|_Exit|quick_exit|abort|terminate)\s*\("), "ends the process below cli"),
    (re.compile(r"\bthrow\b"), "throws"),
    (re.compile(r"\b(?:secure_)?getenv\s*\("), "reads the environment below cli"),
]
DETACH = re.compile(r"\.detach\s*\(\)")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def blank(text):
    """The text with comments and literals blanked, lines and columns kept."""
    return COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def opens_a_block(before):
    """Whether a brace after this text opens a block of statements, not an initialiser."""
    before = before.rstrip()
    if not before or before[-1] in ");{}:":
        return True
    return bool(re.search(r"\b(else|do|try|const|noexcept|override|final|mutable)$|->\s*[\w:<>,\s*&]+$|\]$", before))


def has_earlier_element(inside):
    """Whether this text, from an initialiser's brace to a TRY, holds a finished element."""
    depth = 0
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            return True
    return False


def lines_of_unsafe_tries(blanked):
    """Line numbers of each TRY that follows another element inside the braces of an initialiser."""
    braces = []  # (position, whether a block)
    position = 0
    for match in re.finditer(r"\bTRY\s*\(|[{}]", blanked):
        position = match.start()
        if match.group() == "{":
            braces.append((position, opens_a_block(blanked[max(0, position - 200):position])))
        elif match.group() == "}":
            if braces:
                braces.pop()
        else:
            for start, is_block in reversed(braces):
                if is_block:
                    break
                if has_earlier_element(blanked[start + 1:position]):
                    yield blanked.count("\n", 0, position) + 1
                    break


def check_limits(name, suffix, text):
    line_count = text.count("\n")
    if line_count > LINES_MAX[suffix] and not REASON.search(text):
        yield f"{name}: {line_count} lines; at most {LINES_MAX[suffix]}"


def check_calls(name, layer, blanked):
    for pattern, fault in FORBIDDEN:
        if layer in PRINTING_LAYERS or name in PRINTING_FILES:
            continue
        for match in pattern.finditer(blanked):
            yield f"{name}:{blanked.count(chr(10), 0, match.start()) + 1}: {match.group().strip()} {fault}"
    for match in DETACH.finditer(blanked):
        yield f"{name}:{blanked.count(chr(10), 0, match.start()) + 1}: threads are joined, not detached"


def check_file(root, path):
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    yield from check_limits(name, path.suffix, text)
    blanked = blank(text)
    parts = path.relative_to(root).parts
    if parts[0] == "src":
        yield from check_calls(name, parts[1], blanked)
    for number in lines_of_unsafe_tries(blanked):
        yield f"{name}:{number}: TRY after another element inside braces; name the value first (base/result.h says why)"


def check_project(root):
    """All faults of the project, as lines of text."""
    root = pathlib.Path(root)
    faults = []
    for folder in ("src", "include", "tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in LINES_MAX:
                faults.extend(check_file(root, path))
    return faults


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    faults = check_project(root)
    for fault in faults:
        print(fault)
    print(f"source rules: {len(faults)} faults" if faults else "source rules: fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
