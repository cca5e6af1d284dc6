"""Exact top-k lists from factors, in batches, without ever holding users x items scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import ConfigError, SolveError
from limelight._native import kernels
from limelight.metrics.lists import Lists
from limelight.solve.gramian import LARGEST, largest_entry
from limelight.solve.state import pad_factors

if TYPE_CHECKING:
    from limelight._base.arrays import Float32
    from limelight._native._kernels import Csr


def empty_lists(n_users: int, k: int) -> Lists:
    """Make lists that hold padding only.

    Examples
    --------
    >>> empty_lists(1, 2)
    Lists(ids=array([[-1, -1]], dtype=int32), scores=array([[-inf, -inf]], dtype=float32))
    """
    ids = np.full((n_users, k), -1, dtype=np.int32)
    return Lists(ids, np.full((n_users, k), -np.inf, dtype=np.float32))


class ItemIndex:
    """Item factors, one row an item, laid out for searches.

    Examples
    --------
    >>> items = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    >>> index = ItemIndex(items, threads=1)
    >>> index.search(np.array([[2.0, 1.0]], dtype=np.float32), k=2).ids
    array([[2, 0]], dtype=int32)
    """

    def __init__(self, item_factors: Float32, threads: int) -> None:
        self._n_items = len(item_factors)
        self._threads = threads
        self._largest = item_factors.shape[1] * largest_entry(item_factors)
        self._catalogue = kernels.Catalogue(pad_factors(item_factors), threads)

    def search(self, queries: Float32, k: int, history: Csr | None = None) -> Lists:
        """Return the k items with the largest scores; equal scores go to the lower item number.

        Queries and the items to leave out have one row a user. Where fewer than k items are left, a
        list ends in -1 and -inf.
        """
        if k < 1:
            message = f"k must be at least 1: {k}"
            raise ConfigError(message, hint="k is the length of the lists")
        self._refuse_overflow(queries)
        ids, scores = empty_lists(len(queries), k)
        found = min(k, self._n_items)
        if found == k:
            top_ids, top_scores = ids, scores
        else:
            top_ids, top_scores = ids[:, :found].copy(), scores[:, :found].copy()
        self._catalogue.top_k(
            pad_factors(queries), history, ids=top_ids, scores=top_scores, threads=self._threads
        )
        ids[:, :found], scores[:, :found] = top_ids, top_scores
        return Lists(ids, scores)

    def _refuse_overflow(self, queries: Float32) -> None:
        """Refuse factors whose products are beyond 32 bits: items would be missing from lists."""
        bound = self._largest * largest_entry(queries)
        if not bound <= LARGEST:
            message = f"scores are too large for 32-bit numbers: up to {bound:.3g}"
            raise SolveError(message, hint="the factors ran away; fit again, with usual settings")
