"""List every string that a user can see, by file and line, so that one person can read them all.

python tools/strings.py              everything
python tools/strings.py cli serve    some rooms

It lists what reads like words: messages, hints, notes, titles, help of flags, docstrings of verbs,
and the texts of pages. Docstrings of other functions are left out, because the reference shows
them.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parents[1] / "src" / "limelight"
_WORDS = re.compile(r"[A-Za-z]{2,} [a-z{]")
_IN_PAGES = re.compile(r"\"([^\"\n]+)\"|`([^`\n]+)`|>([^<>\n]+)<")


def of_python(text: str, *, is_verb: bool) -> Iterator[tuple[int, str]]:
    """Find the strings of a module; those of formats show their expressions in braces."""
    tree = ast.parse(text)
    passed_over: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed_over |= {id(part) for part in node.values}
        elif isinstance(node, ast.FormattedValue):
            passed_over.add(id(node.format_spec))
        elif isinstance(node, ast.Expr) and not is_verb:
            passed_over.add(id(node.value))  # a docstring
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(map(_part, node.values))


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    return str(node.value) if isinstance(node, ast.Constant) else ""


def of_page(text: str) -> Iterator[tuple[int, str]]:
    """Find the texts of a script or a template, line by line."""
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _IN_PAGES.finditer(line):
            yield number, next(filter(None, found.groups()))


def main(rooms: list[str]) -> None:
    """Print the strings of all rooms, or of some."""
    for path in sorted(SOURCES.rglob("*")):
        place = path.relative_to(SOURCES)
        if (rooms and place.parts[0] not in rooms) or place.name.endswith(".min.js"):
            continue
        if path.suffix == ".py" and place.parts[0] != "testing":
            found = of_python(path.read_text(), is_verb=place.parts[0] == "cli")
        elif path.suffix in {".js", ".html"}:
            found = of_page(path.read_text())
        else:
            continue
        shown = {(line, " ".join(text.split())) for line, text in found if _WORDS.search(text)}
        for line, text in sorted(shown):
            print(f"{place}:{line}: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
