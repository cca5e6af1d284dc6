"""What a target is held with, what is held, what that costs, and what is out of reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from limelight._base.arrays import Float64
    from limelight.rerank.targets.search import Measure
    from limelight.serve.targets.history import WindowPoint

_MOST_ACCOUNTS = 100


class Steered(Protocol):
    """What a target is held with."""

    strength: float
    prices: Float64 | None

    def plain_exposure(self, lists: float) -> Float64 | None:
        """Return the exposure of lists without control; None if too few of so many are known."""
        ...


class Account(NamedTuple):
    """The share of a group, its bounds, and its price in units of a place of a plain list."""

    group: Any
    share: float
    floor: float
    cap: float
    price: float

    @property
    def outside(self) -> float:
        """How far the share is outside its bounds; below 0, how far inside.

        Examples
        --------
        >>> Account("a", share=0.5, floor=0.0, cap=0.25, price=1.0).outside
        0.25
        """
        return max(self.share - self.cap, self.floor - self.share)


@dataclass(frozen=True)
class TargetStatus:
    """What is held, and what that takes."""

    asked: dict[str, Any]
    measure: Measure | None
    """Of the window, None while nothing was measured."""
    strength: float
    is_met: bool
    is_reachable: bool
    """False once all that can be done was done for long, and the target is still missed."""
    notes: tuple[str, ...]
    accounts: tuple[Account, ...] = ()
    """Of groups, those nearest to or farthest beyond their bounds first."""
    history: tuple[WindowPoint, ...] = field(default=(), repr=False)
    gini_plain: float | None = None
    """The Gini index of the lists without control; None before it is known."""

    @property
    def loss(self) -> float:
        """The share of the relevance of plain lists that is given up; 0 before it is known."""
        return self.measure.loss if self.measure else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it; points are time, Gini index, strength and loss.

        Examples
        --------
        >>> status = TargetStatus({"gini": 0.6}, None, 0.3, False, True, ())
        >>> status.to_dict()["target"], status.to_dict()["measured"]
        ({'gini': 0.6}, None)
        """
        asked = {
            name: {str(group): float(share) for group, share in value.items()}
            if isinstance(value, Mapping)
            else float(value)
            for name, value in self.asked.items()
        }
        return {
            "target": asked,
            "strength": float(self.strength),
            "is_met": bool(self.is_met),
            "is_reachable": bool(self.is_reachable),
            "measured": None
            if self.measure is None
            else {name: float(value) for name, value in self.measure._asdict().items()},
            "gini_plain": self.gini_plain,
            "accounts": [
                {"group": str(group), "share": share, "floor": floor, "cap": cap, "price": price}
                for group, share, floor, cap, price in self.accounts[:_MOST_ACCOUNTS]
            ],
            "notes": list(self.notes),
            "history": [(p.time, p.gini, p.strength, p.loss) for p in self.history],
        }
