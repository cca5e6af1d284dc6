"""A model whose lists keep the shares of groups: studios, sellers, languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from limelight.data.ids import ids_to_arrow
from limelight.evaluate.audit_groups import exposure_of
from limelight.evaluate.audit_input import read_groups
from limelight.evaluate.exposure import exposure
from limelight.rerank.calibrate import calibrate
from limelight.rerank.group_shares import GroupShare, GroupShares
from limelight.rerank.group_wishes import as_groups
from limelight.rerank.run_groups import group_settings
from limelight.tune.users import as_unseen

if TYPE_CHECKING:
    from limelight._arrays import Float64
    from limelight.data.held_out import HeldOut
    from limelight.data.split import Split
    from limelight.evaluate.audit_input import Groups
    from limelight.models.base import Model
    from limelight.rerank.base import Reranked
    from limelight.rerank.group_shares import GroupOutcome
    from limelight.rerank.run_groups import GroupGoal

_KNOWN = 15_000
"""How many training users, at most, find the prices beside the validation users."""


class GroupControl:
    """Finds prices of groups; what can be wrong with the wishes is found out before any fit.

    Parameters
    ----------
    split
        Whose validation users find the prices, together with training users.
    goal
        What was wished.
    """

    def __init__(self, split: Split, goal: GroupGoal) -> None:
        self._split, self._goal = split, goal
        n_items = split.train.n_items
        self.named = read_groups(goal.groups, ids_to_arrow(split.train.item_ids))
        self._members = as_groups(self.named, n_items)
        self._counts = np.asarray(split.train.matrix.sum(axis=0)).ravel()
        GroupShares(**group_settings(goal)).wishes(self._members, n_items, self._counts)

    def reach(self, plain: Model, k: int) -> dict[str, Any]:
        """Find the prices for a fitted model, and say what shares they lead to.

        Parameters
        ----------
        plain
            The model.
        k
            Length of the lists.
        """
        part = self._split.validation
        law = calibrate(plain.ranking(part.history), part.targets, k)
        histories = [part.history, as_unseen(self._split.train.matrix, _KNOWN)]
        known = sparse.vstack(histories, format="csr")
        method = GroupShares(
            **group_settings(self._goal), relevance=law, num_threads=plain.config.num_threads
        )
        prices = method.fit(plain.ranking(known), k, groups=self._members, counts=self._counts)
        served, outcome = prices.over(plain), method.outcome_
        shares = _shares(served, plain, self._split.test, self._members, outcome, k)
        return {
            "model": served,
            "method": "group prices",
            "strength": max(map(abs, prices.prices.values()), default=0.0),
            "met": outcome.is_met,
            "goal": self._goal.wishes,
            "groups": shares,
            "notes": (
                *outcome.notes,
                f"{known.shape[0]:,} users who found the prices: {outcome}",
                _worst(shares),
            ),
        }


def _worst(shares: tuple[GroupShare, ...]) -> str:
    """Say which group is furthest from its wish among other users."""
    missed = [max(share.after - share.at_most, share.at_least - share.after) for share in shares]
    worst = int(np.argmax(missed))
    if missed[worst] <= 0:
        return "Test users: all wishes hold."
    points, group = 100 * missed[worst], shares[worst].id
    return f"Test users: {group!r} misses its wish by most, {points:.2f} points."


def _shares(
    served: Reranked,
    plain: Model,
    part: HeldOut,
    members: Groups,
    outcome: GroupOutcome,
    k: int,
) -> tuple[GroupShare, ...]:
    """Put the shares of other users beside what was wished."""
    of_grouped = served.reranker.config.changed().get("target") is not None
    before, after = (
        _share(
            one.recommend(part.history, k).ids,
            members,
            part.targets.shape[1],
            of_grouped=of_grouped,
        )
        for one in (plain, served)
    )
    return tuple(
        wished._replace(before=float(then), after=float(now))
        for wished, then, now in zip(outcome.shares, before, after, strict=True)
    )


def _share(ids: np.ndarray, members: Groups, n_items: int, *, of_grouped: bool) -> Float64:
    shown = exposure(ids, n_items)
    held = exposure_of(members, shown)
    whole = held.sum() if of_grouped else shown.sum()
    return np.asarray(held / whole)
