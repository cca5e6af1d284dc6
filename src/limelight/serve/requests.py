"""What is asked of a service, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from limelight._base.errors import DataError
from limelight.data.candidates.candidates import LARGEST_SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Int32

Id: TypeAlias = "str | int"
"""Of a user or an item, as the training data has it; 7 and '7' are the same."""
Basis: TypeAlias = Literal["user", "history", "everybody", "candidates"]
"""What scores come from: her vector, her history, what everybody likes, or the request itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asks for a list, and of what.

    Examples
    --------
    >>> Request(user=42, k=5, exclude=[7]).k
    5
    """

    user: Id | None = None
    history: Sequence[Id] | None = None
    """Items that the user has, beside what is known of her."""
    k: int | None = None
    """Length of the list; None is the usual one."""
    exclude: Sequence[Id] = ()
    allow: Sequence[Id] | None = None
    """The only items that may be shown."""
    items: Sequence[Id] | None = None
    """Own candidates, in place of the catalogue."""
    scores: Sequence[float] | None = None
    """Of the candidates."""
    id: str | None = None
    """Of the request."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A list, the best place first."""

    items: list[Id]
    numbers: Int32
    """Of the items in the catalogue; -1 for candidates that it does not have."""
    scores: Float32
    basis: Basis
    relevance: Float32 | None = None
    """What the places are worth to the user; None without control."""
    subsidy: Float32 | None = None
    """What was added to it for the sake of exposure."""
    plain: float = 0.0
    """The relevance of the list that she would get without control, places weighted."""
    shown: float = 0.0
    """The same of this list."""
    unknown: list[Id] = field(default_factory=list)
    """Items of the request that the catalogue does not have."""


class Question(NamedTuple):
    """A request in numbers of the catalogue."""

    k: int
    basis: Basis
    row: int
    """Of a training user; -1 for others."""
    history: Int32
    """What is folded in, ascending."""
    hidden: Int32
    """What is not shown to this user, ascending."""
    allowed: Int32 | None
    unknown: list[Id]


def scores_of(request: Request, ids: Sequence[Id]) -> Float32:
    """Return the scores of own candidates; each must have one."""
    given = [] if request.scores is None else request.scores
    if len(given) != len(ids):
        message = f"{len(given):,} scores for {len(ids):,} candidates"
        raise DataError(message, hint="give every candidate a score")
    scores = np.asarray(given, dtype=np.float64)
    fits = np.abs(scores) <= LARGEST_SCORE  # which NaN does not
    if not fits.all():
        place = int(np.flatnonzero(~fits)[0])
        message = (
            f"the score of item {ids[place]!r} must be finite, from -1e30 to 1e30: {given[place]!r}"
        )
        raise DataError(message, hint="leave out candidates without a score")
    return scores.astype(np.float32)


def refuse_repeated(ids: Sequence[Id], numbers: Int32) -> None:
    """Refuse candidates that are there twice, by their numbers or, without one, by their ids."""
    seen: set[Any] = set()
    for id_, number in zip(ids, numbers.tolist(), strict=True):
        key = number if number >= 0 else str(id_)
        if key in seen:
            message = f"item {id_!r} is a candidate twice"
            raise DataError(message, hint="give every candidate once")
        seen.add(key)
