"""Accuracy and exposure of lists that arrive in batches or in rows, on one machine or on many.

Sums of weights are whole numbers: they have the same bits in whatever order, and on however many
machines. A weight from 0 to 1 is a whole number of units of 2^-56, which is as fine as its own last
digit or finer down to a weight of 1/16. It is kept in two halves of 28 bits, whose sums stay within
64 bits for 2^35 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limelight._base.arrays import blocks
from limelight._base.errors import ConfigError, DataError
from limelight.metrics.accuracy import Sparse, match, ndcg_of, recall_of
from limelight.metrics.exposure import coverage, entropy, gini, handout_gini, top_share
from limelight.metrics.intervals import bootstrap_interval
from limelight.metrics.lists import (
    FloatArray,
    IntArray,
    check_cutoffs,
    check_lists,
    check_positive,
    position_weights,
    rank_weights,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from limelight._base.arrays import Int64


_HALF = 28


def exact_sums(items: IntArray, weights: FloatArray, n_items: int) -> Int64:
    """Add up the weights of each item; sums of other rows may be added to the result.

    Parameters
    ----------
    items
        The item of each row.
    weights
        From 0 to 1.
    n_items
        How many items there are.

    Returns
    -------
    2 x items whole numbers, for :func:`as_weights`.

    Examples
    --------
    >>> one = exact_sums(np.array([0, 1, 0]), np.array([0.1, 0.5, 0.2]), n_items=3)
    >>> as_weights(one), as_weights(one + one)
    (array([0.3, 0.5, 0. ]), array([0.6, 1. , 0. ]))
    """
    sums = np.zeros((2, n_items), dtype=np.int64)
    for rows in blocks(len(items)):
        units = np.rint(np.ldexp(weights[rows], 2 * _HALF))
        upper = np.floor(np.ldexp(units, -_HALF))
        # Exact: a block's sum of 28-bit numbers has at most 49 bits.
        sums[0] += np.bincount(items[rows], upper, n_items).astype(np.int64)
        lower = units - np.ldexp(upper, _HALF)
        sums[1] += np.bincount(items[rows], lower, n_items).astype(np.int64)
    return sums


def as_weights(sums: Int64) -> FloatArray:
    """Turn whole numbers back into sums of weights, rounded once."""
    upper, lower = sums.astype(np.float64)
    return np.asarray(np.ldexp(upper, -_HALF) + np.ldexp(lower, -2 * _HALF))


def exposure_metrics(
    weighted: FloatArray, shown: ArrayLike, floor: float, k: int
) -> dict[str, float]:
    """Name the exposure metrics of lists of length k.

    Parameters
    ----------
    weighted
        Exposure of each item with log weight.
    shown
        Number of lists that show each item.
    floor
        About the lowest Gini that these lists could reach.
    k
        Length of the lists.

    Examples
    --------
    >>> metrics = exposure_metrics(np.array([1.0, 1.0, 0.0, 0.0]), [1, 1, 0, 0], 0.5, k=1)
    >>> metrics["gini@1"], metrics["coverage@1"]
    (0.5, 0.5)
    """
    return {
        f"gini@{k}": gini(weighted),
        f"gini_uniform@{k}": gini(shown),
        f"gini_floor@{k}": floor,
        f"coverage@{k}": coverage(shown),
        f"entropy@{k}": entropy(weighted),
        f"top_share@{k}": top_share(weighted),
    }


class ListAccumulator:
    """Collects accuracy and exposure of ranked lists, batch by batch.

    Sums over batches do not depend on how the users were divided among batches or machines:
    `merge` adds what another accumulator saw. Only the bounds of accuracy depend on the order in
    which users came.

    Parameters
    ----------
    n_items
        Size of the catalogue.
    k
        One or several cutoffs.

    Examples
    --------
    >>> first, second = ListAccumulator(4, k=2), ListAccumulator(4, k=2)
    >>> first.update([[0, 1]])
    >>> second.update([[2, 3], [0, 1]])
    >>> first.merge(second)
    >>> first.result()["coverage@2"], first.result()["users"]
    (1.0, 3)
    """

    def __init__(self, n_items: int, k: int | Sequence[int] = (5, 20)) -> None:
        check_positive(n_items, "n_items")
        self.n_items = n_items
        self.k = check_cutoffs(k)
        # Row c belongs to the ranks between the cutoffs c-1 and c; their sum gives cutoff c.
        self._weighted = np.zeros((len(self.k), 2, n_items), dtype=np.int64)
        self._shown = np.zeros((len(self.k), n_items), dtype=np.int64)
        self._places = np.zeros(self.k[-1], dtype=np.int64)
        self._accuracy: list[FloatArray] = []
        self._users = 0

    def update(self, ids: ArrayLike, targets: Sparse | None = None) -> None:
        """Add the lists of some users.

        Parameters
        ----------
        ids
            Users x k item numbers, at least as long as the largest cutoff, padded with -1.
        targets
            Sparse users x items matrix of held-out items. Users without any are left out, of
            the accuracy and of the exposure alike. Without it only exposure is measured.
        """
        lists = check_lists(ids, self.n_items, self.k[-1])
        self._refuse_mixture(with_targets=targets is not None, rows=len(lists))
        if targets is not None:
            lists = self._add_accuracy(lists, targets)
        self._add_exposure(lists)
        self._users += len(lists)

    def merge(self, other: ListAccumulator) -> None:
        """Add what another accumulator with the same catalogue and cutoffs has seen."""
        if (self.n_items, self.k) != (other.n_items, other.k):
            mine, theirs = (f"n_items={a.n_items}, k={a.k}" for a in (self, other))
            message = f"accumulators differ: {mine} and {theirs}"
            raise ConfigError(message, hint="make all of them with the same n_items and k")
        self._refuse_mixture(with_targets=bool(other._accuracy), rows=other._users)
        self._weighted += other._weighted
        self._shown += other._shown
        self._places += other._places
        self._accuracy += other._accuracy
        self._users += other._users

    def result(self, *, bounds: bool = True) -> dict[str, float]:
        """Give all metrics under flat keys such as "ndcg@20" and "gini@20".

        "users" and "items" say of how many lists, and over how many items, the metrics are.

        Accuracy comes with the bounds of its 95 % bootstrap interval, "ndcg@20_low" and
        "ndcg@20_high". "gini@20" has log weight, "gini_uniform@20" uniform weight;
        "gini_floor@20" is about the lowest log-weighted Gini that so many lists can reach.
        "top_share@20" is the share of the exposure that the top 1 % of the items hold.

        Parameters
        ----------
        bounds
            Whether to give intervals, which take most of the time.
        """
        if not self._users:
            message = f"no lists to measure: {self._users} scored users"
            raise DataError(message, hint="add lists first, of users that have targets")
        metrics: dict[str, float] = {"users": self._users, "items": self.n_items}
        accuracy = self._accuracy_metrics(bounds=bounds)
        for row, k in enumerate(self.k):
            metrics |= accuracy.get(k, {})
            floor = handout_gini(position_weights(k), self._places[:k], self.n_items)
            weighted = as_weights(self._weighted[: row + 1].sum(axis=0))
            metrics |= exposure_metrics(weighted, self._shown[: row + 1].sum(axis=0), floor, k)
        return metrics

    def exposure(self) -> FloatArray:
        """Give the log-weighted exposure of every item at the largest cutoff."""
        return as_weights(self._weighted.sum(axis=0))

    def _refuse_mixture(self, *, with_targets: bool, rows: int) -> None:
        if self._users and rows and with_targets != bool(self._accuracy):
            message = "some lists came with targets and some without"
            raise ConfigError(message, hint="pass targets with every batch or with none")

    def _add_accuracy(self, lists: IntArray, targets: Sparse) -> IntArray:
        """Keep the values of every scored user and return the lists of those users."""
        if targets.shape[1] != self.n_items:
            message = f"targets have {targets.shape[1]:,} items, the catalogue {self.n_items:,}"
            raise DataError(message, hint="number the items of lists and targets the same way")
        matches = match(lists, targets)
        values = [metric(matches, k) for k in self.k for metric in (ndcg_of, recall_of)]
        scored = matches.n_targets > 0
        if scored.any():
            self._accuracy.append(np.stack(values, axis=1)[scored])
        return lists[scored]

    def _add_exposure(self, lists: IntArray) -> None:
        weights = position_weights(self.k[-1])
        for row, (start, stop) in enumerate(zip((0, *self.k), self.k, strict=False)):
            ranks = lists[:, start:stop]
            filled = ranks >= 0
            items = ranks[filled]
            worth = np.broadcast_to(weights[start:stop], ranks.shape)[filled]
            self._weighted[row] += exact_sums(items, worth, self.n_items)
            self._shown[row] += np.bincount(items, minlength=self.n_items)
            self._places[start:stop] += filled.sum(axis=0)

    def _accuracy_metrics(self, *, bounds: bool) -> dict[int, dict[str, float]]:
        if not self._accuracy:
            return {}
        values = np.concatenate(self._accuracy)
        # The mean of sorted values: the same bits in whatever order the users came.
        rows = {"": np.sort(values, axis=0).mean(axis=0)}
        if bounds:
            rows |= dict(zip(("_low", "_high"), bootstrap_interval(values), strict=True))
        names = [f"{metric}@{k}" for k in self.k for metric in ("ndcg", "recall")]
        metrics: dict[int, dict[str, float]] = {k: {} for k in self.k}
        for column, name in enumerate(names):
            found = {f"{name}{side}": float(row[column]) for side, row in rows.items()}
            metrics[self.k[column // 2]] |= found
        return metrics


LENSKIT_PATIENCE = 0.85


@dataclass(frozen=True)
class Tally:
    """What the rows give to each item, under three weights, and how many places have each rank.

    Examples
    --------
    >>> one = tally(np.array([0, 1]), np.array([1, 2]), n_items=3)
    >>> one.plus(one).shown, one.plus(one).places
    (array([2, 2, 0]), array([2, 2]))
    """

    weighted: NDArray[Any]
    """With the weight 1 / log2(rank + 1)."""

    shown: Int64
    """With the weight 1: the number of lists that show the item."""

    patient: NDArray[Any]
    """With the weight 0.85^(rank - 1), LensKit's; only to convert figures."""

    ranks: NDArray[np.int32]
    places: Int64

    def plus(self, other: Self) -> Self:
        """Add what other rows give to the same items."""
        ranks, back = np.unique(np.concatenate([self.ranks, other.ranks]), return_inverse=True)
        places = np.zeros(len(ranks), dtype=np.int64)
        np.add.at(places, back, np.concatenate([self.places, other.places]))
        return type(self)(
            self.weighted + other.weighted,
            self.shown + other.shown,
            self.patient + other.patient,
            ranks,
            places,
        )


