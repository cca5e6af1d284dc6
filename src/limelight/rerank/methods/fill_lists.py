"""What users were handed, and how it becomes their lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight.metrics.lists import Lists
from limelight.recommend.topk import empty_lists

if TYPE_CHECKING:
    from limelight.recommend.ranking import Ranking

_ROWS = 1024
"""How many users are filled up at once; each takes k x k comparisons."""


class Picks(NamedTuple):
    """What the first phase handed out."""

    lists: Lists
    """In the order in which it was handed out."""
    own: Lists
    """The first k items of every user's own ranking, which fill up the lists."""
    handed_out: int
    """How many copies were handed out."""


def own_lists(ranking: Ranking, k: int, batch: int = 8192) -> Lists:
    """Return the first k items of everybody's own ranking."""
    own = empty_lists(ranking.n_users, k)
    for rows in batches(ranking.n_users, batch):
        own.ids[rows], own.scores[rows] = ranking.top(np.arange(rows.start, rows.stop), k)
    return own


def fill_up(picks: Picks, *, by_score: bool) -> Lists:
    """Fill up what was handed out with each user's own best items.

    At most h of a user's own first k items are among the h that she was handed, so those k are
    enough to fill a list of k. Lists are sorted by score, equal scores by number; or else what was
    handed out comes first.

    Examples
    --------
    >>> handed = Lists(np.array([[4, -1]], np.int32), np.array([[0.1, -np.inf]], np.float32))
    >>> own = Lists(np.array([[2, 0]], np.int32), np.array([[0.9, 0.5]], np.float32))
    >>> fill_up(Picks(handed, own, 1), by_score=True).ids
    array([[2, 4]], dtype=int32)
    """
    n_users, k = picks.lists.ids.shape
    lists = empty_lists(n_users, k)
    for rows in batches(n_users, _ROWS):
        handed, own = (Lists(part.ids[rows], part.scores[rows]) for part in picks[:2])
        repeated = (own.ids[:, :, None] == handed.ids[:, None, :]).any(axis=2)
        ids = np.hstack([handed.ids, np.where(repeated, -1, own.ids)])
        scores = np.hstack([handed.scores, own.scores])
        _keep(ids, scores, np.argsort(ids < 0, axis=1, kind="stable")[:, :k], lists, rows)
        if by_score:
            ids, scores = lists.ids[rows], lists.scores[rows]
            _keep(ids, scores, np.lexsort((ids, -scores)), lists, rows)
    return lists


def _keep(ids: np.ndarray, scores: np.ndarray, places: np.ndarray, out: Lists, rows: slice) -> None:
    """Put the entries at some places of each row into lists."""
    chosen = np.take_along_axis(ids, places, axis=1)
    out.scores[rows] = np.where(chosen < 0, -np.inf, np.take_along_axis(scores, places, axis=1))
    out.ids[rows] = chosen
