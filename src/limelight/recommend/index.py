"""Item factors as searches want them, laid out once for any number of searches."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import ConfigError, SolveError
from limelight._native import kernels
from limelight.metrics.lists import Lists
from limelight.recommend.fold_in import column_numbers, renumbered
from limelight.solve.problem import LARGEST, largest_entry
from limelight.solve.state import pad_factors

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Int32
    from limelight._native._kernels import Csr

LEAST_ITEMS = 4096
"""Of fewer items, a first pass would leave too many."""


class ItemIndex:
    """Item factors, one row an item, laid out for searches; with ``items``, of these alone.

    Examples
    --------
    >>> items = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    >>> index = ItemIndex(items, threads=1)
    >>> index.search(np.array([[2.0, 1.0]], dtype=np.float32), k=2).ids
    array([[2, 0]], dtype=int32)
    """

    def __init__(self, item_factors: Float32, threads: int, items: Int32 | None = None) -> None:
        self._items, self._numbers = items, None
        if items is not None:
            self._numbers = column_numbers(items, len(item_factors))
            item_factors = item_factors[items]
        self._n_items = len(item_factors)
        self._threads = threads
        self._largest = item_factors.shape[1] * largest_entry(item_factors)
        self._catalogue = kernels.Catalogue(pad_factors(item_factors), threads)

    def with_first_pass(self) -> ItemIndex:
        """Return an index that finds the same by a first pass over items as bytes.

        It is faster where few users are looked up at once, and takes a quarter of the memory of the
        factors in addition. Small catalogues have no use for it.
        """
        if self._n_items < LEAST_ITEMS:
            return self
        found = copy.copy(self)
        found._catalogue = self._catalogue.with_first_pass(self._threads)
        return found

    def search(
        self, queries: Float32, k: int, history: Csr | None = None, threads: int | None = None
    ) -> Lists:
        """Return the k items with the largest scores; equal scores go to the lower item number.

        Queries and the items to leave out have one row a user. Where fewer than k items are left, a
        list ends in -1 and -inf. ``threads`` count in place of those that it was made with.
        """
        if self._items is None or self._numbers is None:
            return self._search(queries, k, history, threads)
        if history is not None:
            history = renumbered(history, self._numbers, self._n_items)
        ids, scores = self._search(queries, k, history, threads)
        # The padding, -1, picks the last element, which is -1 again.
        return Lists(np.append(self._items, np.int32(-1))[ids], scores)

    def _search(self, queries: Float32, k: int, history: Csr | None, threads: int | None) -> Lists:
        if k < 1:
            message = f"k must be at least 1: {k}"
            raise ConfigError(message, hint="k is the length of the lists")
        self._refuse_overflow(queries)
        found = min(k, self._n_items)
        ids = np.empty((len(queries), found), dtype=np.int32)
        scores = np.empty((len(queries), found), dtype=np.float32)
        wide, threads = _as_wide(queries), threads or self._threads
        self._catalogue.top_k(wide, history, ids=ids, scores=scores, threads=threads)
        if found < k:
            beyond = (0, 0), (0, k - found)
            ids = np.pad(ids, beyond, constant_values=-1)
            scores = np.pad(scores, beyond, constant_values=-np.inf)
        return Lists(ids, scores)

    def _refuse_overflow(self, queries: Float32) -> None:
        """Refuse factors whose products are beyond 32 bits: items would be missing from lists."""
        bound = self._largest * largest_entry(queries)
        if not bound <= LARGEST:
            message = f"scores are too large for 32-bit numbers: up to {bound:.3g}"
            raise SolveError(
                message, hint="the factors diverged; fit again with the default settings"
            )


def _as_wide(queries: Float32) -> Float32:
    """Return queries as wide as the kernels want them, without a copy where they are."""
    if queries.shape[1] % 16 or queries.dtype != np.float32 or not queries.flags.c_contiguous:
        return pad_factors(queries)
    return queries
