"""The state of a market: everybody's present list, and the exposure that all lists give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.arrays import batches
from limelight._native import kernels
from limelight.data.groups import exposure_of
from limelight.rerank.market.pool import ascending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups
    from limelight.rerank.market.pool import Pool


_WORD = (1 << 64) - 1


def generator_state(generator: np.random.Generator) -> NDArray[np.uint64]:
    """Return the state of a random generator as an array.

    Examples
    --------
    >>> one, other = np.random.default_rng(1), np.random.default_rng(2)
    >>> restore_generator(other, generator_state(one))
    >>> bool(one.random() == other.random())
    True
    """
    state = generator.bit_generator.state
    words = [state["state"]["state"], state["state"]["inc"]]
    halves = [half for word in words for half in (word & _WORD, word >> 64)]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def restore_generator(generator: np.random.Generator, state_words: NDArray[np.uint64]) -> None:
    """Put a random generator back into a state."""
    low, high, inc_low, inc_high, has, held = state_words.tolist()
    state = dict(generator.bit_generator.state)
    state["state"] = {"state": low | high << 64, "inc": inc_low | inc_high << 64}
    state["has_uint32"], state["uinteger"] = has, held
    generator.bit_generator.state = state


KNOTS = 4097
"""How finely help is tabled, over y = x / (1 + x) from 0 to 1; x is exposure over entitlement."""
_AT_ONCE = 0.02
"""How much of what an item may expect in all can be chosen at the same prices."""
_AT_ONCE_OF_GROUP = 0.05
"""How much of what a group may expect in all a batch of users could give it at the same prices."""
_MOST = 1 << 12
"""How many users choose at the same prices, at most."""


def knots() -> Float64:
    """Return the x at which help is tabled; the last stands for infinity."""
    y = np.linspace(0, 1, KNOTS)
    return np.asarray(y / np.maximum(1 - y, 1e-12))


@dataclass(frozen=True, eq=False)
class Help:
    """How accounts are helped: pull * table(exposure / entitlement)."""

    entitlement: Float64
    """By account, per user served."""
    pull: Float64
    """By account. Where it is negative, the second row of the table counts."""
    table: Float64
    """Two rows, at the knots; without columns, a pull counts in full up to the entitlement."""
    groups: Help | None = None
    """How groups of items are helped, where they have accounts as well."""


class Ledger:
    """Lists, and the exposure that they give to accounts: items, or groups of them.

    ``weights`` are those of the places of a list. With ``by_impact``, exposure counts as much as it
    is relevant, and help likewise. ``offsets`` are what is added to the relevance and the help of
    each item, whatever its exposure is; a negative one is a price. With ``groups``, groups of items
    have accounts beside those of items. Their exposure is that of their items, so it is never kept.
    ``scale`` multiplies the help of each user. ``order`` says how much of help and offset counts in
    the order of a list: 0 is the order of relevance, 1 that in which items were chosen. What is
    chosen depends on the seed, which draws the order of users, and not on the number of threads.

    Attributes
    ----------
    places : int32 array, users x k
        Everybody's list: places among her candidates, then -1. In the order of relevance they
        ascend.
    exposure : float64 array
        Of every account.
    served : float
        How many users the exposure is of.
    turns : int
        How often a user has chosen.
    moved : bool array
        Whose list changed when she chose last.
    offsets : float64 array or None
        By item. They may be replaced between sweeps, and whenever ``support`` is asked.
    """

    def __init__(  # noqa: PLR0913
        self,
        pool: Pool,
        weights: Float64,
        *,
        accounts: Int32 | None = None,
        by_impact: bool = False,
        offsets: Float64 | None = None,
        groups: Groups | None = None,
        scale: Float64 | None = None,
        order: float = 0.0,
        threads: int,
        seed: int | Sequence[int],
    ) -> None:
        self.pool, self.weights, self.by_impact, self.threads = pool, weights, by_impact, threads
        self.offsets, self.groups, self.scale, self.order = offsets, groups, scale, order
        self._groups = None if groups is None else _item_groups(groups, pool.n_items)
        own = np.arange(pool.n_items, dtype=np.int32)
        self.accounts = own if accounts is None else accounts
        self.n_accounts = pool.n_items if accounts is None else int(accounts.max()) + 1
        self.places = np.full((pool.n_users, len(weights)), -1, dtype=np.int32)
        self.exposure = np.zeros(self.n_accounts)
        self.served, self.turns = 0.0, 0
        self.moved = np.ones(pool.n_users, dtype=bool)
        self._generator = np.random.default_rng(seed)

    def open(self) -> None:
        """Start from everybody's own list."""
        self.places = ascending(self.pool.own_places(len(self.weights)))
        self.exposure = self.exposure_of(self.places)
        self.served = float(self.pool.n_users)
        self.moved[:] = True

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that a sweep changes, the lists themselves left out."""
        return {
            "exposure": self.exposure,
            "served": np.array([self.served]),
            "chance": generator_state(self._generator),
        }

    def restore(self, places: Int32, state: Mapping[str, NDArray[Any]]) -> None:
        """Go back to lists and to the state that was taken with them."""
        self.places, self.exposure = places.copy(), state["exposure"].copy()
        self.served = float(state["served"].item())
        self.moved[:] = True
        restore_generator(self._generator, state["chance"])

    def exposure_of(self, places: Int32) -> Float64:
        """Add up what lists give to every account."""
        exposure = np.zeros(self.n_accounts)
        for _, ids, _, relevance in self.pool.chosen(places):
            shown = ids >= 0
            amounts = self.weights * relevance if self.by_impact else self.weights
            amounts = np.broadcast_to(amounts, ids.shape)[shown]
            exposure += np.bincount(self.accounts[ids[shown]], amounts, self.n_accounts)
        return exposure

    def relevance(self) -> float:
        """Return the relevance of all lists, places weighted as for exposure, per user."""
        chosen = self.pool.chosen(self.places)
        total = sum(float(np.sum(values * self.weights)) for _, _, _, values in chosen)
        return total / max(self.pool.n_users, 1)

    def sweep(
        self,
        support: Callable[[], Help],
        stretch: int | None = None,
        batch: int | None = None,
        *,
        turn: tuple[int, int] = (0, 1),
        only_moved: bool = False,
    ) -> int:
        """Let everybody choose again, in random order; returns how many lists changed.

        A user who chooses first gives back the exposure of her present list, then takes the k
        candidates of the largest relevance plus help, and the accounts get the exposure of the new
        list. Users of a batch choose at the same exposure, so that threads can share them; whoever
        comes in a later batch sees what they changed. Candidates are read a block at a time, so the
        order is random among the blocks and within each, but never mixes two blocks.

        Parameters
        ----------
        support
            Says how accounts are helped at the exposure that they have now.
        stretch
            How many users choose before it is asked again; by default a block of them.
        batch
            How many users choose at the same exposure; see :meth:`_batch` for the default.
        turn
            Which part of the users chooses, and of how many parts. The parts of the same seed
            differ. By default there is one part, everybody.
        only_moved
            Whether only those choose whose list changed when they chose last. Prices have moved
            little since, so most of the others would keep theirs; that is likely, not certain.
        """
        changed, (part, parts) = 0, turn
        for block in self._generator.permutation(len(self.pool.blocks)):
            rows = self.pool.blocks[block]
            everybody = self._generator.permutation(rows.stop - rows.start)
            order = np.array_split(everybody, parts)[part]
            if only_moved:
                order = order[self.moved[rows][order]]
            for turns in batches(len(order), stretch or max(len(order), 1)):
                size = batch or self._batch()
                changed += self._visit(rows, order[turns], support(), size, newcomers=False)
        return changed

    def serve(self, support: Callable[[], Help], stretch: int | None = None) -> None:
        """Let everybody choose once, in the order of the rows, and count them as served."""
        for rows in self.pool.blocks:
            n_users = rows.stop - rows.start
            for turns in batches(n_users, stretch or n_users):
                order = np.arange(turns.start, turns.stop)
                self._visit(rows, order, support(), 1, newcomers=True)
                # Who has nothing left to be shown is not served.
                self.served += int(np.count_nonzero(self.pool.candidates.counts[rows][order]))

    def _visit(
        self, rows: slice, order: np.ndarray, support: Help, batch: int, *, newcomers: bool
    ) -> int:
        accounts: dict[str, Any] = {}
        if self.groups is not None and support.groups is not None:
            accounts = {
                "groups": self._groups,
                "group_exposure": exposure_of(self.groups, self.exposure),
                "group_entitlement": support.groups.entitlement,
                "group_pull": support.groups.pull,
                "group_marginal": support.groups.table,
            }
        places = self.places[rows]
        before = places[order]
        changed = kernels.respond(
            self.pool.ranked(rows),
            order.astype(np.int32),
            places,
            weights=self.weights,
            accounts=self.accounts,
            exposure=self.exposure,
            entitlement=support.entitlement,
            pull=support.pull,
            marginal=support.table,
            by_impact=self.by_impact,
            batch=batch,
            newcomers=newcomers,
            served=self.served,
            offsets=self.offsets,
            threads=self.threads,
            scale=None if self.scale is None else self.scale[rows],
            subsidised_order=self.order,
            **accounts,
        )
        self.turns += len(order)
        self.moved[rows][order] = (places[order] != before).any(axis=1)
        return int(changed)

    def _batch(self) -> int:
        """Return how many users may choose at the same prices.

        Users of a batch do not see each other's choices, so in a large batch all of them would take
        the same cheap items. An item may expect m k / n lists in all, and of a batch those users
        may take it who have it for a candidate.
        """
        expected = self.pool.n_users * len(self.weights)
        share = self.pool.n_users / max(self.pool.candidates.n_pairs, 1)
        most = _MOST
        if self.groups is not None:
            # All users of a batch may give all their places to one group.
            most = int(_AT_ONCE_OF_GROUP * self.pool.n_users / len(self.groups.group_ids))
        return int(np.clip(_AT_ONCE * expected * share, 1, np.clip(most, 1, _MOST)))


def _item_groups(members: Groups, n_items: int) -> kernels.ItemGroups:
    """Return the groups of each item as the kernel takes them."""
    order = np.argsort(members.items, kind="stable")
    counts = np.bincount(members.items, minlength=n_items)
    return kernels.ItemGroups(
        np.append(0, np.cumsum(counts)).astype(np.int64),
        members.groups[order].astype(np.int32),
        members.weights[order].astype(np.float64),
        len(members.group_ids),
    )
