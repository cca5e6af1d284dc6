"""How sure a figure is: a mean over users by resampling them, exposure by leaving each one out.

A figure over lists such as Gini or coverage is not a mean over users, so an interval for means
does not fit. A bootstrap does not either. In a resample some lists stand twice and others not at
all, so fewer items are shown: its Gini is too high and its coverage too low, and where many items
are shown once or twice it also varies too little, even after that shift is taken off.
Leaving out one user at a time needs no random numbers, and its spread is, on average, at
least the true one (Efron and Stein, 1981). The interval is

    figure ± 1.96 * sqrt((n - 1) / n * sum_u (figure without u - their mean)²)

It speaks of the mean figure over other samples of as many users, not of infinitely many: Gini
falls and coverage grows with every further list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from limelight._base.arrays import blocks
from limelight.metrics.lists import FloatArray, rank_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from limelight.metrics.accumulate import Tally
    from limelight.metrics.leave_one_out import LeaveOneOutFigure

_DRAWN_AT_ONCE = 1 << 14
"""Users in all resamples that are drawn together."""


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Give the percentile bootstrap interval of the mean of each column.

    Users are drawn with replacement and keep their row, so all columns see the same users.
    Rows are sorted first: the interval depends on the values, not on the order in which the
    users came in. Memory is one resample at a time, or several of few users.

    Parameters
    ----------
    values
        Users x metrics, without nan.
    level
        Share of the resampled means that lie inside the interval.
    resamples
        How many times to draw.
    seed
        Seed of the draws.

    Returns
    -------
    low, high
        One bound per column.

    Examples
    --------
    >>> low, high = bootstrap_interval([[0.0], [1.0], [1.0], [0.0]] * 25)
    >>> bool(0.35 < low[0] < 0.5 < high[0] < 0.65)
    True
    """
    rows = np.asarray(values, dtype=np.float64)
    columns = np.ascontiguousarray(rows[np.lexsort(rows.T)].T)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, len(columns)))
    at_once = max(1, _DRAWN_AT_ONCE // len(rows))
    for some in np.split(means, range(at_once, resamples, at_once)):
        # The same draws and the same means, bit by bit, as one resample after the other.
        drawn = generator.integers(0, len(rows), size=(len(some), len(rows)))
        some[:] = np.stack([column[drawn].mean(axis=1) for column in columns], axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high


_NORMAL = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations of its mean."""


class RankedRows(Protocol):
    """Rows of lists: whose they are, the item and its rank."""

    @property
    def users(self) -> NDArray[np.int32]:
        """The number of each row's user."""

    @property
    def items(self) -> NDArray[np.int32]:
        """The number of each row's item."""

    @property
    def ranks(self) -> NDArray[np.int32]:
        """The rank of each row's item, from 1."""

    @property
    def n_users(self) -> int:
        """How many users there are."""


class Deviations(NamedTuple):
    """How far each figure without a user is from their mean, for every user."""

    by_figure: dict[str, FloatArray]
    n_users: int
    """How many users have rows; the others deviate by 0."""

    def bounds(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Give the bounds of the 95 % intervals as `gini@20_low` and `gini@20_high`.

        Examples
        --------
        >>> deviations = Deviations({"gini@1": np.array([0.01, -0.01])}, n_users=2)
        >>> deviations.bounds({"gini@1": 0.5})
        {'gini@1_low': 0.4804..., 'gini@1_high': 0.5195...}
        """
        found: dict[str, float] = {}
        for key, error in self.errors().items():
            found |= _interval(key, figures[key], _NORMAL * error)
        return found

    def errors(self) -> dict[str, float]:
        """Give the standard error of each figure."""
        return {
            key: standard_error(deviations, self.n_users)
            for key, deviations in self.by_figure.items()
        }


def _interval(key: str, figure: float, margin: float) -> dict[str, float]:
    return {f"{key}_low": max(0.0, figure - margin), f"{key}_high": min(1.0, figure + margin)}


def margin_of(deviations: FloatArray, n_users: int) -> float:
    """Give half the width of a 95 % interval.

    Examples
    --------
    >>> round(margin_of(np.array([0.5, -0.5]), n_users=2), 4)
    0.98
    """
    return _NORMAL * standard_error(deviations, n_users)


def standard_error(deviations: FloatArray, n_users: int) -> float:
    """Give the standard error of a figure.

    Examples
    --------
    >>> round(standard_error(np.array([0.5, -0.5]), n_users=2), 4)
    0.5
    """
    return float(np.sqrt((n_users - 1) / n_users * (deviations @ deviations)))


class Moments(NamedTuple):
    """What figures without each of some users add up to: those of other users may be added."""

    sums: dict[str, float]
    """How far the figures are from those of all users."""
    squares: dict[str, float]
    n_users: int

    def plus(self, other: Moments) -> Moments:
        """Add the moments of other users."""
        sums = {key: value + other.sums[key] for key, value in self.sums.items()}
        squares = {key: value + other.squares[key] for key, value in self.squares.items()}
        return Moments(sums, squares, self.n_users + other.n_users)

    def bounds(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Give the bounds of the 95 % intervals; none for fewer than two users."""
        found: dict[str, float] = {}
        for key, error in self.errors().items():
            found |= _interval(key, figures[key], _NORMAL * error)
        return found

    def errors(self) -> dict[str, float]:
        """Give the standard error of each figure; none for fewer than two users."""
        if self.n_users < 2:
            return {}
        found: dict[str, float] = {}
        for key, square in self.squares.items():
            spread = max(0.0, square - self.sums[key] ** 2 / self.n_users)
            found[key] = float(np.sqrt((self.n_users - 1) / self.n_users * spread))
        return found


def leave_users_out(
    rows: RankedRows, exposure: Tally, figures: Mapping[str, LeaveOneOutFigure]
) -> Deviations | None:
    """Measure every figure without each user in turn, in one pass over the rows.

    Parameters
    ----------
    rows
        The lists, cut at k, with items numbered as in the figures.
    exposure
        What the rows add up to.
    figures
        What to measure.

    Returns
    -------
    None where fewer than two users have rows: nothing would be left without one.
    """
    present, figures_of = _leave_out(rows, exposure, figures)
    if np.count_nonzero(present) < 2:
        return None
    by_figure = {
        key: np.where(present, values - values[present].mean(), 0.0) for key, values in figures_of
    }
    return Deviations(by_figure, int(np.count_nonzero(present)))


def moments_without(
    rows: RankedRows,
    exposure: Tally,
    figures: Mapping[str, LeaveOneOutFigure],
    of_all: Mapping[str, float],
) -> Moments:
    """Measure every figure without each user of a part of the lists in turn.

    Parameters
    ----------
    rows
        The lists of some users, cut at k, with items numbered as in the figures.
    exposure
        What the rows of all users add up to.
    figures
        What to measure.
    of_all
        The figures of all users.
    """
    present, figures_of = _leave_out(rows, exposure, figures)
    sums, squares = {}, {}
    for key, values in figures_of:
        apart = values[present] - of_all[key]
        sums[key], squares[key] = float(apart.sum()), float(apart @ apart)
    return Moments(sums, squares, int(np.count_nonzero(present)))


def _leave_out(
    rows: RankedRows, exposure: Tally, figures: Mapping[str, LeaveOneOutFigure]
) -> tuple[NDArray[np.bool_], Iterator[tuple[str, FloatArray]]]:
    """Tell which users have rows, and give each figure without each of them."""
    taken = {uniform: np.zeros(rows.n_users) for uniform in (False, True)}
    changes = {key: np.zeros(rows.n_users) for key in figures}
    order = np.argsort(exposure.weighted)
    for own in _pieces(rows.ranks, len(order)):
        users, items = rows.users[own], rows.items[own]
        weights = {False: rank_weights(rows.ranks[own]), True: np.ones(len(own))}
        for uniform, weight in weights.items():
            np.add.at(taken[uniform], users, weight)
        for key, figure in figures.items():
            np.add.at(changes[key], users, _changes(figure, items, weights[figure.uniform], order))
    return taken[True] > 0, (
        (key, figure.figure(changes.pop(key), taken[figure.uniform]))
        for key, figure in figures.items()
    )


def _pieces(ranks: NDArray[np.int32], n_items: int) -> Iterator[NDArray[np.int64]]:
    """Take the rows of each frequent rank, then all others, in blocks."""
    # Sixteen bits are sorted in linear time, and few lists are longer.
    short = ranks.astype(np.uint16) if ranks.max() < 2**16 else ranks
    order = np.argsort(short, kind="stable")
    _, counts = np.unique(ranks, return_counts=True)
    frequent = counts >= n_items
    ends = np.cumsum(counts)
    groups = [order[end - n : end] for end, n in zip(ends[frequent], counts[frequent], strict=True)]
    for group in (*groups, order[~np.repeat(frequent, counts)]):
        for block in blocks(len(group)):
            yield group[block]


def _changes(
    figure: LeaveOneOutFigure,
    items: NDArray[np.int32],
    weights: FloatArray,
    order: NDArray[np.int64],
) -> FloatArray:
    """Say what changes with each row; once for each item where there are more rows than items."""
    # The rows are in the order of their ranks: if the ends have the same weight, all have.
    if len(items) < len(order) or weights[0] != weights[-1]:
        return figure.change(items, weights)
    by_item = np.empty(len(order))
    # In this order the figures look up neighbours one after the other, which is much faster.
    by_item[order] = figure.change(order, np.full(len(order), weights[0]))
    return by_item[items]
