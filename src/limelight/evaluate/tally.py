"""The exposure of every item, added up over the rows of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.evaluate.floor import handout_gini
from limelight.evaluate.lists import FloatArray, rank_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BLOCK_ROWS = 1 << 20
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


def tally(items: NDArray[np.int32], ranks: NDArray[np.int32], n_items: int) -> Tally:
    """Add up what rows of lists give to each item.

    Examples
    --------
    >>> tally(np.array([0, 1, 0]), np.array([1, 3, 1]), n_items=3).weighted
    array([2. , 0.5, 0. ])
    """
    weighted, patient = np.zeros(n_items), np.zeros(n_items)
    shown = np.zeros(n_items, dtype=np.int64)
    for block in blocks(len(items)):
        item, rank = items[block], ranks[block]
        weighted += np.bincount(item, rank_weights(rank), n_items)
        patient += np.bincount(item, LENSKIT_PATIENCE ** (rank - 1.0), n_items)
        shown += np.bincount(item, minlength=n_items)
    return Tally(weighted, shown, patient, *np.unique(ranks, return_counts=True))


def blocks(n_rows: int) -> Iterator[slice]:
    """Walk over rows in blocks, so that temporary arrays stay small.

    Examples
    --------
    >>> list(blocks(3))
    [slice(0, 1048576, None)]
    """
    return (slice(start, start + BLOCK_ROWS) for start in range(0, n_rows, BLOCK_ROWS))


def floor_of(counts: Tally) -> float:
    """Give about the lowest Gini that so many places could have.

    Examples
    --------
    >>> floor_of(tally(np.array([0, 0]), np.array([1, 1]), n_items=4))
    0.5
    """
    return handout_gini(rank_weights(counts.ranks), counts.places, len(counts.weighted))
