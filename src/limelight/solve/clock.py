"""Where the time of an epoch goes, part by part."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Thing = TypeVar("Thing")


class Clock:
    """Adds up the seconds of named parts.

    Examples
    --------
    >>> clock = Clock()
    >>> with clock("solve"):
    ...     pass
    >>> [number for number in clock.waiting("rows", [3, 4])], sorted(clock.seconds)
    ([3, 4], ['rows', 'solve'])
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Count what a block takes."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - started

    def waiting(self, part: str, things: Iterable[Thing]) -> Iterator[Thing]:
        """Count what it takes until things come, not what is done with them."""
        source = iter(things)
        while True:
            with self(part):
                try:
                    thing = next(source)
                except StopIteration:
                    return
            yield thing
