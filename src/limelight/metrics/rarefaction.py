"""The Gini of another number of lists than there are: of fewer by drawing, of more by a model.

With few lists the places do not reach all items that would have their turn, and items seem more
unequal than they are. For fewer lists than there are, the figure is the mean over random subsets
of users, as in the rarefaction of ecologists. For more, three steps lead there:

1. How many of m lists show an item has a binomial distribution around m times its rate. The
   distribution of the rates over the catalogue is found by maximum likelihood on a grid (EM),
   from the counts of all items, also of those that no list shows.
2. What a showing is worth, on average, depends on an item's rate: popular items stand higher.
3. These two give the Gini of any number of lists. The model is trusted with its change only: the
   estimate is the measured Gini plus the model's change from m to n.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.special

from limelight._base.errors import DataError
from limelight.metrics.accumulate import tally
from limelight.metrics.exposure import gini, gini_floor
from limelight.metrics.intervals import leave_users_out, margin_of
from limelight.metrics.leave_one_out import GiniWithout
from limelight.metrics.lists import (
    FloatArray,
    IntArray,
    Lists,
    check_lists,
    check_positive,
    rank_weights,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SUBSETS = 64
_SUBSETS_WITH_INTERVALS = 8

_DOUBT = 0.5
"""Which part of the model's change from m to n lists the interval allows to be wrong. Up to two
fifths were, on the lists by which this was chosen; docs/guide/gini.md tells of others."""


@dataclass(frozen=True)
class GiniEstimate:
    """The Gini of some number of users' lists, estimated from another number of them.

    Examples
    --------
    >>> print(GiniEstimate(0.8713, 0.843, 0.9, 0.02, 20_000, 500, 0.91, k=20, items=3000))
    Gini@20 over 20,000 users' lists, estimated from 500: 0.871 (0.843 to 0.900);
    so many lists of 20 cannot go below about 0.020
    """

    gini: float
    low: float
    high: float
    """Bounds of the 95 % interval."""

    floor: float
    """About the lowest Gini that so many lists can reach, however they are filled."""

    users: int
    """How many users' lists the Gini is of."""

    sample: int
    """How many users' lists it was estimated from."""

    measured: float
    """The Gini of the sample's lists."""

    k: int
    items: int

    def __str__(self) -> str:
        """Say it in a sentence."""
        return (
            f"Gini@{self.k} over {self.users:,} users' lists, estimated from {self.sample:,}: "
            f"{self.gini:.3f} ({self.low:.3f} to {self.high:.3f}); "
            f"so many lists of {self.k} cannot go below about {self.floor:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON."""
        return asdict(self)


def gini_at(
    lists: ArrayLike | Lists, n: int, *, n_items: int, k: int | None = None
) -> GiniEstimate:
    """Estimate the Gini of n users' lists from a sample of users' lists, smaller or larger.

    A Gini of 500 lists and one of 50,000 lists are not comparable: over few lists exposure cannot
    be even. This tells what the first would be over as many lists as the second.

    The estimate is of the mean Gini over samples of n users. It assumes that other users are like
    those of the sample, which must be drawn at random, and that everybody's list is made alone.
    Lists that were made together, as `BestResponse` makes them, are taken as they are: some of
    them tell the Gini of more lists of the same run. They do not tell what the method would make
    for n users: that has to be tried.

    Parameters
    ----------
    lists
        Users x k item numbers, best first, padded with -1, as `recommend` returns them. Users
        whose list is empty are left out.
    n
        How many users' lists the Gini is wanted of. As many as there are gives the measured one.
    n_items
        Size of the catalogue.
    k
        Count the first k places only; by default all.

    Returns
    -------
    GiniEstimate
        The estimate, its 95 % interval and the floor for n. The interval joins what the choice
        of users does to the measured Gini, found by leaving out one user at a time, with half of
        the change from the measured Gini to the estimate.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(2000, 1000, 40_000)
    >>> lists = ll.IALS(factors=8, epochs=5).fit(market.interactions).recommend(k=10)
    >>> some = np.random.default_rng(0).choice(2000, 300, replace=False)
    >>> found = ll.gini_at(lists.ids[some], 2000, n_items=1000)
    >>> everybody = ll.gini(ll.exposure(lists.ids, n_items=1000))
    >>> found.low < everybody < found.high
    True
    """
    ids = check_lists(lists.ids if isinstance(lists, Lists) else lists, n_items, k)
    check_positive(n, "n")
    ids = ids[(ids >= 0).any(axis=1)]
    if len(ids) < 2:
        message = f"too few lists to estimate from: {len(ids)}"
        raise DataError(message, hint="pass the lists of two users or more, better of hundreds")
    sample = _SampleRows.of(ids, n_items)
    measured = gini(sample.exposure())
    if n < len(ids):
        figure, margin = _of_fewer(ids, n, n_items)
    else:
        change = _change(sample, n) if n > len(ids) else 0.0
        figure, margin = measured + change, math.hypot(sample.margin(), _DOUBT * change)
    floor = gini_floor(n, ids.shape[1], n_items)
    # Lists that were made together may be so even that the model's change goes too far.
    figure = min(max(figure, floor), 1.0)
    return GiniEstimate(
        gini=figure,
        low=max(floor, figure - margin),
        high=min(1.0, figure + margin),
        floor=floor,
        users=int(n),
        sample=len(ids),
        measured=measured,
        k=ids.shape[1],
        items=int(n_items),
    )


class _SampleRows(NamedTuple):
    """Rows of lists."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ranks: NDArray[np.int32]
    n_users: int
    n_items: int

    @classmethod
    def of(cls, ids: IntArray, n_items: int) -> _SampleRows:
        users, places = np.nonzero(ids >= 0)
        items, ranks = ids[users, places].astype(np.int32), (places + 1).astype(np.int32)
        return cls(users.astype(np.int32), items, ranks, len(ids), n_items)

    def exposure(self) -> FloatArray:
        weights = rank_weights(self.ranks)
        return np.bincount(self.items, weights, self.n_items).astype(np.float64, copy=False)

    def margin(self) -> float:
        """Give half the width of the interval of these lists' Gini."""
        exposure = tally(self.items, self.ranks, self.n_items)
        found = leave_users_out(self, exposure, {"gini": GiniWithout(exposure.weighted)})
        return margin_of(found.by_figure["gini"], found.n_users) if found else 0.0


def _of_fewer(ids: IntArray, n: int, n_items: int) -> tuple[float, float]:
    """Give the mean Gini of subsets of n users, and half the width of its interval.

    Over all subsets, the variance of such a mean is at most n / m of that of one subset
    (Hoeffding, 1948).
    """
    generator = np.random.default_rng(0)
    # The mean over subsets that have no user in common varies less than that over others.
    at_once = len(ids) // n
    figures, squares = [], []
    for turn in range(_SUBSETS):
        if turn % at_once == 0:
            order = generator.permutation(len(ids))
        some = _SampleRows.of(ids[order[turn % at_once * n :][:n]], n_items)
        figures.append(gini(some.exposure()))
        if turn < _SUBSETS_WITH_INTERVALS:
            squares.append(some.margin() ** 2)
    # Leaving out one of two or three lists tells little, but then subsets differ a lot.
    square = max(np.mean(squares), (1.96 * np.std(figures)) ** 2)
    return float(np.mean(figures)), math.sqrt(square * n / len(ids))


def _change(sample: _SampleRows, n: int) -> float:
    """Say how the Gini changes from the sample's number of lists to n, by the model."""
    m = sample.n_users
    shown = np.bincount(sample.items, minlength=sample.n_items)
    # Large counts of about the same size tell the same rate, so they are taken together.
    near = np.exp(np.rint(np.log(np.maximum(shown, 1)) * 32) / 32)
    counts, which, n_items = np.unique(
        np.where(shown <= 64, shown, np.minimum(near, m)), return_inverse=True, return_counts=True
    )
    # At the lowest rate one of a hundred times n lists shows an item: as good as none.
    lowest, highest = 0.01 / n, counts[-1] / m
    rates = np.geomspace(lowest, highest, math.ceil(_POINTS * math.log(highest / lowest)))
    share, likely = _fit_rates(rates, counts, n_items / sample.n_items, m)
    own = rank_weights(sample.ranks)
    worth, spread = _fit_worth(rates * m, likely, which[sample.items], own)
    # EM leaves next to nothing at most rates, and quantiles are slow.
    some = share > 1e-9
    model = (rates[some], share[some], worth[some], spread[some])
    before, after = (_expected_gini(*model, size) for size in (m, n))
    return after - before


_POINTS = 4
"""Rates on the grid for each factor of e."""
_EPOCHS = 5000


def _fit_rates(
    rates: FloatArray, counts: FloatArray, frequency: FloatArray, m: int
) -> tuple[FloatArray, FloatArray]:
    """Find the share of the items that each rate has, and how likely it is with each count."""
    column = counts[:, None]
    log_chance = scipy.special.xlogy(column, rates) + scipy.special.xlog1py(m - column, -rates)
    chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
    turned = np.ascontiguousarray(chance.T)
    # The likelihood hardly tells items that are rarely shown from those that never are. EM
    # starts with all items that the sample does not show at the lowest rate, and moves from
    # there only those that the counts of the others ask for.
    unseen = frequency[0] if counts[0] == 0 else 0.0
    share = np.full(len(rates), (1.0 - unseen) / len(rates))
    share[0] += unseen
    for _ in range(_EPOCHS):
        share = share * (turned @ (frequency / (chance @ share)))
    likely = chance * share
    return share, likely / likely.sum(axis=1, keepdims=True)


def _fit_worth(
    expected: FloatArray, likely: FloatArray, count_of: NDArray[np.int64], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find the mean and the variance of what a showing is worth at each rate.

    An item's rate is not known, only how likely each is with its count. A regression on the
    mean over these tells the worth by rate; the worth by count would vary less.
    """
    # Below the rates that a sample can tell the worth stays the same.
    place = np.log(np.maximum(expected, 0.3))
    powers = np.vander((place - place[0]) / (place[-1] - place[0]), 3)
    size = len(likely)
    showings = np.bincount(count_of, minlength=size)
    sums = np.stack([np.bincount(count_of, weights**power, size) for power in (1, 2)], axis=1)
    seen = showings > 0
    root = np.sqrt(showings[seen, None])
    means = sums[seen] / root**2
    found, *_ = np.linalg.lstsq((likely @ powers)[seen] * root, means * root, rcond=1e-6)
    worth, square = (powers @ found).T
    worth = np.clip(worth, means[:, 0].min(), means[:, 0].max())
    return worth, np.maximum(square - worth**2, 1e-9 * worth**2)


_NODES = 256
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_BINOMIAL_UP_TO = 1e4
"""Above so many showings a normal distribution stands for the binomial one."""


def _expected_gini(
    rates: FloatArray, share: FloatArray, worth: FloatArray, spread: FloatArray, n: int
) -> float:
    """Give the Gini of n lists.

    The items of a rate are cut into equal parts. A part has a number of showings, by quantiles of
    the binomial distribution above 0, and an exposure, by those of a gamma distribution. The
    second quantiles follow the golden ratio, so that the pairs fill the square evenly.
    """
    turn = np.arange(_NODES)
    rate, scale = rates[:, None], (spread / worth)[:, None]
    log_none = scipy.special.xlog1py(n, -rate)
    some = -np.expm1(log_none)
    level = np.exp(log_none) + some * (turn + 0.5) / _NODES
    few = scipy.special.bdtrik(level, n, rate)
    many = n * rate + np.sqrt(n * rate * (1.0 - rate)) * scipy.special.ndtri(level)
    # A level that rounds to 1 has no quantile but nan, which fmax passes over.
    showings = np.fmax(1.0, np.ceil(np.where(n * rate < _BINOMIAL_UP_TO, few, many)))
    quantile = scipy.special.gammaincinv(
        showings * worth[:, None] / scale, (turn * _GOLDEN + 0.5) % 1.0
    )
    exposure = (scale * quantile).ravel()
    order = np.argsort(exposure)
    part = np.repeat(share * some[:, 0] / _NODES, _NODES)[order]
    held = exposure[order] * part
    # Below a part are all items that are never shown, and the parts with less exposure.
    below = 1.0 - part.sum() + np.cumsum(part) - part
    return float(held @ (2.0 * below + part - 1.0) / held.sum())
