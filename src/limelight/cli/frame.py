"""``--resume``: where commands keep how far they have come.

``--executor``: where the work of a command is done.

Saying what a command takes of the memory before it takes it, and refusing what does not fit.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from limelight._base.errors import ConfigError, DataError, LimelightError
from limelight._base.memory import require, resident, size
from limelight.cli.output import note
from limelight.store.checkpoint import EVERY, Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from limelight._base.executor import Pieces


ENDING = ".checkpoint"


def checkpoint_of(output: Path, *, resume: bool, every: float | None = None) -> Checkpoint:
    """Return the checkpoint beside an output; what is not to be taken up is removed.

    Parameters
    ----------
    output
        What the command writes in the end.
    resume
        Whether to go on from it.
    every
        Seconds between two saves; None leaves it to the library.
    """
    from limelight._base.settings import check_number

    seconds = EVERY if every is None else every
    check_number("--checkpoint-every", seconds)
    target = output.resolve()
    kept = Checkpoint(target.with_name(target.name + ENDING), seconds)
    if not resume:
        kept.remove()
    elif not kept.exists:
        say_nothing_to_resume()
    return kept


def say_nothing_to_resume() -> None:
    """Tell who gave --resume that it has no effect."""
    note("There is nothing to resume: starting from the beginning.")


@contextmanager
def until_done(kept: Checkpoint) -> Iterator[None]:
    """Delete a checkpoint once the work is done, or has failed for good.

    A disk that was full may be emptied, and a killed process started again: then it stays.
    """
    try:
        yield
    except LimelightError as error:
        if not isinstance(error.__cause__, OSError):
            kept.remove()
        raise
    kept.remove()


class Where(StrEnum):
    """Where work can be done."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class Executor:
    """Where the work of a command is done, and by how many."""

    panel: ClassVar[str] = "Cluster"
    executor: Annotated[
        Where,
        typer.Option(
            metavar="local|ray",
            help="ray: share the work among the workers of a Ray cluster, all of which must see "
            "the same files.",
        ),
    ] = Where.local
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a Ray cluster; auto: the one that this machine belongs to. Without it, the "
            "one in RAY_ADDRESS or, if there is none, this machine alone.",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many pieces are worked on at once, each by as many threads as --threads "
            "says, or by one; if not given, as many as there are cores for.",
        ),
    ] = None

    def check(self) -> bool:
        """Tell whether work is to be cut into pieces; refuse flags that would have no effect."""
        if self.executor is Where.ray:
            return True
        for flag, value in (("--address", self.address), ("--workers", self.workers)):
            if value is not None:
                message = f"{flag} is for a cluster: {value}"
                raise ConfigError(message, hint="add --executor ray")
        return False

    @contextmanager
    def pieces(self, threads: int | None = None) -> Iterator[Pieces]:
        """Join the cluster for as long as the block runs."""
        from limelight.cluster.ray.executor import RayPieces

        with RayPieces(self.address, self.workers, threads or 1) as pieces:
            yield pieces


def announce(what: str, needed: int | None, *, hint: str) -> None:
    """Print how much memory the process will hold at the peak; refuse where there is less.

    Parameters
    ----------
    what
        What takes it, such as "reading".
    needed
        Bytes, all that the process holds included; None where nobody knows.
    hint
        What would fit.
    """
    if needed is None:
        return
    most = require(needed, what, hint=hint)
    of = "" if most is None else f" (of {size(most)})"
    note(f"{what} takes about {size(needed)} of memory{of}")


def with_held(look: Callable[[], int | None]) -> int | None:
    """Add what a look at files says to what the process held before it.

    Parameters
    ----------
    look
        Returns bytes. Where it cannot read a file the answer is None: who needs the file says why.
    """
    import pyarrow as pa

    held = resident()
    try:
        needed = look()
    except (DataError, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None
    pa.default_memory_pool().release_unused()  # what looking left behind
    return None if needed is None else held + needed
