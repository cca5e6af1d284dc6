"""Candidates from anybody's recommender, as a ranking of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight.data.candidates import Candidates
from limelight.data.grouping import row_starts
from limelight.data.pair_keys import cut_rows
from limelight.recommend.ranking import Ranking
from limelight.recommend.topk import Lists, empty_lists

if TYPE_CHECKING:
    from limelight._arrays import Float32, Int32, Int64
    from limelight.data.candidates import Block

_PAIRS = 1 << 22
"""How many candidates are looked at together, which bounds what a search holds."""


class CandidateRanking:
    """Every user ranks her candidates by score, and nothing else.

    Parameters
    ----------
    candidates
        Of all users; they must stay open as long as this is used.
    items
        The only items to list; all, unless given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.candidates import read_candidates
    >>> table = pa.table({"user_id": [1, 1, 2], "item_id": [0, 7, 7], "score": [0.5, 0.9, 0.1]})
    >>> ranking = CandidateRanking(read_candidates(table))
    >>> ranking.top(np.array([0, 1]), k=2).ids
    array([[ 1,  0],
           [ 1, -1]], dtype=int32)
    >>> ranking.among(np.array([0], dtype=np.int32)).top(np.array([0]), k=2).ids
    array([[ 0, -1]], dtype=int32)
    """

    def __init__(self, candidates: Candidates, *, items: Int32 | None = None) -> None:
        self.n_users, self.n_items = candidates.n_users, candidates.n_items
        self._candidates = candidates
        self._is_listed: np.ndarray | None = None
        if items is not None:
            self._is_listed = np.zeros(self.n_items, dtype=np.bool_)
            self._is_listed[items] = True

    @property
    def candidates(self) -> Candidates | None:
        """The candidates, unless some of their items are not to be listed."""
        return self._candidates if self._is_listed is None else None

    def top(self, users: Int64, k: int) -> Lists:
        """Return the first k items of some users; only their candidates are read."""
        lists = empty_lists(len(users), k)
        for rows in cut_rows(row_starts(self._candidates.counts_of(users)), _PAIRS):
            block = self._listed(self._candidates.take(users[rows]))
            for found, values in ((lists.ids, block.items), (lists.scores, block.scores)):
                _put_first(values, block.indptr, found[rows])
        return lists

    def among(self, items: Int32) -> CandidateRanking:
        """Return the ranking of these items alone."""
        return CandidateRanking(self._candidates, items=items)

    def _listed(self, block: Block) -> Block:
        """Leave out what is not to be listed."""
        if self._is_listed is None:
            return block
        is_listed = self._is_listed[block.items]
        ends = np.append(0, np.cumsum(is_listed))
        return block._replace(
            indptr=ends[block.indptr], items=block.items[is_listed], scores=block.scores[is_listed]
        )


def _put_first(values: Int32 | Float32, indptr: Int64, out: np.ndarray) -> None:
    """Put the first values of each row into a row of `out`, as many as fit."""
    place = np.arange(out.shape[1])
    is_there = place < np.diff(indptr)[:, None]
    out[is_there] = values[(indptr[:-1, None] + place)[is_there]]


def as_ranking(source: Any) -> Ranking:
    """Take candidates for a ranking, and refuse what is neither.

    Examples
    --------
    >>> as_ranking([[1, 2]])
    Traceback (most recent call last):
    limelight._errors.DataError: a ranking or candidates are wanted, not list
    ...
    """
    if isinstance(source, Candidates):
        return CandidateRanking(source)
    if isinstance(source, Ranking):
        return source
    message = f"a ranking or candidates are wanted, not {type(source).__name__}"
    raise DataError(message, hint="pass model.ranking(...) or limelight.data.read_candidates(...)")
