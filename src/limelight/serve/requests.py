"""What is asked of a service, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

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
