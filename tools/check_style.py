#!/usr/bin/env python3
"""Fails on what our style forbids and a program can see: sizes, names, forgotten notes.

clang-format and clang-tidy see the rest. A rule that a program checks is one less to remember and
to argue about in a review.

Usage: check_style.py [ROOT]     ROOT is the repository; the default is the one of this script.
"""

import pathlib
import re
import sys

COLUMNS_MAX = 100
LINES_MAX = {".cc": 600, ".h": 400, ".py": 400}
FUNCTION_LINES_MAX = 70
FOLDERS = ("src", "tests", "bench", "fuzz", "tools", "python")

# Names that say nothing, so that everything ends up in them.
VAGUE_NAME = re.compile(r"(^|_)(utils?|common|helpers?|managers?|impl)(_|$)")
NOTE = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\([a-z0-9_-]+\):)")

# What the brace matcher must not look into. Raw strings come first: they may hold all the others.
OPAQUE = re.compile(
    r'R"([^()\s]*)\(.*?\)\1"'
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"^(inline\s+)?(namespace|extern)\b|\b(class|struct|union|enum)\b[^()]*$")
FUNCTION_NAME = re.compile(r"([~\w:]+|operator\s*\S+)\s*\(")


def without_opaque(text):
    """The same text with strings, comments and directives blanked; line numbers stay."""
    return OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def long_functions(text):
    """Yields (line, name, length) of each function body above the limit.

    This is brace matching, not parsing: a body opens where a '{' follows something with
    parentheses, directly inside namespaces and classes. Lambdas count as part of their function.
    """
    open_blocks = []  # (is_scope, first line of the head, name) from the outside in
    head, head_line, line = "", 1, 1
    for character in without_opaque(text):
        if character == "\n":
            line += 1
        if character == "{":
            is_scope = bool(SCOPE.search(head.strip()))
            name = FUNCTION_NAME.search(head)
            open_blocks.append((is_scope, head_line, name.group(1) if name else None))
        elif character == "}" and open_blocks:
            is_scope, start, name = open_blocks.pop()
            outermost = all(scope for scope, _, _ in open_blocks)
            length = line - start + 1
            if not is_scope and name and outermost and length > FUNCTION_LINES_MAX:
                yield start, name, length
        if character in "{};":
            head = ""
        elif head or not character.isspace():
            if not head:
                head_line = line
            head += character


def check_name(relative):
    for part in relative.parts:
        if VAGUE_NAME.search(part.split(".")[0].lower()):
            yield f"{relative}:1: '{part}' says nothing. Name the thing that it holds or does."


def check_text(relative, text):
    lines = text.splitlines()
    limit = LINES_MAX.get(relative.suffix)
    if limit and len(lines) > limit:
        yield (f"{relative}:{limit}: {len(lines)} lines, the most is {limit}. "
               "Split the file by what its parts do.")
    for number, line in enumerate(lines, start=1):
        if len(line) > COLUMNS_MAX:
            yield f"{relative}:{number}: {len(line)} columns, the most is {COLUMNS_MAX}."
        if NOTE.search(line) and relative.name not in ("check_style.py", "check_style_test.py"):
            yield f"{relative}:{number}: a note without an owner. Do it, or write TODO(name): why."
    if relative.suffix == ".h" and "#pragma once" not in lines:
        yield f"{relative}:1: a header without '#pragma once'."
    if relative.suffix in (".h", ".cc"):
        for start, name, length in long_functions(text):
            yield (f"{relative}:{start}: {name} has {length} lines, the most is "
                   f"{FUNCTION_LINES_MAX}. A function fits a screen; take a step out of it.")


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parent.parent
    problems = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.is_dir() or "__pycache__" in relative.parts or "corpus" in relative.parts:
                continue
            problems += check_name(relative)
            if path.suffix in LINES_MAX:
                problems += check_text(relative, path.read_text(errors="replace"))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
