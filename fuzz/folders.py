"""Folders in which one file was replaced by the bytes of the fuzzer.

An input is a byte for the folder, a byte for the file, and what this file holds from now on.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import atheris

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_WILD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 3, 10**9, 2**31, 2**63, -(10**30), 1.5, float("nan"), float("inf"),
    "", "x", "<script>", "\ud800", [], {}, [0], [[1]], {"a": 1}, "F64", "I32", "BOOL", "F8_E4M3",
)  # fmt: skip


class Folders:
    """Sound folders, each with its files by name."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [sorted(p for p in path.rglob("*") if p.is_file()) for path in paths]
        self._sound = {file: file.read_bytes() for files in self._files for file in files}
        self._paths = paths

    def replace(self, data: bytes) -> tuple[Path, Path]:
        """Put the bytes of an input where it says; return the folder and the file."""
        which, name = (data[at] if len(data) > at else 0 for at in range(2))
        path, files = self._paths[which % len(self._paths)], self._files[which % len(self._paths)]
        file = files[name % len(files)]
        file.write_bytes(data[2:])
        return path, file

    def restore(self, file: Path) -> None:
        """Put back what was in a file."""
        file.write_bytes(self._sound[file])

    def restore_all(self, path: Path) -> None:
        """Put back all files of a folder, and delete those that have come since."""
        for file in [file for file in path.rglob("*") if file.is_file()]:
            if file not in self._sound:
                file.unlink()
        for file in self._files[self._paths.index(path)]:
            file.write_bytes(self._sound[file])

    def seeds(self) -> Iterator[tuple[str, bytes]]:
        """Give every file as an input, with a name for it."""
        for which, files in enumerate(self._files):
            for name, file in enumerate(files):
                yield (
                    f"{self._paths[which].name}-{file.name}",
                    bytes([which, name]) + self._sound[file],
                )


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Change a JSON file or the head of a safetensors file in its structure, else some bytes."""
    rng = random.Random(seed)
    head, content = data[:2], data[2:]
    if rng.random() < 0.01:
        return (head + b"[" * rng.randrange(max_size))[:max_size]
    if rng.random() < 0.5:
        for begin, cut in ((0, len(content)), (8, 8 + int.from_bytes(content[:8], "little"))):
            try:
                tree = json.loads(content[begin:cut])
            except (ValueError, RecursionError):
                continue
            text = json.dumps(changed(tree, rng)).encode()
            frame = len(text).to_bytes(8, "little") if begin else b""
            return (head + frame + text + content[cut:])[:max_size]
    return atheris.Mutate(data, max_size)


def changed(tree: Any, rng: random.Random) -> Any:
    """Replace, drop or double one value somewhere in a tree."""
    if isinstance(tree, dict | list) and tree and rng.random() < 0.85:
        tree = tree.copy()
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        if rng.random() < 0.1:
            del tree[key]
        elif rng.random() < 0.1:
            other = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
            tree[key] = tree[other]
        else:
            tree[key] = changed(tree[key], rng)
        return tree
    if isinstance(tree, int | float) and rng.random() < 0.5:
        return tree + rng.choice((-1, 1, 0.5, 10))
    return rng.choice(_WILD)
