"""Measures that papers cite, of lists that arrive in batches, on one machine or on many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import as_groups, exposure_of
from limelight.metrics.accumulate import as_weights, exact_sums
from limelight.metrics.accuracy import match, ndcg_of
from limelight.metrics.awrf import awrf_of, target_shares
from limelight.metrics.expected_exposure import user_expected_exposure
from limelight.metrics.exposure import gini, mmf
from limelight.metrics.lists import (
    check_cutoffs,
    check_lists,
    check_positive,
    mean_over_users,
    position_weights,
)
from limelight.metrics.overlap import least_item_promoted, rank_biased_overlap
from limelight.metrics.popularity import item_counts, long_tail, mean_shown, sum_shown
from limelight.metrics.users import user_gini

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from limelight._base.arrays import Int64
    from limelight.data.interactions import Interactions
    from limelight.metrics.accuracy import Sparse
    from limelight.metrics.lists import FloatArray, IntArray


class MeasureAccumulator:
    """Collects measures of ranked lists batch by batch; `merge` adds what another one saw.

    Which measures depends on what it is given. With ``popularity``: ``arp``, ``aplt``, ``aclt``.
    With ``groups``: ``awrf``, and ``group_gini`` and ``group_mmf`` of the exposure of groups. With
    targets of the users: ``ee_loss``, ``ee_disparity``, ``ee_relevance``, and ``user_gini`` of
    their nDCG. With their lists before re-ranking: ``rbo`` and ``lip``. Results do not depend on
    how users were divided among batches or machines. Envy does: it is measured by ``ll.envy``.

    Parameters
    ----------
    n_items
        Size of the catalogue.
    k
        One or several cutoffs.
    popularity
        How many interactions every item has, or the training data to count them in.
    head
        Which share of all interactions the items hold that are not in the long tail.
    groups
        What :func:`read_groups` returns, or a label per item.
    target
        What groups should have, for AWRF: "catalogue", "equal", or a number for each group.
    persistence
        That of rank-biased overlap.

    Examples
    --------
    >>> first, second = (MeasureAccumulator(3, k=2, popularity=[8, 1, 1]) for _ in range(2))
    >>> first.update([[0, 1]])
    >>> second.update([[2, -1]])
    >>> first.merge(second)
    >>> first.result()
    {'users': 2, 'items': 3, 'arp@2': 2.75, 'aplt@2': 0.75, 'aclt@2': 1.0}
    """

    def __init__(
        self,
        n_items: int,
        k: int | Sequence[int] = 20,
        *,
        popularity: ArrayLike | Interactions | None = None,
        head: float = 0.8,
        groups: Any = None,
        target: ArrayLike | Literal["catalogue", "equal"] = "catalogue",
        persistence: float = 0.9,
    ) -> None:
        check_positive(n_items, "n_items")
        self.n_items = n_items
        self.k = check_cutoffs(k)
        self._persistence = persistence
        self._counts = None if popularity is None else item_counts(popularity)
        if self._counts is not None and len(self._counts) != n_items:
            message = f"popularity is of {len(self._counts):,} items, the catalogue has {n_items:,}"
            raise DataError(message, hint="give one number for each item of the catalogue")
        self._tail = None if self._counts is None else long_tail(self._counts, head)
        self._members = None if groups is None else as_groups(groups, n_items)
        self._wanted = None if self._members is None else target_shares(target, self._members)
        self._exposure: dict[int, Int64] = {}
        self._values: dict[str, list[FloatArray]] = {}
        self._users = 0

    def update(
        self, ids: ArrayLike, targets: Sparse | None = None, before: ArrayLike | None = None
    ) -> None:
        """Add the lists of some users.

        Parameters
        ----------
        ids
            Users x k item numbers, at least as long as the largest cutoff, padded with -1.
        targets
            Sparse users x items matrix of held-out items. Users without any count in the measures
            that need none.
        before
            The lists of the same users before re-ranking; longer ones, for ``lip``.
        """
        lists = check_lists(ids, self.n_items, self.k[-1])
        if not len(lists):
            return
        found: dict[str, FloatArray] = {}
        for k in self.k:
            of_k = self._measure(lists, k, targets, before)
            found |= {f"{name}@{k}": values for name, values in of_k.items()}
        self._refuse_mixture(found)
        if self._members is not None:
            self._add_exposure(lists)
        for name, values in found.items():
            self._values.setdefault(name, []).append(values)
        self._users += len(lists)

    def merge(self, other: MeasureAccumulator) -> None:
        """Add what another accumulator, made with the same arguments, has seen."""
        self._refuse_another(other)
        if not other._users:
            return
        self._refuse_mixture(other._values)
        for name, values in other._values.items():
            self._values.setdefault(name, []).extend(values)
        for k, sums in other._exposure.items():
            self._exposure[k] = self._exposure.get(k, 0) + sums
        self._users += other._users

    def result(self) -> dict[str, float]:
        """Give all measures under flat keys such as "arp@20"; nan where no user has a value."""
        if not self._users:
            message = f"no lists to measure: {self._users} users"
            raise DataError(message, hint="add lists first")
        found: dict[str, float] = {"users": self._users, "items": self.n_items}
        for name, parts in self._values.items():
            values = np.concatenate(parts)
            measure = user_gini if name.startswith("user_gini") else mean_over_users
            found[name] = float("nan") if np.isnan(values).all() else measure(values)
        if self._members is not None:
            for k, sums in self._exposure.items():
                held = exposure_of(self._members, as_weights(sums))
                found[f"group_gini@{k}"] = gini(held) if held.any() else float("nan")
                found[f"group_mmf@{k}"] = mmf(held) if held.any() else float("nan")
        return found

    def _measure(
        self, lists: IntArray, k: int, targets: Sparse | None, before: ArrayLike | None
    ) -> dict[str, FloatArray]:
        """Measure each of the lists, cut to k places."""
        found: dict[str, FloatArray] = {}
        cut = lists[:, :k]
        if self._counts is not None and self._tail is not None:
            found["arp"] = mean_shown(cut, self._counts)
            found["aplt"] = mean_shown(cut, self._tail)
            found["aclt"] = sum_shown(cut, self._tail)
        if self._members is not None and self._wanted is not None:
            found["awrf"] = awrf_of(cut, self._members, self._wanted, self.n_items)
        if targets is not None:
            exposed = user_expected_exposure(cut, targets)
            found |= {f"ee_{name}": values for name, values in exposed._asdict().items()}
            found["user_gini"] = ndcg_of(match(cut, targets), k)
        if before is not None:
            old = np.asarray(before)
            found["rbo"] = rank_biased_overlap(
                old[:, :k], cut, persistence=self._persistence, per_user=True
            )
            found["lip"] = least_item_promoted(old, cut, per_user=True)
        return found

    def _add_exposure(self, lists: IntArray) -> None:
        for k in self.k:
            shown = lists[:, :k] >= 0
            worth = np.broadcast_to(position_weights(k), shown.shape)[shown]
            sums = exact_sums(lists[:, :k][shown], worth, self.n_items)
            self._exposure[k] = self._exposure.get(k, 0) + sums

    def _refuse_another(self, other: MeasureAccumulator) -> None:
        mine, theirs = (f"n_items={a.n_items}, k={a.k}" for a in (self, other))
        same = mine == theirs and self._persistence == other._persistence
        for name in ("_counts", "_tail", "_wanted"):
            same = same and np.array_equal(getattr(self, name), getattr(other, name))
        if not same:
            message = f"accumulators differ: {mine} and {theirs}"
            if mine == theirs:
                message = "accumulators differ in popularity, head, groups, target or persistence"
            raise ConfigError(message, hint="make all of them with the same arguments")

    def _refuse_mixture(self, found: dict[str, Any]) -> None:
        if self._users and found.keys() != self._values.keys():
            message = "some lists came with targets, or lists of before, and some without"
            raise ConfigError(message, hint="pass the same to every update")
