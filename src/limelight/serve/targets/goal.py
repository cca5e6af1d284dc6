"""What a service is to hold over the window of what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight.rerank.targets.groups import check_wishes
from limelight.rerank.targets.search import Goal, as_goals
from limelight.rerank.targets.words import asked_words

if TYPE_CHECKING:
    from limelight.rerank.targets.groups import Share


@dataclass(frozen=True, kw_only=True)
class ServedGoal:
    """What is to be held over the window; wishes for exposure give way to a loss that is bounded.

    Examples
    --------
    >>> print(ServedGoal(gini=0.6, group_cap=0.03))
    a Gini index of 0.6 and no group above 3 %
    """

    gini: float | None = None
    min_coverage: float | None = None
    max_relevance_loss: float | None = None
    group_cap: Share | None = None
    group_floor: Share | None = None

    def __post_init__(self) -> None:
        if not self.goals and not self.has_groups:
            message = "no target was given: all of them are None"
            raise ConfigError(message, hint="for example gini=0.6 or group_cap=0.03")
        if self.has_groups:
            check_wishes(self.group_cap, self.group_floor, None)

    @property
    def goals(self) -> list[Goal]:
        """The wishes that strength is for."""
        return as_goals(
            gini=self.gini,
            min_coverage=self.min_coverage,
            max_relevance_loss=self.max_relevance_loss,
        )

    @property
    def has_groups(self) -> bool:
        """Whether groups have caps or floors."""
        return self.group_cap is not None or self.group_floor is not None

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return asked_words(self.asked)
