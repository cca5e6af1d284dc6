"""A model whose lists keep the shares of groups: studios, sellers, languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from limelight.rerank.group_shares import GroupOutcome, GroupPrices
    from limelight.rerank.run_groups import GroupGoal

_KNOWN = 15_000
"""How many training users, at most, find the prices beside the validation users."""


def fit_groups(
    plain: Model, split: Split, goal: GroupGoal, k: int
) -> tuple[GroupPrices, GroupOutcome, tuple[GroupShare, ...]]:
    """Find prices of groups on known users; return them, and the shares of test users.

    Parameters
    ----------
    plain
        A fitted model.
    split
        Whose validation users find the prices, together with training users.
    goal
        What was wished.
    k
        Length of the lists.
    """
    part = split.validation
    law = calibrate(plain.ranking(part.history), part.targets, k)
    histories = [part.history, as_unseen(split.train.matrix, _KNOWN)]
    named = read_groups(goal.groups, ids_to_arrow(plain.item_ids))
    members = as_groups(named, len(plain.item_ids))
    method = GroupShares(
        **group_settings(goal), relevance=law, num_threads=plain.config.num_threads
    )
    prices = method.fit(
        plain.ranking(sparse.vstack(histories, format="csr")),
        k,
        groups=members,
        counts=np.asarray(split.train.matrix.sum(axis=0)).ravel(),
    )
    shares = _shares(prices.over(plain), plain, split.test, members, method.outcome_, k)
    return prices, method.outcome_, shares


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
