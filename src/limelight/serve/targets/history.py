"""What was measured over time, in a bounded number of points."""

from __future__ import annotations

from collections import deque
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 1000


class WindowPoint(NamedTuple):
    """What the window had at a time."""

    time: float
    gini: float
    coverage: float
    loss: float
    """Share of the relevance of plain lists that was given up."""
    strength: float


class History:
    """At most a thousand points; when there are too many, every second one is dropped.

    Parameters
    ----------
    spacing
        How many seconds are between points at least. It doubles whenever points are dropped.

    Examples
    --------
    >>> history = History(spacing=10.0)
    >>> for second in range(100_000):
    ...     history.add(WindowPoint(float(second), 0.5, 1.0, 0.0, 0.1))
    >>> len(history.points), history.points[-1].time >= 99_000
    (625, True)
    """

    def __init__(self, spacing: float) -> None:
        self._spacing = spacing
        self._points: list[WindowPoint] = []

    @property
    def points(self) -> tuple[WindowPoint, ...]:
        """The points, oldest first."""
        return tuple(self._points)

    def add(self, point: WindowPoint) -> None:
        """Keep a point, unless the last one is too near."""
        if self._points and point.time < self._points[-1].time + self._spacing:
            return
        self._points.append(point)
        if len(self._points) > _MOST:
            self._points = self._points[::2]
            self._spacing *= 2

    def state(self) -> list[list[float]]:
        """Return what :meth:`restore` takes: the spacing, then points."""
        return [[self._spacing], *(list(point) for point in self._points)]

    def restore(self, state: Sequence[Sequence[float]]) -> None:
        """Go on from where another one was."""
        (spacing,), *points = state
        self._spacing = float(spacing)
        self._points = [WindowPoint(*map(float, point)) for point in points[-_MOST:]]


class PastStrengths:
    """The mean logarithm of the strengths of the lists that a window has.

    Examples
    --------
    >>> past = PastStrengths(0.0)
    >>> past.add(100, 1.0, lists=100)
    >>> past.add(100, 3.0, lists=200)
    >>> past.mean
    2.0
    >>> past.add(100, 3.0, lists=200)
    >>> past.mean
    3.0
    """

    def __init__(self, first: float, lists: float = 0.0) -> None:
        self.mean = first
        self._pieces: deque[tuple[int, float]] = deque()
        self.add(round(lists), first, lists)

    def add(self, new: int, strength: float, lists: float) -> None:
        """Add new lists, all at the logarithm of a strength, to a window that has so many now."""
        if new > 0:
            self._pieces.append((new, strength))
        known = sum(piece for piece, _ in self._pieces)
        while self._pieces and known - self._pieces[0][0] >= lists:
            known -= self._pieces.popleft()[0]
        if known:
            self.mean = sum(piece * value for piece, value in self._pieces) / known

    def state(self) -> list[list[float]]:
        """Return what :meth:`restored` takes: the mean, then pieces."""
        return [[self.mean], *(list(piece) for piece in self._pieces)]

    @classmethod
    def restored(cls, state: Sequence[Sequence[float]]) -> PastStrengths:
        """Go on from where another one was."""
        (mean,), *pieces = state
        found = cls(float(mean))
        found._pieces.extend((int(piece), float(value)) for piece, value in pieces[-_MOST:])
        if not all(isfinite(value) for value in (found.mean, *(v for _, v in found._pieces))):
            message = "a strength is not finite"
            raise ValueError(message)
        return found
