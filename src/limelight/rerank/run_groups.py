"""The group targets of ``ll.rerank``: caps, floors or shares for groups of items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._errors import ConfigError
from limelight.data.ids import ids_to_arrow
from limelight.evaluate.audit_input import read_groups
from limelight.rerank.group_shares import GroupShares
from limelight.rerank.group_wishes import check_share

if TYPE_CHECKING:
    from limelight._arrays import Int32
    from limelight.data.sources import Source
    from limelight.rerank.dials import Setting
    from limelight.rerank.pool import Law

_SETTINGS = {"group_cap": "at_most", "group_floor": "at_least", "group_shares": "target"}


class GroupGoal(NamedTuple):
    """What was wished, by its name, and which items the groups have."""

    groups: Source
    wishes: dict[str, Any]


def as_group_goal(
    groups: Source | None, wishes: dict[str, Any], others: dict[str, Any], method: str
) -> GroupGoal | None:
    """Take the wishes that were given for groups; None if there are none.

    Examples
    --------
    >>> as_group_goal("studios.csv", {"group_cap": 0.03}, {"gini": None}, "auto")
    GroupGoal(groups='studios.csv', wishes={'group_cap': 0.03})
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    if not given:
        if groups is not None:
            message = f"groups have no target: {str(groups)[:100]}"
            hint = "give group_cap, group_floor or group_shares; result.group_changes shows gains"
            raise ConfigError(message, hint=hint)
        return None
    if groups is None:
        message = f"{next(iter(given))} needs groups, and none were given"
        raise ConfigError(message, hint="give a table item_id,group[,weight] as groups")
    targets = [*given, *(name for name, value in others.items() if value is not None)]
    if len(targets) > len(given) or ("group_shares" in given and len(given) > 1):
        message = f"give one target, not {len(targets)}: {', '.join(targets)}"
        raise ConfigError(message, hint="only group_cap and group_floor go together")
    if method != "auto":
        message = f"groups have a method of their own: {method!r}"
        raise ConfigError(message, hint="leave method out")
    for name in ("group_cap", "group_floor"):
        if name in given and not isinstance(given[name], Mapping):
            check_share(name, given[name])
    return GroupGoal(groups, given)


def group_settings(goal: GroupGoal) -> dict[str, Any]:
    """Return what was wished as settings of ``GroupShares``."""
    return {_SETTINGS[name]: value for name, value in goal.wishes.items()}


def reach_groups(setting: Setting, goal: GroupGoal, law: Law) -> tuple[Int32, dict[str, Any]]:
    """Return lists with the shares that were wished, or the nearest, and what a result says."""
    pool = setting.pool
    members = read_groups(goal.groups, ids_to_arrow(pool.candidates.item_ids))
    method = GroupShares(
        **group_settings(goal),
        relevance=law,
        random_state=setting.seed,
        num_threads=setting.threads,
    )
    _, found = method.solve(pool, setting.k, members)
    outcome = method.outcome_
    shares = sorted(outcome.shares, key=lambda share: share.before - share.after)
    return found.places, {
        "method": "group prices",
        "strength": float(np.abs(found.prices).max(initial=0.0)),
        "goal": goal.wishes,
        "groups": tuple(shares),
        "notes": (*outcome.notes, str(outcome)),
    }
