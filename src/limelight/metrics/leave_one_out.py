"""The figures of an audit again, without some of the rows.

Taking away one row changes the exposure of one item; what that does to a figure is exact, but
for `DistanceWithout`, which follows its slope, and `TopShareWithout`, whose top items stay the
same. The changes of a user's rows are added up. That ignores that the rows of one user change each
other's effect, which does not matter with more than a hundred items or so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy

from limelight.metrics.exposure import entropy, top_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.metrics.accumulate import Tally
    from limelight.metrics.lists import FloatArray


class LeaveOneOutFigure(Protocol):
    """A figure that can be given without some of the rows."""

    uniform: bool
    """Whether a place counts 1 whatever its rank."""

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Say what changes if each of these rows is taken away."""

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Give the figure after changes that took so much exposure away."""


class GiniWithout:
    """The Gini of exposure, or that of exposure against merit.

    Examples
    --------
    >>> exposure = GiniWithout(np.array([2.0, 1.0, 0.0]), uniform=True)
    >>> change = exposure.change(np.array([0]), np.ones(1))
    >>> float(round(exposure.figure(change, np.ones(1))[0], 4))  # of [1, 1, 0]
    0.3333
    """

    def __init__(
        self, exposure: FloatArray, merit: FloatArray | None = None, *, uniform: bool = False
    ) -> None:
        self.uniform = uniform
        self._merit = np.ones(len(exposure)) if merit is None else merit
        # Items without merit stand at no place on the curve; they change in `change`.
        has_merit = self._merit > 0
        self._ratio = np.divide(exposure, self._merit, out=np.zeros(len(exposure)), where=has_merit)
        order = np.flatnonzero(has_merit)[np.argsort(self._ratio[has_merit], kind="stable")]
        self._ordered = self._ratio[order]
        self._merit_below = np.append(0.0, np.cumsum(self._merit[order]))
        self._exposure_below = np.append(0.0, np.cumsum(exposure[order]))
        self._total, self._exposure = self._merit_below[-1], float(exposure.sum())
        apart = self._apart(self._ratio)
        alone = exposure[~has_merit].sum() * self._total
        self._here = apart
        self._differences = float(self._merit @ apart) + 2.0 * alone

    def _apart(self, ratio: FloatArray) -> FloatArray:
        """Add up how far each ratio is from those of all items, weighted with their merit.

        The ratios are sorted, so that those below one are a prefix, and two prefix sums replace
        the sum over all items.
        """
        below = np.searchsorted(self._ordered, ratio)
        merit, exposure = self._merit_below[below], self._exposure_below[below]
        low = ratio * merit - exposure
        high = (self._exposure_below[-1] - exposure) - ratio * (self._total - merit)
        return np.asarray(low + high)

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Say how the sum of all differences between two items changes, each pair once.

        The index is sum_ij m_i m_j |r_i - r_j| / (2 M O) over the ratios r = exposure / merit,
        with the total merit M and the total exposure O. A row that is taken away lowers one r_i,
        by weight / m_i, and so changes only the pairs of its item: `_apart` before and after.
        """
        merit = self._merit[items]
        has_merit = merit > 0
        step = np.divide(weights, merit, out=np.zeros(len(items)), where=has_merit)
        moved = self._apart(np.maximum(self._ratio[items] - step, 0.0)) - self._here[items]
        # `_apart` also compares the lowered ratio with the item's own old one, which adds
        # m_i * weight / m_i = weight that no pair has. Without merit, item i has o_i m_j with j.
        change = np.where(has_merit, merit * (moved - weights), -weights * self._total)
        return np.asarray(change, dtype=np.float64)

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Divide what remains of the differences by what remains of the exposure."""
        left = self._differences + 2.0 * change
        return np.asarray(left / (2.0 * self._total * (self._exposure - taken)))


class CoverageWithout:
    """Coverage: an item that one list shows is lost with that list."""

    uniform = True

    def __init__(self, shown: NDArray[np.int64]) -> None:
        self._lost = (shown == 1) / -len(shown)
        self._figure = float(np.mean(shown > 0))

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Take away the share of one item, if this row alone shows it."""
        return np.asarray(self._lost[items])

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Add the losses."""
        return np.asarray(self._figure + change)


class EntropyWithout:
    """Entropy, as sums of o ln o over the items."""

    uniform = False

    def __init__(self, exposure: FloatArray) -> None:
        self._exposure, self._total = exposure, float(exposure.sum())
        self._scale = np.log(max(len(exposure), 2))
        self._sum = (np.log(self._total) - entropy(exposure) * self._scale) * self._total

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Say how the sum of o ln o changes."""
        before = self._exposure[items]
        after = np.maximum(before - weights, 0.0)
        xlogy = scipy.special.xlogy
        return np.asarray(xlogy(after, after) - xlogy(before, before))

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Turn the sum into an entropy."""
        left = self._total - taken
        return np.asarray((np.log(left) - (self._sum + change) / left) / self._scale)


class TopShareWithout:
    """The share of the top 1 % of the items; who belongs to the top stays as it is."""

    uniform = False

    def __init__(self, exposure: FloatArray) -> None:
        self._total = float(exposure.sum())
        self._top = top_share(exposure) * self._total
        n_top = max(1, int(np.ceil(len(exposure) / 100.0 - 1e-9)))
        self._is_top = np.zeros(len(exposure))
        self._is_top[np.argsort(-exposure, kind="stable")[:n_top]] = 1.0

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Take the weight away from the top, if the item belongs to it."""
        return np.asarray(-weights * self._is_top[items])

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Divide what remains of the top by what remains of all."""
        return np.asarray((self._top + change) / (self._total - taken))


class DistanceWithout:
    """The distance between shares of exposure and of merit, to first order."""

    uniform = False

    def __init__(self, exposure: FloatArray, merit: FloatArray) -> None:
        shares = exposure / exposure.sum()
        gap = shares - merit / merit.sum()
        self._figure = float(np.abs(gap).sum() / 2.0)
        self._slope = (np.sign(gap) - np.sign(gap) @ shares) / (2.0 * exposure.sum())

    def change(self, items: NDArray[np.integer[Any]], weights: FloatArray) -> FloatArray:
        """Take the weight away from the item's share, times the derivative of the distance."""
        return np.asarray(-weights * self._slope[items])

    def figure(self, change: FloatArray, taken: FloatArray) -> FloatArray:
        """Add the changes."""
        return np.asarray(self._figure + change)


def figures_without(
    exposure: Tally, merit: FloatArray | None, k: int
) -> dict[str, LeaveOneOutFigure]:
    """Name the figures of an audit that have an interval.

    Examples
    --------
    >>> from limelight.metrics.accumulate import tally
    >>> list(figures_without(tally(np.array([0]), np.array([1]), 2), None, k=1))
    ['gini@1', 'gini_uniform@1', 'coverage@1', 'entropy@1', 'top_share@1']
    """
    figures: dict[str, LeaveOneOutFigure] = {
        f"gini@{k}": GiniWithout(exposure.weighted),
        f"gini_uniform@{k}": GiniWithout(exposure.shown.astype(np.float64), uniform=True),
        f"coverage@{k}": CoverageWithout(exposure.shown),
        f"entropy@{k}": EntropyWithout(exposure.weighted),
        f"top_share@{k}": TopShareWithout(exposure.weighted),
    }
    if merit is not None:
        figures[f"merit_gini@{k}"] = GiniWithout(exposure.weighted, merit)
        figures[f"merit_distance@{k}"] = DistanceWithout(exposure.weighted, merit)
    return figures
