"""What groups get from lists, once more: dictionaries and loops, a user left out by counting again.

A list is a pair of a user and her items, best first. Groups are rows of item, group and weight.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Lists: TypeAlias = "list[tuple[Any, list[Any]]]"
Rows: TypeAlias = "list[tuple[Any, Any, float]]"


def memberships(rows: Rows) -> dict[Any, dict[Any, float]]:
    """For each item its groups, with weights that add up to 1."""
    found: dict[Any, dict[Any, float]] = defaultdict(dict)
    for item, group, weight in rows:
        found[item][group] = weight
    return {
        item: {group: weight / sum(own.values()) for group, weight in own.items()}
        for item, own in found.items()
    }


def intersections(one: Rows, other: Rows) -> Rows:
    """Every pair of groups that an item is in."""
    left, right = memberships(one), memberships(other)
    return [
        (item, f"{a} + {b}", w * v)
        for item in left.keys() & right.keys()
        for a, w in left[item].items()
        for b, v in right[item].items()
    ]


def exposure_shares(lists: Lists, rows: Rows) -> dict[Any, float]:
    """Each group's share of all exposure."""
    groups = memberships(rows)
    held: dict[Any, float] = {group: 0.0 for _, group, _ in rows}
    whole = 0.0
    for _, items in lists:
        for place, item in enumerate(items):
            weight = 1 / math.log2(place + 2)
            whole += weight
            for group, part in groups.get(item, {}).items():
                held[group] += weight * part
    return {group: amount / whole for group, amount in held.items()}


def standard_errors(lists: Lists, rows: Rows) -> dict[Any, float]:
    """The jackknife: all shares again without each user in turn."""
    users = list(dict.fromkeys(user for user, _ in lists))
    without = [exposure_shares([one for one in lists if one[0] != user], rows) for user in users]
    found = {}
    for group in without[0]:
        values = [shares[group] for shares in without]
        mean = sum(values) / len(values)
        spread = sum((value - mean) ** 2 for value in values)
        found[group] = math.sqrt((len(values) - 1) / len(values) * spread)
    return found


def catalogue_shares(catalogue: Iterable[Any], rows: Rows) -> dict[Any, float]:
    groups, size = memberships(rows), len(list(catalogue))
    found: dict[Any, float] = defaultdict(float)
    for item in catalogue:
        for group, part in groups.get(item, {}).items():
            found[group] += part / size
    return dict(found)


def reach(lists: Lists, rows: Rows) -> dict[Any, float]:
    """The share of the users who saw at least one item of each group."""
    groups, users = memberships(rows), {user for user, _ in lists}
    saw = defaultdict(set)
    for user, items in lists:
        for item in items:
            for group in groups.get(item, {}):
                saw[group].add(user)
    return {group: len(saw[group]) / len(users) for _, group, _ in rows}


def selection_rates(lists: Lists, catalogue: Iterable[Any], rows: Rows) -> dict[Any, float]:
    """The share of each group's items that some list shows."""
    groups, shown = memberships(rows), {item for _, items in lists for item in items}
    whole, seen = defaultdict(float), defaultdict(float)
    for item in catalogue:
        for group, part in groups.get(item, {}).items():
            whole[group] += part
            seen[group] += part * (item in shown)
    return {group: seen[group] / whole[group] for group in whole}


def impact_ratios(rates: dict[Any, float], small: set[Any]) -> dict[Any, float | None]:
    """Each rate over the highest; groups that are small are not compared."""
    best = max(rate for group, rate in rates.items() if group not in small)
    return {group: None if group in small else rate / best for group, rate in rates.items()}
