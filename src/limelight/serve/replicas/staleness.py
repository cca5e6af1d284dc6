"""How old the news of other processes may be before prices are too old."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limelight.serve.ledger.ledger import Ledger

_AT_ONCE, _AT_ONCE_OF_GROUP = 0.02, 0.05


def lists_at_same_prices(lists: float, k: int, n_candidates: int, n_groups: int = 0) -> float:
    """Return how many lists may be made before prices must follow; at least one.

    The rule of the re-ranker's market: all of them together could move no item by more than 2 % of
    what it may expect in the window, even if every list that has it for a candidate took it, and no
    group by more than 5 %.

    Parameters
    ----------
    lists
        In the window.
    k
        Places of a list.
    n_candidates
        Of a list.
    n_groups
        That have caps or floors; all lists may give all their places to one of them.

    Examples
    --------
    >>> lists_at_same_prices(100_000, k=20, n_candidates=500)
    80.0
    """
    bound = _AT_ONCE * lists * k / max(n_candidates, k)
    if n_groups:
        bound = min(bound, _AT_ONCE_OF_GROUP * lists / n_groups)
    return max(bound, 1.0)


def staleness_bound(ledger: Ledger, k: int, n_candidates: int, rate: float | None = None) -> float:
    """Return after how many seconds without news prices are too old.

    Parameters
    ----------
    ledger
        What is known.
    k, n_candidates
        Of a list.
    rate
        Lists a second, of all processes; by default the mean rate of the window.
    """
    n_groups = len(ledger.group_totals)
    seconds = ledger.window or (ledger.half_life or 1.0) / log(2)
    # A window that begins to fill will have lists; with few, the rule allows at least one.
    lists = max(float(ledger.lists), n_candidates / (_AT_ONCE * k))
    most = lists_at_same_prices(lists, k, n_candidates, n_groups)
    return float(most / max(lists / seconds if rate is None else rate, 1e-9))
