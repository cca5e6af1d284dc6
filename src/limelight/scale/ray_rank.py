"""A rank as an actor of Ray: it holds its program, and data with it, from one term to the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight._errors import LimelightError
from limelight.scale.ray_exchange import RayExchange

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.scale.ray_exchange import Seat
    from limelight.solve.exchange import Exchange, Program


@dataclass(frozen=True)
class Outcome:
    """How a rank came out of a term."""

    result: Any = None
    error: LimelightError | None = None
    system: OSError | None = None
    """What the operating system said, where that was the cause: causes do not travel."""
    is_over: bool = False
    """Whether the term ended before the work did, because something was lost."""


class Rank:
    """What runs in the process of a rank."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._traffic: Counter[str] = Counter()

    def is_here(self) -> bool:
        """Answer, which says that the process has a place and is up."""
        return True

    def prepare(self, seat: Seat, program: Program) -> Outcome:
        """Take over a program and let it load its data."""
        self._program = program
        return self._attend(seat, program.prepare)

    def run(self, seat: Seat) -> Outcome:
        """Run the program that was prepared."""
        assert self._program is not None
        return self._attend(seat, self._program.run)

    def _attend(self, seat: Seat, work: Callable[[Exchange], Any]) -> Outcome:
        """Do the work; an error of ours is a result, because Ray would dress it as its own.

        That the term is over shows in the exchange, whatever the program made of the exception.
        """
        exchange = RayExchange(seat, self._traffic)
        try:
            result = work(exchange)
            exchange.settle()
        except Exception as error:
            if exchange.is_over:
                return Outcome(is_over=True)
            if isinstance(error, LimelightError):
                cause = error.__cause__
                return Outcome(error=error, system=cause if isinstance(cause, OSError) else None)
            raise
        return Outcome(result=result)
