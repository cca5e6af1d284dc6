"""What the audited lists should reach, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.errors import ConfigError
from limelight._base.settings import check_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from limelight.data.groups import GroupExposure

    Bound: TypeAlias = float | Mapping[Any, float] | None

_SLACK = 1e-9
"""What rounding may add to a share."""


@dataclass(frozen=True)
class MissedGroup:
    """A group outside its bound."""

    group: int | str
    share: float
    asked: float


@dataclass(frozen=True)
class TargetFound:
    """One target, and what the lists have instead."""

    target: str
    """`gini`, `min_coverage`, `group_cap` or `group_floor`."""

    asked: float | None
    """None where groups have bounds of their own."""

    found: float
    """The figure, or the share of the group that is furthest outside, or nearest to, its bound."""

    met: bool
    missed: tuple[MissedGroup, ...] = ()
    """The groups outside their bound, the furthest first."""


class AuditTargets(NamedTuple):
    """Targets as they were given; None where there is none."""

    gini: float | None = None
    min_coverage: float | None = None
    group_cap: Bound = None
    group_floor: Bound = None

    def check(self, *, has_groups: bool) -> None:
        """Refuse what is no share, and bounds of groups where there are no groups.

        Examples
        --------
        >>> AuditTargets(gini=0.6).check(has_groups=False)
        """
        for name, given in self._asdict().items():
            for value in given.values() if isinstance(given, Mapping) else [given]:
                _check_share(name, value)
            if isinstance(given, Mapping) and not given:
                message = f"no group has a bound: {name}={given!r}"
                raise ConfigError(message, hint=f"name some, or leave {name} out")
            if given is not None and name.startswith("group_") and not has_groups:
                message = f"a bound of groups needs groups: {name}={given!r}"
                raise ConfigError(message, hint="name them with groups='...'")

    def bind(self, groups: Sequence[GroupExposure]) -> tuple[GroupExposure, ...]:
        """Give every group its floor and its cap; refuse bounds of groups that are not there."""
        names = {str(one.group) for one in groups}
        for given in (self.group_cap, self.group_floor):
            known = given if isinstance(given, Mapping) else {}
            unknown = next((name for name in known if str(name) not in names), None)
            if unknown is not None:
                message = f"no item of the catalogue is in group {unknown!r}"
                raise ConfigError(message, hint="name groups as the table of groups does")
        caps, floors = _lookup(self.group_cap), _lookup(self.group_floor)
        return tuple(replace(one, floor=floors(one.group), cap=caps(one.group)) for one in groups)

    def found(
        self, metrics: Mapping[str, float], k: int, groups: Iterable[GroupExposure]
    ) -> tuple[TargetFound, ...]:
        """Compare the lists with all that was asked for.

        Examples
        --------
        >>> AuditTargets(gini=0.6).found({"gini@5": 0.7, "coverage@5": 0.5}, 5, ())
        (TargetFound(target='gini', asked=0.6, found=0.7, met=False, missed=()),)
        """
        gini, coverage = metrics[f"gini@{k}"], metrics[f"coverage@{k}"]
        told = []
        if self.gini is not None:
            told.append(TargetFound("gini", self.gini, gini, gini <= self.gini + _SLACK))
        if self.min_coverage is not None:
            met = coverage >= self.min_coverage - _SLACK
            told.append(TargetFound("min_coverage", self.min_coverage, coverage, met))
        for name, given in (("group_cap", self.group_cap), ("group_floor", self.group_floor)):
            if given is None:
                continue
            sign = 1 if name == "group_cap" else -1
            bounds = [
                MissedGroup(one.group, one.exposure_share, bound)
                for one in groups
                if (bound := one.cap if name == "group_cap" else one.floor) is not None
            ]
            bounds.sort(key=lambda one: -sign * (one.share - one.asked))
            missed = tuple(one for one in bounds if sign * (one.share - one.asked) > _SLACK)
            asked = None if isinstance(given, Mapping) else given
            told.append(TargetFound(name, asked, bounds[0].share, not missed, missed))
        return tuple(told)


def missed_by(group: GroupExposure) -> float:
    """Return how far a group's share of the exposure is outside its bounds; 0 if it is not.

    Examples
    --------
    >>> from limelight.data.groups import GroupExposure
    >>> missed_by(GroupExposure("x", 0.75, 0.5, 1.5, cap=0.5))
    0.25
    """
    share = group.exposure_share
    over = 0.0 if group.cap is None else share - group.cap
    under = 0.0 if group.floor is None else group.floor - share
    far = max(over, under)
    return far if far > _SLACK else 0.0


def what_matters_first(groups: Iterable[GroupExposure]) -> tuple[GroupExposure, ...]:
    """Sort groups: outside their bounds, the furthest first; with bounds; then by size.

    The size is the share of exposure or catalogue: by ratio, the tiniest would lead. Where all
    groups have the same bound, those within it come by size, too.
    """

    def order(one: GroupExposure) -> tuple[float, bool, float]:
        unbound = one.floor is None and one.cap is None
        return -missed_by(one), unbound, -max(one.exposure_share, one.catalogue_share)

    return tuple(sorted(groups, key=order))


def _lookup(given: Bound) -> Any:
    """Return a function from a group to its bound."""
    if isinstance(given, Mapping):
        return {str(name): float(value) for name, value in given.items()}.get
    return lambda _: given


def _check_share(name: str, value: object) -> None:
    if value is None:
        return
    check_number(name, value)
    if float(value) > 1:  # type: ignore[arg-type]
        message = f"{name} must be from 0 to 1: {value!r}"
        raise ConfigError(message, hint="0.03 is a share of 3 %")
