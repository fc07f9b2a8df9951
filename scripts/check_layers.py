#!/usr/bin/env python3
"""Refuses includes that the layers do not allow.

The layer(...) lines of CMakeLists.txt are the only list. A file of src/<layer>/ may include its own layer, the layers
after MAY_USE, the third-party packages after LIBRARIES, and system headers. The public header (headrace/...) belongs
to the API: the layers above it and the API itself include it, nothing below does.

Usage: check_layers.py [folder of the project]
"""

import pathlib
import re
import sys
from dataclasses import dataclass

LAYER_LINE = re.compile(r"^\s*layer\(\s*(\w+)\s+MAY_USE\b([\w\s]*?)(?:\bLIBRARIES\b([^)]*))?\)", re.MULTILINE)
INCLUDE_LINE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCE_SUFFIXES = {".cc", ".h", ".c", ".hpp"}
PUBLIC_FOLDER = "headrace"
LAYERS_OF_THE_PUBLIC_HEADER = {"api", "cli", "server", "tools"}

# First part of an include of a third-party header, and the part of its CMake target that names the package.
PACKAGES = {"fmt": "fmt::fmt", "CLI": "CLI11", "nlohmann": "nlohmann_json", "pcre2.h": "PCRE2", "xxhash.h": "XXHASH",
            "liburing.h": "URING", "histedit.h": "EDIT"}


@dataclass(frozen=True)
class Layer:
    may_use: frozenset
    libraries: str


def read_layers(cmake_text):
    """The layers that CMakeLists.txt declares, by name."""
    without_comments = re.sub(r"#.*", "", cmake_text)
    return {name: Layer(frozenset(uses.split()), libraries or "")
            for name, uses, libraries in LAYER_LINE.findall(without_comments)}


def includes_of(text):
    """(line number, is quoted, path) of every include directive."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE_LINE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def fault_of_include(layers, layer_name, is_quoted, path, is_present):
    """Why a file of the layer may not include the path; None when it may. is_present tells whether src has a file."""
    parts = path.split("/")
    if ".." in parts or "." in parts:
        return "is relative; write it from src/"
    if parts[0] == PUBLIC_FOLDER:
        return None if layer_name in LAYERS_OF_THE_PUBLIC_HEADER else "is the public header, which nothing below uses"
    layer = layers[layer_name]
    if not is_quoted:
        package = PACKAGES.get(parts[0])
        if package and package not in layer.libraries:
            return f"is of a package that the layer line of {layer_name} does not list"
        return None
    if parts[0] not in layers:
        return "is in quotes, but begins with no layer of the project"
    if parts[0] != layer_name and parts[0] not in layer.may_use:
        return f"is not allowed: {layer_name} may use {', '.join(sorted(layer.may_use)) or 'no other layer'}"
    return None if is_present(path) else "does not exist"


def has_guard(text, is_public):
    """Whether a header guards itself; the public C header may use the older way."""
    return "#pragma once" in text or (is_public and re.search(r"#ifndef \w+\n#define \w+", text))


def check_sources(root, layers):
    sources = root / "src"
    for path in sorted(sources.rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        name = path.relative_to(root)
        layer_name = path.relative_to(sources).parts[0]
        if layer_name not in layers:
            yield f"{name}: {layer_name} has no layer(...) line in CMakeLists.txt"
            continue
        text = path.read_text(encoding="utf-8")
        for number, is_quoted, included in includes_of(text):
            fault = fault_of_include(layers, layer_name, is_quoted, included, lambda p: (sources / p).is_file())
            if fault:
                yield f"{name}:{number}: {included} {fault}"
        if path.suffix == ".h" and not has_guard(text, is_public=False):
            yield f"{name}: #pragma once is missing"


def check_elsewhere(root):
    """The public header stands alone; tests and benchmarks include anything, but never by a relative path."""
    for folder in ("include", "tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES:
                continue
            name = path.relative_to(root)
            text = path.read_text(encoding="utf-8")
            for number, is_quoted, included in includes_of(text):
                if ".." in included.split("/"):
                    yield f"{name}:{number}: {included} is relative"
                if folder == "include" and is_quoted and not included.startswith(PUBLIC_FOLDER + "/"):
                    yield f"{name}:{number}: {included}: a public header includes public and system headers only"
            if path.suffix in {".h", ".hpp"} and not has_guard(text, is_public=folder == "include"):
                yield f"{name}: #pragma once is missing"


def check_layers_themselves(layers):
    """Arrows point to layers that stand above, which also rules out circles."""
    seen = set()
    for name, layer in layers.items():
        for used in sorted(layer.may_use - seen):
            yield f"CMakeLists.txt: layer {name} may use {used}, which is not declared before it"
        seen.add(name)


def check_project(root):
    """All faults of the project, as lines of text."""
    root = pathlib.Path(root)
    layers = read_layers((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not layers:
        return ["CMakeLists.txt: no layer(...) lines"]
    return [*check_layers_themselves(layers), *check_sources(root, layers), *check_elsewhere(root)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    faults = check_project(root)
    for fault in faults:
        print(fault)
    print(f"layers: {len(faults)} faults" if faults else "layers: fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
