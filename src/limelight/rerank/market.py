"""Exposure as a market: items are subsidised by welfare, users choose their lists in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._errors import DataError
from limelight._native import kernels
from limelight.evaluate.lists import position_weights

if TYPE_CHECKING:
    from limelight._arrays import Float64, Int32
    from limelight.rerank.pool import Pool
    from limelight.rerank.welfare import Welfare

KNOTS = 4097
"""How finely marginal welfare is tabled, over y = x / (1 + x) from 0 to 1."""
_AT_ONCE = 0.02
"""How much of what an item may expect in all can be chosen against the same prices."""
_BATCHES = 1 << 12
"""How many users choose at the same prices, at most."""


class Market:
    """Lists, the exposure that they give, and the subsidies that it brings about.

    Parameters
    ----------
    pool
        Candidates with relevance.
    k
        Length of the lists.
    welfare
        Of exposure.
    threads
        How many threads may be used. What is chosen does not depend on it.
    seed
        Of the order in which users choose.

    Attributes
    ----------
    places : int32 array, users x k
        Everybody's list: places among her candidates, ascending, then -1.
    exposure : float64 array
        Of every item; of impact, where welfare is of impact.
    served : float
        How many users the exposure is of.
    """

    def __init__(self, pool: Pool, k: int, welfare: Welfare, *, threads: int, seed: int = 0) -> None:
        self.pool, self.k, self.welfare = pool, k, welfare
        self._threads = threads
        self._generator = np.random.default_rng(seed)
        self._weights = position_weights(k)
        self._accounts = np.arange(pool.n_items, dtype=np.int32)
        self.places = np.full((pool.n_users, k), -1, dtype=np.int32)
        self.exposure = np.zeros(pool.n_items)
        self.served = 0.0
        self.unit, total, merit = self._survey()
        self._entitlement = welfare.shares(pool.n_items) * total
        self._pull = welfare.pull(merit)

    def _survey(self) -> tuple[float, float, Float64]:
        """Look at everybody's own list.

        Returns the mean relevance of its places, what its exposure adds up to per user, and how
        relevant every item is to all.
        """
        weights, merit = self._weights, np.zeros(self.pool.n_items)
        relevance = exposure = 0.0
        for rows, ids, _, values in self.pool.chosen(self.pool.own_places(self.k)):
            relevance += float(np.sum(values * weights))
            exposure += float(np.sum((ids >= 0) * weights))
            if self.welfare.by_impact:
                _, items = self.pool.candidates.items_of(rows.start, rows.stop)
                merit += np.bincount(items, self.pool.relevance(rows), self.pool.n_items)
        unit = relevance / exposure if exposure else 1.0
        total = relevance if self.welfare.by_impact else exposure
        return unit, total / max(self.pool.n_users, 1), merit

    def open(self) -> None:
        """Start from everybody's own list."""
        self.places = self.pool.own_places(self.k)
        self.exposure = self.exposure_of(self.places)
        self.served = float(self.pool.n_users)

    def resume(self, exposure: Float64 | None, served: float) -> None:
        """Go on from the exposure that earlier users gave."""
        if exposure is not None:
            if len(exposure) != self.pool.n_items:
                message = f"{len(exposure):,} items were served, now there are {self.pool.n_items:,}"
                raise DataError(message, hint="reset it, or keep to one catalogue")
            self.exposure, self.served = exposure.copy(), served

    def exposure_of(self, places: Int32) -> Float64:
        """Add up what lists give to every item."""
        exposure = np.zeros(self.pool.n_items)
        for _, ids, _, relevance in self.pool.chosen(places):
            amounts = self._weights * relevance if self.welfare.by_impact else self._weights
            shown = ids >= 0
            amounts = np.broadcast_to(amounts, ids.shape)
            exposure += np.bincount(ids[shown], amounts[shown], self.pool.n_items)
        return exposure

    def sweep(self, strength: float) -> int:
        """Let everybody choose again, in random order; returns how many lists changed.

        Parameters
        ----------
        strength
            Of the subsidies, in units of the mean relevance of everybody's own list.
        """
        order = self._generator.permutation(len(self.pool.blocks))
        return sum(self._visit(self.pool.blocks[b], strength, newcomers=False) for b in order)

    def serve(self, strength: float, batch: int = 1) -> None:
        """Let everybody choose once, in the order of the rows; exposure and users served grow."""
        for rows in self.pool.blocks:
            self._visit(rows, strength, newcomers=True, batch=batch)
            self.served += rows.stop - rows.start

    def _visit(
        self, rows: slice, strength: float, *, newcomers: bool, batch: int | None = None
    ) -> int:
        n_users = rows.stop - rows.start
        lists = np.ascontiguousarray(self.places[rows])
        order = np.arange(n_users) if newcomers else self._generator.permutation(n_users)
        # By impact, subsidies multiply relevance and have no unit.
        scale = strength if self.welfare.by_impact else strength * self.unit
        changed = kernels.respond(
            self.pool.crowd(rows),
            order.astype(np.int32),
            lists,
            self._weights,
            self._accounts,
            self.exposure,
            self._entitlement,
            scale * self._pull,
            self._marginal(),
            self.welfare.by_impact,
            self._batch() if batch is None else batch,
            newcomers,
            self.served,
            self._threads,
        )
        self.places[rows] = lists
        return changed

    def _marginal(self) -> Float64:
        """Table psi' as it is now; nobody has a negative pull, who would need the second row."""
        share = np.maximum(self._entitlement * max(self.served, 1.0), 1e-300)
        y = np.linspace(0, 1, KNOTS)
        x = y / np.maximum(1 - y, 1e-12)
        return np.tile(self.welfare.given(self.exposure / share).marginal(x), (2, 1))

    def _batch(self) -> int:
        """Return how many users may choose at the same prices.

        Too many would all go for the items that are cheap. What an item may expect in all is m k / n
        lists; of a batch, at most as many users as have it for a candidate take it.
        """
        places = self.pool.n_users * self.k
        batch = _AT_ONCE * places * self.pool.n_users / max(self.pool.candidates.n_pairs, 1)
        return int(np.clip(batch, 1, _BATCHES))

    def relevance(self) -> float:
        """Return the relevance of all lists, places weighted as for exposure, per user."""
        chosen = self.pool.chosen(self.places)
        total = sum(float(np.sum(values * self._weights)) for _, _, _, values in chosen)
        return total / max(self.pool.n_users, 1)
