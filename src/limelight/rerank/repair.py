"""The cheapest swaps that give accounts the lists that an auction left them short of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.data.grouping import row_numbers

if TYPE_CHECKING:
    from limelight._arrays import Float32, Int32, Int64
    from limelight.rerank.auction import Auction


def repair(auction: Auction) -> None:
    """Swap items that can be spared for items that are short, those that lose least first.

    Parameters
    ----------
    auction
        Which has run. Its ledger is put right.
    """
    ledger = auction.ledger
    while (short := auction.short()).any():
        swaps = 0
        for rows in auction.pool.blocks:
            swaps += _Swaps(auction, rows, short).make()
        ledger.exposure = ledger.exposure_of(ledger.places)
        if not swaps:
            return


class _Swaps:
    """What users of a block could take in, and what they would give for it."""

    def __init__(self, auction: Auction, rows: slice, short: np.ndarray) -> None:
        self._ledger, self._bounds, self._rows = auction.ledger, auction.bounds, rows
        self._indptr, items = auction.pool.candidates.items_of(rows.start, rows.stop)
        self._accounts: Int32 = auction.ledger.accounts[items]
        self._relevance: Float32 = auction.pool.relevance(rows)
        users = row_numbers(self._indptr)
        wanted = np.flatnonzero(short[self._accounts])
        # A first guess of the loss: the last item of the list is given away.
        last = self._indptr[users[wanted]] + self._ledger.places[rows][users[wanted]].max(axis=1)
        loss = self._relevance[last] - self._relevance[wanted]
        self._wanted: Int64 = wanted[np.argsort(loss, kind="stable")]
        self._users = users

    def make(self) -> int:
        """Make the swaps; returns how many there were."""
        counts, swaps = self._ledger.exposure, 0
        for at in self._wanted.tolist():
            account = self._accounts[at]
            if counts[account] >= self._bounds.low[account]:
                continue
            swaps += self._swap(at)
        return swaps

    def _swap(self, at: int) -> bool:
        user = int(self._users[at])
        first = int(self._indptr[user])
        places = self._ledger.places[self._rows][user]
        held = places[places >= 0]
        if at - first in held:
            return False
        counts = self._ledger.exposure
        for rank in range(len(held) - 1, -1, -1):
            given = self._accounts[first + held[rank]]
            if counts[given] > self._bounds.low[given]:
                held[rank] = at - first
                places[: len(held)] = np.sort(held)
                counts[given] -= 1
                counts[self._accounts[at]] += 1
                return True
        return False
