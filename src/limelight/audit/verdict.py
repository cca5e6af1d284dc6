"""What an audit says first: one or two plain sentences for somebody who reads no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._base.printable import printable
from limelight._base.text import count, percent
from limelight.metrics.lists import ListCount, sizes_note

if TYPE_CHECKING:
    from limelight.audit.compare import Comparison
    from limelight.audit.result import Audit
    from limelight.audit.targets import TargetFound

_LONGEST = 60
ONE_MISSED = "A target is missed: "
TARGETS = {
    "gini": "Gini at most",
    "min_coverage": "Coverage at least",
    "group_cap": "Each group at most",
    "group_floor": "Each group at least",
}


def headline(audit: Audit) -> str:
    """Say what was audited."""
    return f"Exposure audit over {audit.counted()}, ranks 1 to {audit.k}"


def summary(audit: Audit) -> list[str]:
    """Say of how many lists and items it is, and how unevenly exposure is shared."""
    gini, floor = (audit.metrics[f"{name}@{audit.k}"] for name in ("gini", "gini_floor"))
    few = items_with_half(audit)
    half = (
        f"Half of the exposure goes to {count(few, 'item')}, {percent(few / audit.items, 2)} of all"
    )
    if audit.catalogue_given and not audit.unexposed:
        half += "; no item is without a list"
    elif audit.catalogue_given:
        hidden = f"{count(audit.unexposed, 'item')} ({percent(audit.unexposed / audit.items, 2)})"
        half += f"; {hidden} {'is' if audit.unexposed == 1 else 'are'} in no list"
    ends = "where 0 is even and 1 is one item alone"
    if round(floor, 4):
        ends = (
            "where 0 is even, 1 is one item alone, "
            f"and about {floor:.4f} is the lowest that these lists could have"
        )
    return [
        f"{headline(audit)}: the Gini is {gini:.4f}, {ends}.",
        f"{half}.",
    ]


def items_with_half(audit: Audit) -> int:
    """Count the items that hold half of the exposure, the most exposed first."""
    held = np.cumsum(np.sort(audit.exposure)[::-1])
    return int(np.searchsorted(held, held[-1] / 2)) + 1


def verdict(audit: Audit, changed: Comparison) -> list[str]:
    """Say what changed, by how much, and whether it may be chance."""
    k = audit.k
    before, change = (changed.metrics[f"gini@{k}_{what}"] for what in ("before", "change"))
    after, step = audit.metrics[f"gini@{k}"], round(change, 4)
    said = f"from {before:.4f} to {after:.4f}"
    if step == 0:
        first = f"Exposure is as even as before: the Gini stayed at {after:.4f}."
    else:
        how, moved = ("more", "fell") if step < 0 else ("less", "rose")
        first = (
            f"Exposure is {how} even than before: the Gini {moved} by {abs(step):.4f}, {said}, "
            f"{chance(changed, f'gini@{k}')}."
        )
    before, after = changed.metrics[f"coverage@{k}_before"], audit.metrics[f"coverage@{k}"]
    second = f"The lists show {percent(after, 2)} of the items"
    if round(after - before, 4):
        second += f", {percent(before, 2)} before, {chance(changed, f'coverage@{k}')}"
    else:
        second += ", as before"
    sizes = {"before": ListCount(lists=changed.lists), "after": ListCount(lists=audit.lists)}
    if sizes_note(sizes):
        were = (
            f"there {'was' if changed.lists == 1 else 'were'} {count(changed.lists, 'list')} before"
        )
        second += (
            f"; but {were} and there are {audit.lists:,} now, which changes both figures by itself"
        )
    return [first, f"{second}."]


def chance(changed: Comparison, key: str) -> str:
    """Say whether another sample of users might have shown no change of a metric."""
    if f"{key}_change_low" not in changed.metrics:
        return "and one user cannot tell whether that is chance"
    low, high = (changed.metrics[f"{key}_change_{end}"] for end in ("low", "high"))
    return "which may be chance" if low <= 0 <= high else "more than chance explains"


def missed_targets(audit: Audit, *, groups_first: bool = False) -> list[str]:
    """Say which targets the lists miss, a sentence for each."""
    missed = [one for one in audit.targets if not one.met]
    if groups_first:
        missed.sort(key=lambda one: not one.missed)
    return [_missed(one) for one in missed]


def short_name(group: object) -> str:
    """Write the name of a group for a sentence: in one line, and not too long.

    Examples
    --------
    >>> short_name("Oak & Co"), len(short_name("x" * 100))
    ('Oak & Co', 60)
    """
    name = printable(str(group))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _missed(target: TargetFound) -> str:
    if target.target == "gini":
        return f"{ONE_MISSED}the Gini is {target.found:.4f}, above {target.asked:g}."
    if target.target == "min_coverage":
        assert target.asked is not None
        return (
            f"{ONE_MISSED}the lists show {percent(target.found, 2)} of the items, less than "
            f"{percent(target.asked, 2)}."
        )
    first, *others = target.missed
    side, bound = ("above", "cap") if target.target == "group_cap" else ("below", "floor")
    more = ""
    if others:
        are = "is" if len(others) == 1 else "are"
        more = f"; {count(len(others), 'other group')} {are} {side} the {bound}, too"
    return (
        f"{ONE_MISSED}{short_name(first.group)} has {percent(first.share, 2)} of the exposure, "
        f"{side} the {bound} of {percent(first.asked, 2)}{more}."
    )
