"""Lists that were made so far, kept in parts, so that making them can go on after a kill."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._errors import DataError
from limelight._interrupts import Terminated, finishing
from limelight.store.arrays import load_arrays, save_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self

    from limelight._arrays import Float32, Int32
    from limelight.store.checkpoint import Checkpoint

_MOST = 1 << 23
"""How many places are held back before they are written."""


class Kept(NamedTuple):
    """The lists of some users, in the order of the rows."""

    ids: Int32
    scores: Float32


class ListParts:
    """The lists of the first so many users, in files of their own within a checkpoint.

    Parameters
    ----------
    checkpoint
        Where they are kept.
    about
        What the lists are of. Those of anything else are refused.
    """

    def __init__(self, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        self._checkpoint = checkpoint
        self._is_open = checkpoint.load(about) is not None
        self._files = sorted(checkpoint.path.glob("part-*.safetensors")) if self._is_open else []
        self._new: list[Kept] = []
        self._written = time.monotonic()

    def stored(self) -> Iterator[Kept]:
        """Give what was kept before, part by part."""
        for file in self._files:
            arrays = load_arrays(file)
            ids, scores = arrays.get("ids"), arrays.get("scores")
            if ids is None or scores is None or ids.ndim != 2 or ids.shape != scores.shape:
                message = f"damaged lists in the checkpoint: {str(file)!r}"
                raise DataError(message, hint="delete the checkpoint to start from the beginning")
            yield Kept(ids, scores)

    @contextmanager
    def keeping(self) -> Iterator[Self]:
        """Keep lists before a signal ends the work."""
        try:
            with finishing() as self._is_asked:
                yield self
        except (KeyboardInterrupt, Terminated) as end:
            if self._checkpoint.exists:
                end.add_note("the same command with --resume goes on from here")
            raise

    def keep(self, ids: Int32, scores: Float32) -> bool:
        """Keep the lists of the next users; true if a signal waits for the end of the block."""
        self._new.append(Kept(ids, scores))
        held = sum(one.ids.size for one in self._new)
        if self._is_asked() or held >= _MOST or self._checkpoint.is_due_since(self._written):
            self._write()
        return self._is_asked()

    def _write(self) -> None:
        if not self._is_open:
            self._checkpoint.save({}, {})
            self._is_open = True
        file = self._next_file()
        ids, scores = (np.concatenate(parts) for parts in zip(*self._new, strict=True))
        save_arrays(file, {"ids": ids, "scores": scores})
        self._files.append(file)
        self._new, self._written = [], time.monotonic()

    def _next_file(self) -> Path:
        return self._checkpoint.path / f"part-{len(self._files):05d}.safetensors"