class Counts(Tally):
    """A tally in units of `exact_sums`: those of any parts of the rows add up to that of all."""

    def among(self, numbers: NDArray[np.int32], n_items: int) -> Counts:
        """Number the items anew, in a larger catalogue."""

        def wider(sums: Int64) -> Int64:
            wide = np.zeros((*sums.shape[:-1], n_items), dtype=np.int64)
            wide[..., numbers] = sums
            return wide

        weighted, shown, patient = map(wider, (self.weighted, self.shown, self.patient))
        return Counts(weighted, shown, patient, self.ranks, self.places)

    def tally(self) -> Tally:
        """Return what each item was given, rounded once."""
        weighted, patient = as_weights(self.weighted), as_weights(self.patient)
        return Tally(weighted, self.shown, patient, self.ranks, self.places)


def count(items: NDArray[np.int32], ranks: NDArray[np.int32], n_items: int) -> Counts:
    """Count what rows of lists give to each item.

    Examples
    --------
    >>> one = count(np.array([0, 1]), np.array([1, 3]), n_items=3)
    >>> one.plus(one).tally().weighted
    array([2., 1., 0.])
    """
    weighted, patient = (np.zeros((2, n_items), dtype=np.int64) for _ in range(2))
    shown = np.zeros(n_items, dtype=np.int64)
    for block in blocks(len(items)):
        item, rank = items[block], ranks[block]
        weighted += exact_sums(item, rank_weights(rank), n_items)
        patient += exact_sums(item, np.power(LENSKIT_PATIENCE, rank - 1.0), n_items)
        shown += np.bincount(item, minlength=n_items)
    return Counts(weighted, shown, patient, *np.unique(ranks, return_counts=True))


def tally(items: NDArray[np.int32], ranks: NDArray[np.int32], n_items: int) -> Tally:
    """Add up what rows of lists give to each item.

    Examples
    --------
    >>> tally(np.array([0, 1, 0]), np.array([1, 3, 1]), n_items=3).weighted
    array([2. , 0.5, 0. ])
    """
    return count(items, ranks, n_items).tally()


def floor_of(counts: Tally) -> float:
    """Give about the lowest Gini that so many places could have.

    Examples
    --------
    >>> floor_of(tally(np.array([0, 0]), np.array([1, 1]), n_items=4))
    0.5
    """
    return handout_gini(rank_weights(counts.ranks), counts.places, len(counts.weighted))
