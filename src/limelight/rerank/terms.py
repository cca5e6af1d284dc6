"""How lists are made, as a paragraph in plain words that can go into terms and conditions.

Rules for platforms ask for the main parameters that decide what is shown, and why they matter as
much as they do. A paragraph says what limelight knows of that. It cannot know what else a platform
does with the lists, what payments change, or which choices users have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from limelight._base.errors import ConfigError
from limelight._base.text import percent

if TYPE_CHECKING:
    from limelight.rerank.result import RerankResult

Form = Literal["details", "terms"]
_LESS_SHOWN = (
    "how much attention an item already gets: of two items that fit you about equally, the one "
    "that is shown less comes first"
)
_RULES = {
    "best response": _LESS_SHOWN,
    "online": _LESS_SHOWN,
    "prices": _LESS_SHOWN,
    "frank wolfe": _LESS_SHOWN,
    "exadmm": "how much attention an item would get from all users together: the more of it, the "
    "lower the item is ranked",
    "ease": "how much attention an item would get from all users together: the more of it, the "
    "lower the item is ranked",
    "allocate": "in how many lists an item stands: every item stands in at least some lists, and "
    "no item in more than a set number of them",
    "fairrec": "in how many lists an item stands: every item is guaranteed some lists",
    "group prices": "how much attention the groups of items get, such as those of one seller: "
    "items of a group that gets too little of it come earlier, of one that gets too much later",
}
_FIT = {
    "histories": "how well an item fits you, which is learnt from what you and other users chose "
    "before: items come first that were chosen by people whose choices are like yours",
    "popularity": "how many people chose an item before, which is the same for all users",
    "chance": "chance: items are drawn at random",
    "scores": "how well an item fits you, which is the score that our recommender gives it for you",
}
_GROUPS = (
    "how much attention a group of items already gets, such as those of one seller: of two items "
    "that fit you about equally, the one whose group is shown less comes first"
)


class ListRules(NamedTuple):
    """What decides which items users are shown."""

    method: str
    """What controls exposure; empty if nothing does."""
    goal: Mapping[str, Any]
    """What was asked for, by name."""
    k: int | None
    """Length of the lists, if it is known."""
    source: str = "histories"
    """Where it is known from what fits a user: a key of ``_FIT``."""
    loss: float | None = None
    """What control costs, as a share of the accuracy, or of the fit where scores are given."""
    bounds: Sequence[float] = ()
    of_groups: bool = False
    """Whether attention is shared among groups of items."""


def check_form(form: str) -> None:
    """Refuse anything but a form that an explanation has.

    Examples
    --------
    >>> check_form("terms")
    """
    if form not in {"details", "terms"}:
        message = f"unknown form of an explanation: {form!r}"
        raise ConfigError(message, hint='choose "details" or "terms"')


def source_of(model: str) -> str:
    """Say where a model, by its name, knows from what fits a user.

    Examples
    --------
    >>> source_of("IALS"), source_of("Popularity")
    ('histories', 'popularity')
    """
    return {"Popularity": "popularity", "Random": "chance"}.get(model, "histories")


def reranked_rules(result: RerankResult) -> ListRules:
    """Take what decides from lists that were re-ranked."""
    return ListRules(
        result.method if result.strength else "",
        result.goal,
        result.k,
        "scores",
        result.relevance_loss,
        of_groups=result.n_groups > 0,
    )


def promised_rules(promise: Mapping[str, Any], model: str) -> ListRules:
    """Take what decides from what a model folder promises.

    Examples
    --------
    >>> target = {"gini": 0.6, "at": 20}
    >>> promised_rules({"target": target, "method": "exadmm", "strength": 0.3}, "ExADMM").k
    20
    """
    target, test = promise["target"], promise.get("test", {})
    k = int(target["at"])
    bounds = [test[key] for side in ("low", "high") if (key := f"ndcg_loss@{k}_{side}") in test]
    return ListRules(
        str(promise.get("method", "")) if promise.get("strength") else "",
        target,
        k,
        source_of(model),
        test.get(f"ndcg_loss@{k}"),
        bounds,
        of_groups="of" in target,
    )


def paragraph(rules: ListRules) -> str:
    """Say in plain words what decides which items a user is shown, in which order, and why.

    Examples
    --------
    >>> print(paragraph(ListRules("", {}, k=10, source="popularity")))
    You are shown lists of up to 10 items. One thing decides which items these are, and their
    order: how many people chose an item before, which is the same for all users.
    """
    shown = "You are shown lists of items."
    if rules.k is not None:
        shown = f"You are shown lists of up to {rules.k:,} items."
    fit = _FIT[rules.source]
    if not rules.method:
        return f"{shown} One thing decides which items these are, and their order: {fit}."
    parts = [
        f"{shown} Two things decide which items these are, and their order.",
        f"The first is {fit}.",
        f"The second is {_rule(rules)}.",
        *_reason(rules),
        *_price(rules),
    ]
    if rules.method.startswith("prices"):
        parts.append(
            "Where there are several settings of the second, one of them is drawn for you by your "
            "user number, and stays the same."
        )
    return " ".join(parts)


def _rule(rules: ListRules) -> str:
    plain = rules.method.replace("-", " ").lower()
    known = [rule for name, rule in _RULES.items() if plain.startswith(name)]
    rule = known[0] if known else f"a rule that shares attention among items ({rules.method})"
    return _GROUPS if rules.of_groups and rule == _LESS_SHOWN else rule


def _reason(rules: ListRules) -> list[str]:
    few = "sellers or groups" if rules.of_groups else "items"
    why = f"The second is there so that attention does not go to a few {few} only."
    wishes = [words for name, value in rules.goal.items() if (words := _wish(name, value))]
    if not wishes:
        return [why]
    return [why, f"It is meant to be just strong enough for this aim: {' and '.join(wishes)}."]


def _wish(name: str, value: Any) -> str:
    """Say what was asked for; nothing for what belongs to another wish."""
    each = isinstance(value, Mapping)
    spoken = {
        "gini": "a Gini index of attention of at most {0} (0: all get the same, 1: one gets all)",
        "min_coverage": "at least {1} of the items are shown to somebody",
        "min_mmf": "the half that gets least attention gets at least {1} of it",
        "max_ndcg_loss": "at most {1} of the accuracy of lists is given up",
        "max_relevance_loss": "at most {1} of the fit is given up",
        "group_cap": "no group gets more than {1} of the attention",
        "group_floor": "every group gets at least {1} of the attention",
        "group_shares": "groups get the shares of attention that were set for them",
    }
    if each and name in {"group_cap", "group_floor"}:
        most = "more" if name == "group_cap" else "less"
        return f"no group gets {most} attention than was set for it"
    if name not in spoken:
        return ""
    share = percent(value) if isinstance(value, int | float) else ""
    return spoken[name].format(value, share)


def _price(rules: ListRules) -> list[str]:
    if rules.loss is None:
        return []
    what = "fit users" if rules.source == "scores" else "find what users choose"
    digits = 2 if rules.source == "scores" else 1
    if percent(rules.loss, digits) == percent(0.0, digits) or rules.loss < 0:
        return [f"As far as was measured, lists {what} no less well because of it."]
    ends = " to ".join(percent(bound, digits) for bound in rules.bounds)
    between = f" ({ends})" if ends else ""
    share = percent(rules.loss, digits)
    return [f"As far as was measured, lists {what} {share}{between} less well because of it."]
