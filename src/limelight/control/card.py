"""A model card: what a model is, what it was measured to do, what it promises, and where that ends.

It is Markdown that begins with metadata as Hugging Face reads them. There are no ids in it: not of
users, not of items, not of groups.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from limelight._base.documents import Table
from limelight._base.errors import DataError
from limelight._base.machine import package_version
from limelight._base.printable import printable
from limelight._base.text import count, moves, percent, price, short
from limelight.metrics.lists import ListCount
from limelight.rerank.terms import ListRules, paragraph, promised_rules, source_of
from limelight.store.card import CARD_BEGINS

if TYPE_CHECKING:
    from limelight.models.recommender import Recommender

_MEASURES = {
    "ndcg": "nDCG",
    "recall": "recall",
    "ndcg_loss": "loss of nDCG against no control",
    "gini": "Gini of exposure",
    "gini_uniform": "Gini of exposure, all places alike",
    "gini_floor": "lowest Gini that so many lists can have",
    "coverage": "share of the items shown",
    "entropy": "entropy of exposure",
    "top_share": "share of exposure of the top 1 % of the items",
    "group_gini": "Gini of the exposure of groups",
    "group_coverage": "share of the groups shown",
    "group_mmf": "share of the half of the groups with least exposure",
    "gini_within_groups": "Gini within groups",
}
_SIDES = ("_low", "_high", "_before")
_LIMITS = (
    "Accuracy is measured by held-out interactions: what a user did not choose counts as not "
    "liked, although nobody may have shown it to her. Popular items are held out more often, so "
    "such figures favour lists of popular items, and may overstate what sharing exposure costs.",
    "Exposure is where lists place items, weighted by 1 / log2(rank + 1), not who looked or "
    "clicked. It is counted over the lists and the catalogue named here; a Gini of another number "
    "of lists or items cannot be compared with it.",
    "Intervals are 95 % bootstrap intervals over the users who were measured. They say nothing of "
    "users or times unlike theirs.",
    "Nothing here says how well lists serve some kinds of users against others, or whether the "
    "interactions were recorded fairly.",
)
_KEPT = (
    "The folder of the model holds ids of users and items, and may hold the users' histories. This "
    "card holds none."
)


def model_card(
    model: Recommender,
    name: str = "model",
    *,
    evaluation: Mapping[str, Any] | None = None,
) -> str:
    """Write a model card in Markdown, with the metadata of Hugging Face's model cards.

    Parameters
    ----------
    model
        A fitted model, re-ranked or not. What a target search promised stands in the card.
    name
        What to call the model.
    evaluation
        What ``ll.evaluate(model, split.test).to_dict()`` returned, or `limelight evaluate --json`
        printed: figures for the card of a model without a target, or more of them.

    Returns
    -------
    Text without ids of users, items or groups. The licence is left out, because it is not known.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 100, 4000).interactions)
    >>> print(model_card(model, "films"))
    ---
    library_name: limelight
    tags:
    - recommender-system
    - implicit-feedback
    - ials
    ---
    <BLANKLINE>
    # Model card: films
    ...
    """
    promise = model.promise or {}
    figures = _figures(promise, evaluation)
    sections = [
        ("", [_what(model, promise)]),
        ("Data", [_data(model)]),
        ("Settings", [_settings(model)]),
        ("Accuracy and exposure", _measured(figures)),
        ("Control of exposure", _control(model, promise)),
        ("How lists are made, in plain words", [model_terms(model)]),
        ("Limits", _limits(model, promise, figures)),
    ]
    text = "\n\n".join(
        part
        for title, parts in sections
        for part in ([f"## {title}"] if title and parts else []) + parts
    )
    head = _metadata(model, name, figures, promise)
    return f"{head}\n\n# Model card: {_plain(name)}\n\n{text}\n"


def model_terms(model: Recommender) -> str:
    """Say in plain words what decides which items users are shown, for terms and conditions.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.Popularity().fit(ll.marketplace(300, 100, 4000).interactions)
    >>> print(model_terms(model))
    You are shown lists of items. One thing decides which items these are, and their order: how
    many people chose an item before, which is the same for all users.
    """
    return paragraph(_rules(model))


def _plain(text: str) -> str:
    """Write a name so that it is neither markup nor anything that a terminal would obey."""
    marks = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#"})
    return printable(text).translate(marks)


def _figures(promise: Mapping[str, Any], evaluation: Mapping[str, Any] | None) -> dict[str, float]:
    """Take what was measured of users whom nothing was decided by: of the promise, or as given."""
    found = dict(promise.get("test", {}))
    if evaluation is not None:
        of_metrics = {key: value for key, value in evaluation.items() if "@" in key}
        if not of_metrics or not all(_is_number(value) for value in of_metrics.values()):
            message = f"no figures of an evaluation: {short(dict(evaluation))}"
            hint = "pass what `limelight evaluate model/ split/ --json` printed"
            raise DataError(message, hint=hint)
        # What was measured of other lists than those of the promise replaces all of its figures.
        found = of_metrics | {
            key: evaluation[key] for key in ("users", "items") if key in evaluation
        }
    numbers = {key: float(value) for key, value in found.items() if _is_number(value)}
    return {key: value for key, value in numbers.items() if math.isfinite(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _metadata(
    model: Recommender, name: str, figures: Mapping[str, float], promise: Mapping[str, Any]
) -> str:
    """Write the metadata: YAML, in which every text is quoted as JSON quotes it."""
    kind = type(model.model).__name__
    tags = ["recommender-system", "implicit-feedback", kind.lower()]
    if model.reranker is not None or promise.get("strength"):
        tags.append("exposure-control")
    lines = [CARD_BEGINS.rstrip("\n"), "tags:", *(f"- {tag}" for tag in tags)]
    main = [key for key in figures if "@" in key and not key.endswith(_SIDES)]
    if main:
        fingerprint = model.learned.fingerprint or "unknown"
        lines += [
            "model-index:",
            f"- name: {json.dumps(name)}",
            "  results:",
            "  - task:",
            "      type: recommendation",
            "      name: Top-k recommendation",
            "    dataset:",
            f"      name: {json.dumps(f'interactions {fingerprint}')}",
            "      type: interactions",
            "    metrics:",
        ]
        for key in main:
            measure, k = key.split("@")
            said = f"{_MEASURES.get(measure, measure)}, lists of {k}{_interval(figures, key)}"
            lines += [
                f"    - type: {json.dumps(key)}",
                f"      value: {figures[key]!r}",
                f"      name: {json.dumps(said)}",
            ]
    return "\n".join([*lines, "---"])


def _interval(figures: Mapping[str, float], key: str) -> str:
    ends = [figures.get(f"{key}_{side}") for side in ("low", "high")]
    return "" if None in ends else f" (95 %: {ends[0]:.4f} to {ends[1]:.4f})"


def _what(model: Recommender, promise: Mapping[str, Any]) -> str:
    kind = f"`{type(model.model).__name__}`"
    how = "" if model.reranker is None else f", re-ranked by `{type(model.reranker).__name__}`"
    k = promise.get("target", {}).get("at")
    lists = "" if k is None else f" in lists of {k}"
    return (
        f"A recommender that ranks items for users{lists}: {kind}{how}. limelight "
        f"{package_version()} wrote this card."
    )


def _data(model: Recommender) -> str:
    learned = model.learned
    seen = learned.seen
    rows = [
        ("users", f"{len(learned.user_ids):,}"),
        ("items", f"{len(learned.item_ids):,}"),
        ("interactions", "not kept" if seen is None else f"{len(seen.indices):,}"),
        ("weighted", "yes" if learned.weighted else "no"),
        ("fingerprint", f"`{learned.fingerprint}`" if learned.fingerprint else "unknown"),
    ]
    return Table(("of the training", ""), rows).markdown()


def _settings(model: Recommender) -> str:
    """Tabulate the settings that differ from the defaults, and what was left to the fit."""
    own = model.model
    rows = [("model", type(own).__name__)]
    rows += [(key, _setting(value)) for key, value in own.config.changed().items()]
    rows += [(f"{key} (auto)", f"{value:.4g}") for key, value in own.chosen_.items()]
    if own.status_:
        rows.append(("fit ended", own.status_.name.lower()))
    if model.reranker is not None:
        rows.append(("re-ranker", type(model.reranker).__name__))
        changed = model.reranker.config.changed().items()
        rows += [(key, _setting(value)) for key, value in changed]
    return Table(("setting", ""), rows).markdown()


def _setting(value: Any) -> str:
    """Write a setting: a table by group without its groups, a fitted law by its kind."""
    if isinstance(value, Mapping):
        return f"one for each of {count(len(value), 'group')}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value) if isinstance(value, int | str) else type(value).__name__


def _measured(figures: Mapping[str, float]) -> list[str]:
    main = [key for key in figures if "@" in key and not key.endswith(_SIDES)]
    if not main:
        return [
            "Nothing was measured. `limelight evaluate model/ split/ --json > found.json`, then "
            "`limelight card model/ --evaluation found.json`, adds figures."
        ]
    rows = []
    for key in main:
        measure, k = key.split("@")
        cells = (
            f"{figures[end]:.4f}" if (end := key + side) in figures else ""
            for side in ("_before", "", "_low", "_high")
        )
        rows.append((f"{_MEASURES.get(measure, measure)} @{k}", *cells))
    table = Table(("", "without control", "this model", "95 % from", "to"), rows)
    return [_of_whom(figures), table.markdown()]


def _of_whom(figures: Mapping[str, float]) -> str:
    """Say how many users the figures are of."""
    users, items = (int(figures[key]) if key in figures else None for key in ("users", "items"))
    scored = figures.get("scored_users", users)
    text = "Accuracy is of users who were held out when it was measured"
    if scored is not None:
        text = f"Accuracy is of {count(int(scored), 'user')}, held out when it was measured"
    if users is None:
        return f"{text}."
    together = ", among them these" if scored != users else ""
    return f"{text}, exposure over {ListCount(users, items)}{together}."


def _control(model: Recommender, promise: Mapping[str, Any]) -> list[str]:
    if not promise:
        controlled = _rules(model).method
        why = "the strength of its control was given" if controlled else "it is not controlled"
        return [f"No promise is made about exposure: {why}, and no target was asked for."]
    target = {key: value for key, value in promise["target"].items() if key != "at"}
    asked = ", ".join(f"{key} {_setting(value)}" for key, value in target.items() if key != "of")
    k, served, test = promise["target"]["at"], promise["served"], promise.get("test", {})
    prefix = "group_" if f"group_gini@{k}_before" in served else ""
    found = [
        f"Asked for: {asked}{' of groups' if 'of' in target else ''}, in lists of {k}, over "
        f"{_plain(promise['population'])}. The target is {'met' if promise['met'] else 'not met'} "
        f"by {_plain(str(promise['method']))} at strength {promise['strength']:.4g}."
    ]
    if f"{prefix}gini@{k}_before" in served:
        gini, shown = (
            moves(served[f"{prefix}{key}@{k}_before"], served[f"{prefix}{key}@{k}"], write)
            for key, write in (("gini", "{:.3f}".format), ("coverage", percent))
        )
        whom = "groups" if prefix else "items"
        found.append(
            f"Over {count(int(served['users']), 'user')}, the Gini@{k} of the exposure of {whom} "
            f"{gini}, and the share of the {whom} shown {shown}. These are all lists of the "
            "population, not a sample of them, so they have no interval."
        )
    if (loss := test.get(f"ndcg_loss@{k}")) is not None:
        ends = [test[key] for s in ("low", "high") if (key := f"ndcg_loss@{k}_{s}") in test]
        found.append(f"{price(loss, f'nDCG@{k}', ends)}, for test users.")
    return found


def _rules(model: Recommender) -> ListRules:
    """Take what decides which items are shown from a promise, or from the settings."""
    kind = type(model.model).__name__
    if model.promise:
        return promised_rules(model.promise, kind)
    method, own = "", model.model.config
    if model.reranker is not None:
        if getattr(model.reranker.config, type(model.reranker).strength_setting, True):
            method = type(model.reranker).method or type(model.reranker).__name__
    elif getattr(own, "exposure_strength", 0) or getattr(own, "exposure_weight", 0):
        method = kind
    of_groups = getattr(model.reranker, "groups_", None) is not None
    return ListRules(method, {}, None, source_of(kind), of_groups=of_groups)


def _limits(
    model: Recommender, promise: Mapping[str, Any], figures: Mapping[str, float]
) -> list[str]:
    limits = list(_LIMITS if figures else _LIMITS[1:])
    if promise:
        limits.insert(
            0,
            f"The promise is for {_plain(promise['population'])}, together. For other users, and "
            "after new interactions were learnt, exposure has to be measured again.",
        )
    elif model.serves == "together":
        limits.insert(0, "Lists are made together: exposure depends on who is served with whom.")
    return ["\n".join(f"- {limit}" for limit in [*limits, _KEPT])]
