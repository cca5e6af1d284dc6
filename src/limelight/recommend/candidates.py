"""Candidates made of rankings and of other candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.arrays import batches
from limelight.data.candidates.candidates import MEMORY, Candidates
from limelight.data.candidates.sorter import BUFFER_BYTES, PairSorter
from limelight.data.candidates.storage import MemoryArray, PairRows
from limelight.data.rows import cut_rows, pair_numbers, row_numbers, row_starts
from limelight.recommend.ranking import CandidateRanking, as_ranking

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from scipy.sparse import csr_matrix

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight.data.interactions import Ids
    from limelight.recommend.ranking import Ranking

_ROWS = 4096
"""How many users are searched for at once, at most."""
_PAIRS = 1 << 21
"""How many candidates are looked at together."""
_MOST_PAIRS = 1 << 29
"""How many candidates are kept for the users of a model, unless told otherwise."""
_FEWEST, _MOST = 500, 8000
"""How many each of them has, at least and at most."""
_PILOT_USERS, _PILOT_PAIRS = 20_000, 1 << 22
"""How many users, with how many candidates that are held in memory, are enough to try things on."""


def candidates_of(
    ranking: Ranking | Candidates,
    width: int | None = None,
    *,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
    ids: tuple[Ids, Ids] | None = None,
) -> Candidates:
    """Keep the first items of everybody's ranking as candidates.

    Parameters
    ----------
    ranking
        Who ranks what. Candidates are returned as they are.
    width
        How many items to keep for each user. Unless given, all of a small catalogue; of a large one
        500 to 8,000, the fewer the more users there are.
    memory, folder
        As for :func:`limelight.data.read_candidates`.
    ids
        The ids of users and items; their numbers, unless given.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.Popularity().fit(ll.marketplace(50, 20, 300).interactions)
    >>> candidates_of(model.ranking(), width=5)
    Candidates(50 users x 20 items, 250 pairs, in memory)
    """
    ranking = as_ranking(ranking)
    if isinstance(ranking, CandidateRanking) and ranking.candidates is not None:
        return ranking.candidates
    if width is None:
        width = usual_width(ranking.n_users)
    width = min(width, ranking.n_items)

    def pairs() -> Iterator[tuple[Int64, Int32, Float32]]:
        for rows in batches(ranking.n_users, batch_rows(width)):
            users = np.arange(rows.start, rows.stop)
            found, scores = ranking.top(users, width)
            row, column = np.nonzero(found >= 0)
            yield users[row], found[row, column], scores[row, column]

    ids = (np.arange(ranking.n_users), np.arange(ranking.n_items)) if ids is None else ids
    return _gather(pairs(), ids, memory, folder)


def usual_width(n_users: int) -> int:
    """Return how many candidates each of so many users has, unless told otherwise.

    Examples
    --------
    >>> usual_width(1000), usual_width(1_000_000)
    (8000, 536)
    """
    return int(np.clip(_MOST_PAIRS // max(n_users, 1), _FEWEST, _MOST))


def batch_rows(width: int) -> int:
    """Return how many users with so many candidates are searched for at once.

    Examples
    --------
    >>> batch_rows(100), batch_rows(4000)
    (4096, 524)
    """
    return min(_ROWS, max(1, _PAIRS // max(width, 1)))


def leave_out_seen(
    candidates: Candidates,
    history: csr_matrix,
    *,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
) -> Candidates:
    """Leave out what users have seen: one row a user, in the numbers of the candidates."""

    def pairs() -> Iterator[tuple[Int64, Int32, Float32]]:
        for rows in cut_rows(candidates.indptr, _PAIRS):
            block = candidates.block(rows.start, rows.stop)
            users = row_numbers(block.indptr)
            starts = history.indptr[rows.start : rows.stop + 1]
            indices = history.indices[starts[0] : starts[-1]]
            seen = pair_numbers(row_numbers(starts - starts[0]), indices, candidates.n_items)
            kept = ~np.isin(pair_numbers(users, block.items, candidates.n_items), seen)
            yield users[kept].astype(np.int64) + rows.start, block.items[kept], block.scores[kept]

    kept = _gather(pairs(), (candidates.user_ids, candidates.item_ids), memory, folder)
    kept.catalogue_given = candidates.catalogue_given
    return kept


def sample_users(
    candidates: Candidates, n_users: int, seed: int, width: int | None = None
) -> Candidates:
    """Return the candidates of so many users, drawn at random, in memory; of each, the first."""
    drawn = np.random.default_rng(seed).permutation(candidates.n_users)[:n_users]
    drawn.sort()

    def pairs() -> Iterator[tuple[Int64, Int32, Float32]]:
        for some in batches(len(drawn), batch_rows(int(candidates.counts.max(initial=1)))):
            block = candidates.take(drawn[some])
            users = row_numbers(block.indptr).astype(np.int64)
            ranks = np.arange(len(users)) - block.indptr[users]
            kept = slice(None) if width is None else ranks < width
            yield users[kept] + some.start, block.items[kept], block.scores[kept]

    user_ids = np.asarray(candidates.user_ids)[drawn]
    memory = BUFFER_BYTES * int(candidates.counts[drawn].sum()) + MEMORY
    return _gather(pairs(), (user_ids, candidates.item_ids), memory, None)


def pilot_users(candidates: Candidates, seed: int) -> Candidates | None:
    """Return the candidates of enough users to try things on; None if there are hardly more."""
    n_users = pilot_size(candidates)
    return sample_users(candidates, n_users, seed) if 2 * n_users < candidates.n_users else None


def pilot_size(candidates: Candidates) -> int:
    """Return how many users are enough to try things on."""
    mean_count = max(candidates.n_pairs / max(candidates.n_users, 1), 1.0)
    return int(min(_PILOT_USERS, max(_PILOT_PAIRS / mean_count, 1)))


def _gather(
    pairs: Iterator[tuple[Int64, Int32, Float32]],
    ids: tuple[Ids, Ids],
    memory: int,
    folder: str | os.PathLike[str] | None,
) -> Candidates:
    """Put together pairs that come user by user; users without any stay, with no candidate.

    Pairs that come in the order of candidates are taken as they are. The sorter is for the others,
    and for more than fit in memory.
    """
    counts = np.zeros(len(ids[0]), dtype=np.int64)
    held: list[tuple[Int32, Int32, Float32]] = []
    sorter: PairSorter | None = None
    try:
        for users, items, scores in pairs:
            counts += np.bincount(users, minlength=len(counts))
            held.append((users.astype(np.int32), items, scores))
            if sorter is None and not (
                _are_in_order(*held[-1]) and counts.sum() <= memory // BUFFER_BYTES
            ):
                sorter = PairSorter(memory, folder)
            if sorter is not None:
                for found in held:
                    sorter.add(*found)
                held.clear()
        rows = _as_rows(held) if sorter is None else sorter.finish()[1]
    except BaseException:
        if sorter is not None:
            sorter.close()
        raise
    return Candidates(row_starts(counts), rows, *ids)


def _are_in_order(users: Int32, items: Int32, scores: Float32) -> bool:
    """Tell whether each user's highest score comes first, ties by item number."""
    falls = scores[1:] < scores[:-1]
    ties = (scores[1:] == scores[:-1]) & (items[1:] > items[:-1])
    return bool((falls | ties | (users[1:] > users[:-1])).all())


def _as_rows(held: list[tuple[Int32, Int32, Float32]]) -> PairRows:
    items = np.concatenate([np.empty(0, np.int32), *(items for _, items, _ in held)])
    scores = np.concatenate([np.empty(0, np.float32), *(scores for _, _, scores in held)])
    # The sorter knows one zero only, so -0 becomes 0 here as well.
    return PairRows(MemoryArray(items), MemoryArray(scores + np.float32(0)))
