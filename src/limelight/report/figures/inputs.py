"""The exposures and the points that figures compare, from whatever holds or measured them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from limelight._base.errors import DataError
from limelight.metrics.exposure import coverage
from limelight.metrics.lists import ListCount, over_all

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._base.arrays import Float64


@runtime_checkable
class Exposed(Protocol):
    """What knows the exposure of items: an audit, or re-ranked lists."""

    def exposures(self) -> Mapping[str, Float64]:
        """Return the exposure of every item, by the name of the series; "" if there is one."""


@runtime_checkable
class Counted(Protocol):
    """What knows of how many lists its exposure is."""

    def counted(self) -> ListCount:
        """Return how many lists and items there are."""


class CountedExposure(NamedTuple):
    """The exposure of every item, and of how many lists it is."""

    exposure: Float64
    size: ListCount

    def exposures(self) -> dict[str, Float64]:
        """Return the exposure, which has no name of its own."""
        return {"": self.exposure}

    def counted(self) -> ListCount:
        """Return how many lists and items there are."""
        return self.size


Exposure: TypeAlias = "ArrayLike | Exposed"
Exposures: TypeAlias = "Exposure | Mapping[str, Exposure]"
_HINT = "pass for example {'iALS': ll.exposure(ids, n_items)}"


def exposures_of(given: Exposures) -> dict[str, Float64]:
    """Return the exposure of every item, by the name of the series; "" if there is one.

    Re-ranked lists are two series, before and after.

    Examples
    --------
    >>> exposures_of([3, 1])
    {'': array([3., 1.])}
    """
    if isinstance(given, Exposed):
        return {name: _checked(one) for name, one in given.exposures().items()}
    if not isinstance(given, Mapping):
        return {"": _checked(given)}
    if not given:
        message = "no exposures to draw: {}"
        raise DataError(message, hint=_HINT)
    return {str(name): _checked(one) for name, one in given.items()}


def items_label(label: str, given: Exposures, series: Mapping[str, Float64]) -> str:
    """Say below the name of an axis of items how many there are, and of how many lists.

    Examples
    --------
    >>> items_label("Items", [3, 1], exposures_of([3, 1])).splitlines()
    ['Items', 'over 2 items']
    """
    sources: list[Any] = [*given.values()] if isinstance(given, Mapping) else [given]
    counts = [one.counted() for one in sources if isinstance(one, Counted)]
    if len(counts) < len(sources):
        counts = [ListCount(items=len(one)) for one in series.values()]
    return f"{label}\n{over_all(counts)}"


def named(name: str, remark: str) -> str:
    """Put a remark behind a name, if there is one.

    Examples
    --------
    >>> named("iALS", "Gini 0.70"), named("", "Gini 0.70")
    ('iALS (Gini 0.70)', 'Gini 0.70')
    """
    return f"{name} ({remark})" if name else remark


def _checked(given: Any) -> Float64:
    values = given.exposures().get("", given) if isinstance(given, Exposed) else given
    try:
        exposure = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"not the exposure of items: {type(given).__name__}"
        raise DataError(message, hint=_HINT) from error
    coverage(exposure)  # refuses what is not one number an item, from 0 up, and all of them 0
    return exposure


class Point(NamedTuple):
    """One model: how unequal its exposure is, how accurate it is, and what to write beside it.

    A Gini depends on how many ``users`` have lists, and on how many ``items`` there are: where
    these are given, the figure says them.
    """

    gini: float
    accuracy: float
    label: str = ""
    users: int | None = None
    items: int | None = None


Measured: TypeAlias = "Point | Mapping[str, float]"

Points: TypeAlias = (
    "Traded | Measured | Sequence[Measured] | Mapping[str, Measured | Sequence[Measured]]"
)


class Tradeoff(NamedTuple):
    """Points by the name of their method, and the name of their accuracy."""

    series: dict[str, list[Point]]
    accuracy: str


@runtime_checkable
class Traded(Protocol):
    """What has traced a trade-off: a front."""

    def tradeoff(self) -> Tradeoff:
        """Return its points by the name of their method."""


def tradeoff_of(given: Any, k: int | None = None) -> Tradeoff:
    """Return the points that ``ll.plot.front`` was given, by the name of their method.

    Examples
    --------
    >>> found = tradeoff_of({"iALS": {"users": 9, "items": 4, "ndcg@5": 0.1, "gini@5": 0.9}})
    >>> found.accuracy, found.series["iALS"]
    ('nDCG@5', [Point(gini=0.9, accuracy=0.1, label='', users=9, items=4)])
    """
    if isinstance(given, Traded):
        return given.tradeoff()
    if not isinstance(given, Mapping) or _is_metrics(given):
        given = {"": given}
    found = {str(name): _listed(one) for name, one in given.items()}
    everything = [one for series in found.values() for one in series]
    evaluations = [one for one in everything if not isinstance(one, Point)]
    k = _common_cutoff(evaluations, k) if evaluations else None
    series = {name: [_point(one, k) for one in some] for name, some in found.items()}
    return Tradeoff(series, f"nDCG@{k}" if k else "nDCG")


def _is_metrics(given: Any) -> bool:
    return isinstance(given, Mapping) and any(str(key).startswith("gini@") for key in given)


def _listed(given: Any) -> list[Measured]:
    """Return one or several points as several, if that is what they are."""
    hint = "pass ll.plot.Point(gini, accuracy), or what ll.evaluate returns"
    points = [given] if isinstance(given, Point | Mapping) else given
    if not isinstance(points, Sequence):
        message = f"not points of a trade-off: {given!r}"
        raise DataError(message, hint=hint)
    for one in points:
        if not (isinstance(one, Point) or _is_metrics(one)):
            message = f"not a point of a trade-off: {one!r}"
            raise DataError(message, hint=hint)
    return list(points)


def _common_cutoff(evaluations: Sequence[Mapping[str, float]], k: int | None) -> int:
    """Return the longest lists for which all know both measures."""
    cutoffs = set.intersection(*map(_cutoffs, evaluations))
    if (not cutoffs) if k is None else (k not in cutoffs):
        wanted = "any k" if k is None else f"k = {k}"
        message = f"not all evaluations have ndcg@k and gini@k for {wanted}"
        shared = ", ".join(map(str, sorted(cutoffs))) or "no k, evaluate all with the same"
        raise DataError(message, hint=f"all have: {shared}")
    return max(cutoffs) if k is None else k


def _cutoffs(metrics: Mapping[str, float]) -> set[int]:
    ginis, accuracies = (
        {key.removeprefix(name) for key in map(str, metrics) if key.startswith(name)}
        for name in ("gini@", "ndcg@")
    )
    return {int(k) for k in ginis & accuracies if k.isdecimal()}


def _point(one: Measured, k: int | None) -> Point:
    if isinstance(one, Point):
        return one
    size = ListCount.of(one)
    return Point(float(one[f"gini@{k}"]), float(one[f"ndcg@{k}"]), "", size.users, size.items)
