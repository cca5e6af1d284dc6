"""Exposure as a market: items are helped by what welfare says, users choose their lists in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.errors import DataError
from limelight._native import kernels
from limelight.metrics.lists import position_weights
from limelight.rerank.market.ledger import Help, Ledger, knots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.welfare import Welfare


_PLENTY = 1e12  # the exposure, in shares, of an item that is entitled to nothing
_NODES = 8  # of the Gauss-Legendre rule for the mean slope
_COMPARISONS = 64
"""How often in a sweep items are compared anew."""


class OwnListSurvey(NamedTuple):
    """Relevance and exposure of everybody's own list, which give strength its unit."""

    unit: float
    """The mean relevance of its places."""
    total: float
    """What its exposure adds up to, per user; of impact, where welfare is of impact."""
    merit: Float64
    """How relevant every item is to all."""


class Market:
    """A ledger, and the help that welfare gives at the exposure it shows.

    Strength is in units of ``survey``, which is of everybody's own lists or, where it is given, of
    those of earlier users. With ``by_place``, help is what one more place is worth, rather than the
    slope where an item stands; they differ where an item may expect few places. ``offsets`` are
    added to each item's relevance, in its units, whatever the strength is. What is chosen depends
    on the seed, which draws the order of users, and not on the number of threads.
    """

    def __init__(
        self,
        pool: Pool,
        k: int,
        welfare: Welfare,
        *,
        threads: int,
        seed: int | Sequence[int],
        survey: OwnListSurvey | None = None,
        by_place: bool = False,
        offsets: Float64 | None = None,
    ) -> None:
        self.pool, self.welfare = pool, welfare
        self.ledger = Ledger(
            pool,
            position_weights(k),
            by_impact=welfare.by_impact,
            offsets=offsets,
            threads=threads,
            seed=seed,
        )
        self.survey = self._survey_own_lists() if survey is None else survey
        self._entitlement = welfare.shares(pool.n_items) * self.survey.total
        self._pull = welfare.pull(self.survey.merit)
        self._by_place = by_place

    def _survey_own_lists(self) -> OwnListSurvey:
        weights, merit = self.ledger.weights, np.zeros(self.pool.n_items)
        relevance = exposure = 0.0
        for rows, ids, _, values in self.pool.chosen(self.pool.own_places(len(weights))):
            relevance += float(np.sum(values * weights))
            exposure += float(np.sum((ids >= 0) * weights))
            if self.welfare.by_impact:
                _, items = self.pool.items_of(rows)
                merit += np.bincount(items, self.pool.relevance(rows), self.pool.n_items)
        unit = relevance / exposure if exposure else 1.0
        total = relevance if self.welfare.by_impact else exposure
        return OwnListSurvey(unit, total / max(self.pool.n_users, 1), merit)

    def resume(self, exposure: Float64, served: float) -> None:
        """Go on from the exposure that earlier users gave."""
        if len(exposure) != self.pool.n_items:
            message = f"{len(exposure):,} items were served, now there are {self.pool.n_items:,}"
            raise DataError(message, hint="reset it, or keep to one catalogue")
        self.ledger.exposure, self.ledger.served = exposure.copy(), served

    def sweep(self, strength: float, turn: tuple[int, int] = (0, 1)) -> int:
        """Let everybody choose again, in random order; returns how many lists changed.

        With ``turn``, a part of the users does: which part, and of how many.
        """
        return self.ledger.sweep(lambda: self.support(strength), self._stretch(), turn=turn)

    def serve(self, strength: float) -> None:
        """Let everybody choose once, in the order of the rows."""
        self.ledger.serve(lambda: self.support(strength), self._stretch())

    def _stretch(self) -> int | None:
        """Return how many users choose before items are compared anew, where welfare does so."""
        return None if self.welfare.is_separable else max(1, self.pool.n_users // _COMPARISONS)

    def subsidies(self, strength: float, exposure: Float64) -> Float64:
        """Return what is added to each item's relevance, where all users give some exposure."""
        x = self._relative(exposure, self.pool.n_users)
        return np.asarray(
            strength * self.survey.unit * self._pull * self.welfare.marginal_given(x)(x)
        )

    def support(self, strength: float) -> Help:
        """Return how items are helped at the exposure that they have now."""
        x = self._relative(self.ledger.exposure, self.ledger.served)
        table = np.tile(self._worth(self.welfare.marginal_given(x)), (2, 1))
        # By impact, help multiplies relevance and has no unit.
        scale = strength if self.welfare.by_impact else strength * self.survey.unit
        return Help(self._entitlement, scale * self._pull, table)

    def _worth(self, marginal: Callable[[Float64], Float64]) -> Float64:
        """Table what exposure is worth, at the knots."""
        if not self._by_place:
            return marginal(knots())
        # One more place moves an item from x to x + place: it is worth the mean slope in between.
        expected = max(float(self._entitlement.mean()) * self.ledger.served, 1e-12)
        place = float(self.ledger.weights.mean()) / expected
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        stretch = zip(place * (nodes + 1) / 2, weights / 2, strict=True)
        return np.asarray(sum(weight * marginal(knots() + part) for part, weight in stretch))

    def _relative(self, exposure: Float64, users: float) -> Float64:
        share = self._entitlement * max(users, 1.0)
        # An item that is entitled to nothing counts as far above its share, so it gets no help.
        x = np.divide(exposure, share, out=np.full(len(share), _PLENTY), where=share > 0)
        return np.asarray(x)


def choose(pool: Pool, k: int, subsidies: Float32, draws: Int32 | None, threads: int) -> Int32:
    """Return everybody's best places at prices that stay where they are.

    Subsidies are what is added to the relevance of each item, one row a set of prices; ``draws``
    says which row each user has, the first one unless given.
    """
    if pool.n_items != subsidies.shape[1]:
        message = f"prices are of {subsidies.shape[1]:,} items, not {pool.n_items:,}"
        raise DataError(message, hint="use the catalogue that the prices were found for")
    if draws is None:
        draws = np.zeros(pool.n_users, dtype=np.int32)
    places = np.empty((pool.n_users, k), dtype=np.int32)
    for rows in pool.blocks:
        kernels.best_candidates(
            pool.ranked(rows), subsidies, draws[rows], lists=places[rows], threads=threads
        )
    return places
