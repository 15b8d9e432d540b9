#!/usr/bin/env python3
"""Fails on an include in src/ that cmake/layers.txt does not allow.

Data flows one way through Millrace, and the include graph is where that rule is either true or
not. The build runs this check, so an upward include never gets as far as a review.

Usage: check_layers.py [ROOT]     ROOT is the repository; the default is the one of this script.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def read_rules(path):
    """Returns {layer: set of the layers that it may include}, in the order of the file."""
    rules = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            layer, below = line.split(":")
            rules[layer.strip()] = set(below.split())
    return rules


def layer_of(path):
    """'base/status.h' is in 'base'. A file directly in src/, as main.cc, is in no layer."""
    return path.split("/")[0] if "/" in path else None


def check_file(src, path, rules):
    """Yields one sentence for each forbidden include of one file."""
    relative = path.relative_to(src).as_posix()
    own = layer_of(relative)
    if own is None:
        return  # main.cc stands above the house and may include all of it.
    if own not in rules:
        yield f"src/{relative}:1: folder '{own}' is no layer. Add it to cmake/layers.txt."
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = match.group(1)
        target = layer_of(included)
        where = f'src/{relative}:{number}: includes "{included}"'
        if target not in rules:
            yield (f"{where}, which is not a path from src/. "
                   "Write the layer first, as in \"base/status.h\".")
        elif target != own and target not in rules[own]:
            allowed = ", ".join(sorted(rules[own])) or "nothing else"
            yield (f"{where}, but {own} may include only {allowed} (cmake/layers.txt). "
                   f"Move the shared part down to a layer that both may use, or declare an "
                   f"interface in {own} and let {target} implement it.")


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parent.parent
    rules = read_rules(root / "cmake" / "layers.txt")
    src = root / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc"))
    problems = [problem for path in files for problem in check_file(src, path, rules)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
