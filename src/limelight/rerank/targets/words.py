"""What was asked for and what groups got, in words: shares in percent, Gini indices as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from limelight._base.text import moves, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.rerank.methods.group_shares import GroupShare

_SHARES = {
    "min_coverage": "a coverage of {}",
    "min_mmf": "an MMF of {}",
    "max_relevance_loss": "a loss of relevance of {}",
    "max_ndcg_loss": "a loss of nDCG of {}",
    "group_cap": "no group above {}",
    "group_floor": "no group below {}",
}
_SHOWN = 5e-5  # a smaller distance would be written as 0.00 points
_OF_GROUPS = {
    "equal": "the same share for every group",
    "catalogue": "shares of groups in proportion to their items",
    "interactions": "shares of groups in proportion to their interactions",
}


def wish_words(name: str, value: Any) -> str:
    """Say one wish.

    Examples
    --------
    >>> wish_words("gini", 0.6), wish_words("min_coverage", 0.5), wish_words("group_cap", 0.03)
    ('a Gini index of 0.6', 'a coverage of 50 %', 'no group above 3 %')
    >>> wish_words("group_cap", {"Oak": 0.1}), wish_words("of", "43 groups")
    ('no group above its own', 'among 43 groups')
    """
    if name == "gini":
        return f"a Gini index of {value:g}"
    if name == "of":
        return f"among {value}"
    if name == "group_shares":
        return _OF_GROUPS[value] if isinstance(value, str) else "a share for every group"
    return _SHARES[name].format("its own" if isinstance(value, Mapping) else f"{100 * value:g} %")


def asked_words(wishes: Mapping[str, Any]) -> str:
    """Say all wishes.

    Examples
    --------
    >>> asked_words({"gini": 0.6, "of": "43 groups", "max_ndcg_loss": 0.02})
    'a Gini index of 0.6 among 43 groups and a loss of nDCG of 2 %'
    """
    words = [wish_words(name, value) for name, value in wishes.items()]
    return " and ".join(words).replace(" and among ", " among ")


def shares_words(shares: Sequence[GroupShare]) -> str:
    """Say how the shares of groups moved towards what was asked of them.

    Examples
    --------
    >>> from limelight.rerank.methods.group_shares import GroupShare
    >>> shares_words([GroupShare("a", 0.5, 0.31, 0.0, 0.3), GroupShare("b", 0.1, 0.2, 0.0, 0.3)])
    'the largest share of a group falls from 50.00 % to 31.00 % (asked: at most 30.00 %)'
    >>> shares_words([GroupShare("a", 0.5, 0.4, 0.0, 1.0)])
    'every group has what was asked, as before'
    """
    caps, floors = {share.at_most for share in shares}, {share.at_least for share in shares}
    words = []
    if len(caps) == len(floors) == 1:
        [cap], [floor] = caps, floors
        if floor < cap < 1:
            words.append(_end("largest", max, shares, f"at most {percent(cap, 2)}"))
        if 0 < floor < cap:
            words.append(_end("smallest", min, shares, f"at least {percent(floor, 2)}"))
    if not words:
        before = max(_off(share, share.before) for share in shares)
        after = max(_off(share, share.after) for share in shares)
        moved = moves(before, after, lambda share: f"{100 * share:.2f} points")
        words.append(
            f"the largest distance of a group from what was asked {moved}"
            if max(before, after) >= _SHOWN
            else "every group has what was asked, as before"
        )
    return ", and ".join(words)


def _off(share: GroupShare, has: float) -> float:
    return max(has - share.at_most, share.at_least - has, 0.0)


def _end(which: str, pick: Any, shares: Sequence[GroupShare], asked: str) -> str:
    before, after = (pick(getattr(share, at) for share in shares) for at in ("before", "after"))
    moved = moves(before, after, lambda share: percent(share, 2))
    return f"the {which} share of a group {moved} (asked: {asked})"
