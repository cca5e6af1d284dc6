"""FairRec+: users who like each other's items better swap them after every round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import ConfigError
from limelight.metrics.lists import Lists
from limelight.recommend.ranking import empty_lists, own_lists

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32, Int64
    from limelight.recommend.ranking import Ranking

MOST_PAIRS = 25_000_000
"""The largest number of scores, and of pairs of users, that are held."""


def play_envy_free(
    ranking: Ranking, order: Int32, copies: int | Int32, *, k: int
) -> tuple[Lists, Lists, int]:
    """Hand out copies in turns, and let users swap what they hold after every round.

    There are so many copies of every item, or of each. Everybody's scores are shifted so that the
    least of them is 0; an item that is hidden from a user is worth nothing to her, and leaves her
    list if a swap brought it there. ``order`` is that of the first round; in every other, those
    whom others envy come last. Returns what was handed out, everybody's own lists, and how many
    copies that took.
    """
    _check_size(ranking)
    own = own_lists(ranking, ranking.n_items)
    scores = np.full((ranking.n_users, ranking.n_items), -np.inf)
    rows, places = np.nonzero(own.ids >= 0)
    scores[rows, own.ids[rows, places]] = own.scores[rows, places]
    order = order[own.ids[order, 0] >= 0]
    lists = _as_lists(_play(scores, order, copies, k), scores)
    handed_out = int((lists.ids >= 0).sum())
    return lists, Lists(own.ids[:, :k], own.scores[:, :k]), handed_out


def _check_size(ranking: Ranking) -> None:
    n_users, n_items = ranking.n_users, ranking.n_items
    if n_users * max(n_users, n_items) > MOST_PAIRS:
        message = (
            f"envy_free compares everybody with everybody, too many here: "
            f"{n_users:,} users x {max(n_users, n_items):,}"
        )
        hint = f"at most {MOST_PAIRS:,} pairs of users, or of users and items, can be compared"
        raise ConfigError(message, hint=f"{hint}; use envy_free=False")


def _play(scores: Float64, order: Int32, copies: int | Int32, k: int) -> Int32:
    """Return everybody's items, a column a round."""
    n_users = len(scores)
    values = _values(scores)
    worth = np.zeros((n_users, n_users))  # of the bundle in the column, to the user in the row
    stock = np.full(scores.shape[1], copies)
    bundles = np.full((n_users, k), -1, dtype=np.int32)
    handed_out, last = 0, min(int(stock.sum()), len(order) * k)
    for column in range(k):
        turns = order[: last - handed_out]
        taken = _take_turns(scores, turns, stock, bundles, column)
        handed_out += taken
        holders = turns[:taken]
        worth[:, holders] += values[:, bundles[holders, column]]
        sources, served = swap_along_cycles(worth, order)
        bundles, worth = bundles[sources], worth[:, sources]
        # Users envy only those who were served before them: the last served choose first.
        order = served[::-1]
        if taken < len(turns) or handed_out == last:
            break
    return bundles


def _values(scores: Float64) -> Float64:
    """Shift every user's scores so that the least is 0, which is what a hidden item is worth."""
    listed = np.isfinite(scores)
    least = np.where(listed, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(listed, scores, least) - np.where(np.isfinite(least), least, 0)


def _take_turns(scores: Float64, turns: Int32, stock: Int64, bundles: Int32, column: int) -> int:
    """Let users take their best items until somebody can take none; return how many did."""
    for taken, user in enumerate(turns):
        wanted = np.where(stock > 0, scores[user], -np.inf)
        wanted[bundles[user, :column]] = -np.inf
        item = wanted.argmax()
        if wanted[item] == -np.inf:
            return taken
        bundles[user, column] = item
        stock[item] -= 1
    return len(turns)


def swap_along_cycles(worth: Float64, users: Int32) -> tuple[Int32, Int32]:
    """Rotate bundles along cycles of envy until there are none.

    Everybody points to the bundle that she likes best of those left, her own if none is better.
    Following the pointers ends in a cycle; its members take what they point to, and leave.
    Nobody envies those who leave with her or after her, so that no cycle of envy remains. Worth is
    what the user in the row thinks of the bundle of the user in the column.

    Returns
    -------
    sources, served
        Whose bundle each user takes, and the users in the order in which they left.

    Examples
    --------
    >>> worth = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [9.0, 0.0, 1.0]])
    >>> sources, served = swap_along_cycles(worth, np.arange(3, dtype=np.int32))
    >>> sources.tolist(), served.tolist()
    ([1, 0, 2], [0, 1, 2])
    """
    sources = np.arange(len(worth), dtype=np.int32)
    gone = np.ones(len(worth), dtype=np.bool_)
    gone[users] = False
    served: list[int] = []
    for start in users.tolist():
        path = [] if gone[start] else [start]
        while path:
            best = _favourite(worth, path[-1], gone)
            if best not in path:
                path.append(best)
                continue
            cycle = path[path.index(best) :]
            del path[-len(cycle) :]
            sources[cycle] = cycle[1:] + cycle[:1]
            gone[cycle] = True
            served += cycle
    return sources, np.array(served, dtype=np.int32)


def _favourite(worth: Float64, user: int, gone: np.ndarray) -> int:
    left = np.where(gone, -np.inf, worth[user])
    best = int(left.argmax())
    return user if left[user] == left[best] else best


def _as_lists(bundles: Int32, scores: Float64) -> Lists:
    """Give bundles their scores, without what is hidden from their holders."""
    lists = empty_lists(*bundles.shape)
    held = np.take_along_axis(scores, np.maximum(bundles, 0), axis=1)
    shown = (bundles >= 0) & np.isfinite(held)
    lists.ids[shown], lists.scores[shown] = bundles[shown], held[shown]
    return lists
