"""The exposure of every item, added up over the rows of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.evaluate.floor import handout_gini
from limelight.evaluate.lists import FloatArray, rank_weights
from limelight.evaluate.whole_sums import as_weights, blocks, whole_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._arrays import Int64

LENSKIT_PATIENCE = 0.85


class Tally(NamedTuple):
    """What the rows give to each item, under three weights, and how many places have each rank."""

    weighted: FloatArray
    """With the weight 1 / log2(rank + 1)."""

    shown: NDArray[np.int64]
    """With the weight 1: the number of lists that show the item."""

    patient: FloatArray
    """With the weight 0.85^(rank - 1), LensKit's; only to convert figures."""

    ranks: NDArray[np.int32]
    places: NDArray[np.int64]

    def plus(self, other: Tally) -> Tally:
        """Add what other lists give to the same items.

        Examples
        --------
        >>> one = tally(np.array([0, 1]), np.array([1, 2]), n_items=3)
        >>> one.plus(one).shown, one.plus(one).places
        (array([2, 2, 0]), array([2, 2]))
        """
        ranks, back = np.unique(np.concatenate([self.ranks, other.ranks]), return_inverse=True)
        places = np.bincount(back, np.concatenate([self.places, other.places]))
        return Tally(
            self.weighted + other.weighted,
            self.shown + other.shown,
            self.patient + other.patient,
            ranks,
            places.astype(np.int64),
        )


class Counts(NamedTuple):
    """A tally in whole numbers: counts of any parts of the rows add up to those of all."""

    weighted: Int64
    shown: Int64
    patient: Int64
    ranks: NDArray[np.int32]
    places: Int64

    def plus(self, other: Counts) -> Counts:
        """Add what other rows give to the same items."""
        ranks, back = np.unique(np.concatenate([self.ranks, other.ranks]), return_inverse=True)
        places = np.zeros(len(ranks), dtype=np.int64)
        np.add.at(places, back, np.concatenate([self.places, other.places]))
        return Counts(
            self.weighted + other.weighted,
            self.shown + other.shown,
            self.patient + other.patient,
            ranks,
            places,
        )

    def among(self, numbers: NDArray[np.int32], n_items: int) -> Counts:
        """Number the items anew, in a larger catalogue."""

        def wider(sums: Int64) -> Int64:
            wide = np.zeros((*sums.shape[:-1], n_items), dtype=np.int64)
            wide[..., numbers] = sums
            return wide

        weighted, shown, patient = (wider(sums) for sums in self[:3])
        return Counts(weighted, shown, patient, self.ranks, self.places)

    def tally(self) -> Tally:
        """Return what each item was given."""
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
        weighted += whole_sums(item, rank_weights(rank), n_items)
        patient += whole_sums(item, np.power(LENSKIT_PATIENCE, rank - 1.0), n_items)
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
