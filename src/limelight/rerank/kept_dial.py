"""A dial whose turns are kept on disk, so that a search goes on where it was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight._interrupts import Terminated, finishing
from limelight.rerank.goal import Measure
from limelight.store.arrays import load_arrays, save_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from limelight._arrays import Int32
    from limelight.rerank.dials import Dial
    from limelight.store.checkpoint import Checkpoint


class KeptDial:
    """Turns a dial, or remembers what it came to.

    A search asks for the same strengths in the same order again, so the n-th turn is the n-th file.
    The dial itself is put back to where it stood after the last of them.

    Parameters
    ----------
    dial
        What is turned.
    checkpoint
        Where turns are kept.
    about
        What they are of. Those of anything else are refused.
    """

    def __init__(self, dial: Dial, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        self._dial, self._checkpoint = dial, checkpoint
        self.whole = dial.whole
        self._places: Int32 | None = None
        self._turns = 0
        if checkpoint.load(about) is None:
            checkpoint.save({}, {})
        while self._file(self._turns).is_file():
            self._turns += 1
        self._known, self._turns = self._turns, 0

    @property
    def most(self) -> float:
        """The largest strength that makes sense."""
        return self._dial.most

    @property
    def places(self) -> Int32:
        """Everybody's list at the last strength."""
        return self._dial.places if self._places is None else self._places

    def notes(self) -> list[str]:
        """Say what a reader should know of the lists."""
        return self._dial.notes()

    def turn(self, strength: float) -> Measure:
        """Remember what a strength came to, or find out. A signal waits until that is kept."""
        self._turns += 1
        if self._turns <= self._known:
            return self._remember(strength)
        self._places = None
        try:
            with finishing():
                measure = self._dial.turn(strength)
                self._keep(strength, measure)
        except (KeyboardInterrupt, Terminated) as end:
            end.add_note("the same command with --resume goes on from here")
            raise
        return measure

    def _keep(self, strength: float, measure: Measure) -> None:
        arrays = {"strength": np.array([strength]), "measure": np.array(measure)}
        arrays |= {"places": self._dial.places}
        state = {f"state/{name}": values for name, values in self._dial.state().items()}
        save_arrays(self._file(self._turns - 1), arrays | state)

    def _remember(self, strength: float) -> Measure:
        arrays = load_arrays(self._file(self._turns - 1))
        shape = self._dial.places.shape
        if arrays.keys() < {"strength", "measure", "places"} or arrays["places"].shape != shape:
            raise _damaged(self._checkpoint.path)
        if arrays["strength"].item() != strength:
            raise _damaged(self._checkpoint.path)
        self._places = arrays["places"]
        if self._turns == self._known:
            state = {
                name.removeprefix("state/"): values
                for name, values in arrays.items()
                if name.startswith("state/")
            }
            self._dial.restore(self._places, state)
        return Measure(*arrays["measure"].tolist())

    def _file(self, number: int) -> Path:
        return self._checkpoint.path / f"turn-{number:05d}.safetensors"


def _damaged(path: Path) -> DataError:
    message = f"the checkpoint {str(path)!r} is not of this search"
    return DataError(message, hint="delete it to start from the beginning")
