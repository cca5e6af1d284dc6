"""Work that falls into pieces, each a function of files alone, so that any may be done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from limelight._base.errors import ConfigError
from limelight._base.text import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Piece = TypeVar("Piece")
Result = TypeVar("Result")
PieceIn_contra = TypeVar("PieceIn_contra", contravariant=True)
Made_co = TypeVar("Made_co", covariant=True)


class Work(Protocol[PieceIn_contra, Made_co]):
    """What is done with a piece: the same whenever and wherever it is done.

    For an executor that is parallel it is picklable, reads what it needs from files, and writes
    files whole or not at all.
    """

    @property
    def name(self) -> str:
        """What people see of it, such as "recommend"."""

    def __call__(self, piece: PieceIn_contra, /) -> Made_co:
        """Do one piece."""


class Executor(Protocol):
    """Does work piece by piece, here or elsewhere."""

    @property
    def parallel(self) -> bool:
        """Whether pieces are done at the same time: if not, all work is one piece."""

    def map(
        self, work: Work[Piece, Result], pieces: Iterable[Piece], total: int | None = None
    ) -> Iterator[Result]:
        """Do all pieces and give their results in the order of the pieces.

        Parameters
        ----------
        work
            What to do. It is sent to a worker once, however many pieces it does there.
        pieces
            Small things, such as numbers of rows or names of files. They are taken as they are
            needed.
        total
            How many there are, for a progress bar; without it there is none.
        """


class LocalExecutor:
    """Does one piece after the other in this process.

    Examples
    --------
    >>> class Double:
    ...     name = "double"
    ...
    ...     def __call__(self, piece):
    ...         return 2 * piece
    >>> list(LocalExecutor().map(Double(), [1, 2]))
    [2, 4]
    """

    parallel = False

    def map(
        self, work: Work[Piece, Result], pieces: Iterable[Piece], total: int | None = None
    ) -> Iterator[Result]:
        """Do all pieces and give their results in the order of the pieces."""
        del total
        yield from map(work, pieces)


def as_executor(executor: Executor | None) -> Executor:
    """Take an executor as it is; without one, work is done in this process.

    Examples
    --------
    >>> as_executor(None).parallel
    False
    """
    if executor is None:
        return LocalExecutor()
    if not hasattr(executor, "map") or not hasattr(executor, "parallel"):
        message = f"not an executor: {short(executor)}"
        raise ConfigError(message, hint="pass limelight.cluster.RayExecutor(), or leave it out")
    return executor
