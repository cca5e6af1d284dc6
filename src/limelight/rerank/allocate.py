"""Allocate: every item, or group, in at least so many lists and at most so many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.settings import Settings, check_integer, hyperparameters, setting
from limelight._errors import ConfigError, DataError
from limelight._native import resolve_threads
from limelight.recommend.candidate_ranking import as_ranking
from limelight.rerank.auction import Auction, Bounds
from limelight.rerank.base import Reranker
from limelight.rerank.pool import Pool
from limelight.rerank.relevance import BY_RANK, check_law
from limelight.rerank.repair import repair
from limelight.rerank.stage import stage

if TYPE_CHECKING:
    from limelight._arrays import Int32
    from limelight.data.candidates import Candidates
    from limelight.recommend.ranking import Ranking
    from limelight.recommend.topk import Lists
    from limelight.rerank.pool import Law


@dataclass(frozen=True, kw_only=True)
class AllocateConfig(Settings):
    """The settings of :class:`Allocate`."""

    at_least: int = setting(1, "In how many lists every item should stand.")
    at_most: int | None = setting(None, "In how many lists no item should stand more.", at_least=1)
    relevance: Law = setting(
        BY_RANK,
        "What candidates are worth to their users; ``calibrate`` fits it to held-out pairs.",
    )
    candidates: int | None = setting(
        None,
        "How many items of a model's ranking each user chooses from; see ``stage``.",
        at_least=1,
    )
    random_state: int = setting(0, "Seed of the order in which users choose.")
    num_threads: int = setting(
        0, "How many threads to use; 0 means all that the process may use.", at_most=2**12
    )

    def check_own_settings(self) -> None:
        """Check that the bounds leave room, and that the relevance is known."""
        if self.at_most is not None:
            check_integer("at_most", self.at_most, least=max(1, self.at_least))
        check_law(self.relevance)


@dataclass(frozen=True)
class AllocateOutcome:
    """What the last call of :meth:`Allocate.rerank` did."""

    short: int
    """How many items, or groups, stand in fewer lists than they should."""
    over: int
    """How many stand in more."""
    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    gap: float
    """Share of it that lists within the bounds could have kept, at most, and these did not; not a
    number where a bound is broken."""


class Allocate(Reranker):
    """Keeps every item, or group of items, within bounds at about the least loss of relevance.

    Prices are found by auction; what is still missing then is put right by the cheapest swaps.
    ``outcome_`` says whether all bounds hold, and by the duality gap how far from the best possible
    lists these are. Exposure is the number of lists, wherever an item stands in them.

    Parameters are the fields of :class:`~limelight.rerank.allocate.AllocateConfig`, by name.

    Attributes
    ----------
    outcome_ : AllocateOutcome
        Which bounds hold, and at what loss.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.IALS(factors=8, epochs=5).fit(data)
    >>> bounded = ll.Allocate(at_least=10, at_most=60)
    >>> ids, scores = bounded.rerank(model.ranking(), k=10)
    >>> counts = np.bincount(ids.ravel(), minlength=100)
    >>> int(counts.min()), int(counts.max())
    (10, 60)
    """

    config: AllocateConfig
    outcome_: AllocateOutcome
    __init__ = hyperparameters(AllocateConfig)

    def rerank(
        self, ranking: Ranking | Candidates, k: int, *, groups: Int32 | None = None
    ) -> Lists:
        """Return lists of k places, one row for each user of the ranking.

        Parameters
        ----------
        ranking
            Who ranks what, such as ``model.ranking(histories)``, or candidates.
        k
            Length of the lists. Where fewer items are left, a row ends in -1 and -inf.
        groups
            The number of each item's group, from 0; -1 for items without one, which have no bounds.
            Bounds then are of groups.
        """
        check_integer("k", k, least=1)
        ranking = as_ranking(ranking)
        accounts, bounds = self._bounds(ranking, k, groups)
        with Pool(stage(ranking, self.config.candidates), self.config.relevance) as pool:
            auction = Auction(
                pool,
                min(k, ranking.n_items),
                bounds,
                accounts=accounts,
                threads=resolve_threads(self.config.num_threads),
                seed=self.config.random_state,
            )
            auction.run()
            repair(auction)
            kept, own = auction.ledger.relevance(), auction.own
            short, over = int(auction.short().sum()), int(auction.over().sum())
            gap = max(0.0, auction.bound() - kept) / own if own else 0.0
            self.outcome_ = AllocateOutcome(
                short=short,
                over=over,
                relevance_loss=1 - kept / own if own else 0.0,
                gap=np.nan if short or over else gap,
            )
            places = np.full((ranking.n_users, k), -1, dtype=np.int32)
            places[:, : auction.ledger.places.shape[1]] = auction.ledger.places
            return pool.lists(places)

    def _bounds(
        self, ranking: Ranking, k: int, groups: Int32 | None
    ) -> tuple[Int32 | None, Bounds]:
        accounts, n_bounded, what = None, ranking.n_items, "items"
        if groups is not None:
            groups = _checked_groups(groups, ranking.n_items)
            n_bounded, what = int(groups.max(initial=-1)) + 1, "groups"
            accounts = np.where(groups < 0, n_bounded, groups).astype(np.int32)
        places = ranking.n_users * min(k, ranking.n_items)
        if self.config.at_least * n_bounded > places:
            message = (
                f"at_least is too large for {places:,} places and {n_bounded:,} {what}: "
                f"{self.config.at_least:,}"
            )
            hint = f"use at most {places // max(n_bounded, 1):,}, more users, or longer lists"
            raise ConfigError(message, hint=hint)
        n_accounts = n_bounded if accounts is None else int(accounts.max(initial=0)) + 1
        high = np.inf if self.config.at_most is None else float(self.config.at_most)
        if n_accounts == n_bounded and high * n_bounded < places:
            message = (
                f"at_most is too small for {places:,} places and {n_bounded:,} {what}: {high:,.0f}"
            )
            raise ConfigError(message, hint=f"use at least {-(-places // max(n_bounded, 1)):,}")
        bounds = Bounds(np.full(n_accounts, float(self.config.at_least)), np.full(n_accounts, high))
        for values, free in zip(bounds, (0.0, np.inf), strict=True):
            values[n_bounded:] = free
        return accounts, bounds


def _checked_groups(groups: Any, n_items: int) -> Int32:
    found = np.asarray(groups)
    if found.shape != (n_items,) or found.dtype.kind not in "iu" or (found < -1).any():
        message = f"groups must be whole numbers from -1 up, one for each of {n_items:,} items"
        raise DataError(message, hint=f"they are {found.dtype} of shape {found.shape}")
    return found.astype(np.int32)
