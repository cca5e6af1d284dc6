"""Items that are alike: the nearest to each of some items, by their own ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight.recommend.request import ITEM_HINT, numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Int64
    from limelight.data.interactions import Ids

_SCORES = 1 << 24
"""How many similarities are held at once."""


class SimilarItems(NamedTuple):
    """The nearest items of some items, one row each."""

    ids: Ids
    scores: Float32


def cosines(vectors: Float32, items: Int64) -> Float32:
    """Return the cosines between some items and all items; a vector of zeros has only zeros.

    Examples
    --------
    >>> vectors = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]], dtype=np.float32)
    >>> cosines(vectors, np.array([0])).round(2)
    array([[1.  , 0.71, 0.  ]], dtype=float32)
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    found: Float32 = units[items] @ units.T
    return found.clip(-1, 1)


def similar_items(
    similarities: Callable[[Int64], Float32], item_ids: Ids, items: Any, k: int
) -> SimilarItems:
    """Return the k items that are most alike to each of some items, themselves left out.

    ``similarities`` gives one row for each of the numbers that it is called with, and one column
    for each item.
    """
    asked = numbers_of(items, item_ids, "item", ITEM_HINT)
    k = min(k, len(item_ids) - 1)
    nearest = np.empty((len(asked), k), dtype=np.int64)
    scores = np.empty((len(asked), k), dtype=np.float32)
    for rows in batches(len(asked), max(1, _SCORES // len(item_ids))):
        found = np.array(similarities(asked[rows]), dtype=np.float32)
        np.put_along_axis(found, asked[rows, None], -np.inf, axis=1)
        # The first k in any order, by number, then by score: equals go to the lower number.
        best = np.sort(np.argpartition(-found, k, axis=1)[:, :k], axis=1)
        order = np.argsort(-np.take_along_axis(found, best, axis=1), axis=1, kind="stable")
        nearest[rows] = np.take_along_axis(best, order, axis=1)
        scores[rows] = np.take_along_axis(found, nearest[rows], axis=1)
    return SimilarItems(item_ids[nearest], scores)
