"""The data of a report page: what a browser needs to draw an exhibit, and its sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.data.groups import exposure_of
from limelight.metrics.exposure import count_moves, lorenz
from limelight.report.metrics import METRICS
from limelight.report.shown_items import HISTORY, MOST_ITEMS, ShownItems, cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight._base.arrays import Float64, Int64
    from limelight.report.exhibit import AuditFindings, Exhibit, ExhibitPoint
    from limelight.report.metrics import Metric


NO_BREAK = "\N{NO-BREAK SPACE}"
"""Between a number and its unit, so that no line ends there."""


def sentence(exhibit: Exhibit, point: ExhibitPoint) -> str:
    r"""Say what a point does against no control, with its numbers.

    Examples
    --------
    >>> from limelight.report.exhibit import Exhibit, ExhibitPoint
    >>> own = {"users": 9, "ndcg@20": 0.2, "gini@20": 0.9, "coverage@20": 0.3}
    >>> plain = ExhibitPoint("iALS", "iALS", own)
    >>> found = {"users": 9, "ndcg@20": 0.19, "gini@20": 0.7, "coverage@20": 0.6}
    >>> fair = ExhibitPoint("online", "online", found)
    >>> exhibit = Exhibit("frontier", "A front", 20, (plain, fair), ["a", "b"], chosen=1)
    >>> sentence(exhibit, fair)
    "With online, the Gini@20 of exposure over 9 users' lists and 2 items falls from 0.900 to 0.700,
    60\xa0% of the items are shown instead of 30\xa0%, and nDCG@20 falls by 5.0\xa0%."
    >>> sentence(exhibit, plain)
    "iALS: Gini@20 of exposure 0.900 over 9 users' lists and 2 items, 30\xa0% of the items shown,
    nDCG@20 0.2000."
    """
    base = None if exhibit.base is None else exhibit.points[exhibit.base]
    if base is None or base is point:
        return _alone(exhibit, point)
    k, now, then = exhibit.k, point.figures, base.figures
    parts = []
    if f"gini@{k}" in now and f"gini@{k}" in then:
        ends = ((one.figures[f"gini@{k}"], _over(exhibit, one)) for one in (base, point))
        parts.append(_moved(f"the Gini@{k} of exposure", *ends))
    if f"coverage@{k}" in now and f"coverage@{k}" in then:
        before, after = then[f"coverage@{k}"], now[f"coverage@{k}"]
        # "13 % instead of 13 %" says nothing.
        if _share(after) != _share(before):
            parts.append(f"{_share(after)} of the items are shown instead of {_share(before)}")
    if then.get(f"ndcg@{k}") and f"ndcg@{k}" in now:
        parts.append(_cost(now[f"ndcg@{k}"] / then[f"ndcg@{k}"] - 1, f"nDCG@{k}"))
    elif f"relevance@{k}" in now:
        parts.append(_cost(now[f"relevance@{k}"] - 1, "the relevance of the lists"))
    if not parts:
        return _alone(exhibit, point)
    return f"With {point.label}, {_listed(parts)}."


def _alone(exhibit: Exhibit, point: ExhibitPoint) -> str:
    k, found = exhibit.k, point.figures
    parts = []
    if f"gini@{k}" in found:
        over = _over(exhibit, point)
        parts.append(f"Gini@{k} of exposure {found[f'gini@{k}']:.3f} {over}")
    if f"coverage@{k}" in found:
        parts.append(f"{_share(found[f'coverage@{k}'])} of the items shown")
    if f"ndcg@{k}" in found:
        parts.append(f"nDCG@{k} {found[f'ndcg@{k}']:.4f}")
    label = capital(point.label)
    return f"{label}: {', '.join(parts)}." if parts else f"{label}."


def _over(exhibit: Exhibit, point: ExhibitPoint) -> str:
    return f"over {exhibit.counted(point)}"


def _moved(what: str, then: tuple[float, str], now: tuple[float, str]) -> str:
    """Say how a figure moves, and over what it is, once where that is the same."""
    (before, over_before), (after, over) = then, now
    verb = "falls" if after < before else "rises"
    if over == over_before:
        return f"{what} {over} {verb} from {before:.3f} to {after:.3f}"
    return f"{what} {verb} from {before:.3f} {over_before} to {after:.3f} {over}"


def _cost(change: float, what: str) -> str:
    verb = "rises" if change > 0 else "falls"
    return f"{what} {verb} by {100 * abs(change):.1f}{NO_BREAK}%"


def capital(text: str) -> str:
    """Begin with a capital, unless the first word is a name that is written otherwise.

    Examples
    --------
    >>> capital("no control"), capital("iALS at 0.1"), capital("")
    ('No control', 'iALS at 0.1', '')
    """
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.islower() else text


def _share(value: float) -> str:
    return f"{100 * value:.0f}{NO_BREAK}%"


def _listed(parts: list[str]) -> str:
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


VERSION = 1


def payload(exhibit: Exhibit, most_items: int = MOST_ITEMS) -> dict[str, Any]:
    """Choose, sample and round what a page shows, as plain values for JSON; figures stay exact.

    The table holds at most ``most_items`` beside those of the example lists.

    Examples
    --------
    >>> from limelight.report.exhibit import Exhibit, ExhibitPoint, ShownLists
    >>> shown = ShownLists(np.array([3.0, 1.0]))
    >>> point = ExhibitPoint("iALS", "iALS", {"gini@2": 0.5}, shown=shown)
    >>> found = payload(Exhibit("audit", "Lists", 2, (point,), np.array(["a", "b"]), base=None))
    >>> found["points"][0]["exposure"], found["points"][0]["figures"]
    ([1.5, 0.5], {'gini': [0.5, None, None]})
    """
    shown, k = ShownItems(exhibit, most_items), exhibit.k
    n_items = len(exhibit.item_ids)
    grid, ranks = _lorenz_grid(n_items), _rank_grid(n_items)
    metrics = [m for m in METRICS if any(f"{m.key}@{k}" in p.figures for p in exhibit.points)]
    return {
        "version": VERSION,
        "kind": exhibit.kind,
        "title": capital(exhibit.title),
        "headline": _headline(exhibit),
        "findings": _findings(exhibit.findings),
        "k": k,
        "slider": "Before and after" if exhibit.kind == "audit" else "Exposure strength",
        "base": exhibit.base,
        "chosen": exhibit.chosen,
        "metrics": [metric.described(k) for metric in metrics],
        "intervals_note": _intervals_note(exhibit),
        "points": [
            _point(exhibit, point, metrics)
            | _curves(point.shown.exposure, grid, ranks)
            | _shares(shown, point.shown.exposure)
            | {"lists": _lists(shown, point.shown.lists), "counts": _counts(exhibit, point)}
            for point in exhibit.points
        ],
        "lorenz_x": _rounded(grid),
        "ranks": ranks.tolist(),
        "items": shown.item_table(),
        "groups": shown.group_table(),
        **shown.notes(),
        "users": _users(shown),
        "data": [list(pair) for pair in exhibit.data.items()],
        "made": [list(pair) for pair in exhibit.made.items()],
        "notes": list(exhibit.notes),
    }


def _point(exhibit: Exhibit, point: ExhibitPoint, metrics: Sequence[Metric]) -> dict[str, Any]:
    return {
        "method": point.method,
        "strength": point.strength,
        "label": capital(point.label),
        "sentence": sentence(exhibit, point),
        "over": str(exhibit.counted(point)),
        "figures": {m.key: _bounds(point.figures, f"{m.key}@{exhibit.k}") for m in metrics},
        "settings": [[name, _written(value)] for name, value in point.settings.items()],
        "on_front": point.on_front,
        "changes": _changes(exhibit, point, metrics),
        "trace": _records(point.shown.trace),
    }


def _headline(exhibit: Exhibit) -> str:
    found = exhibit.findings
    if found is not None and found.headline:
        return found.headline
    return sentence(exhibit, exhibit.points[exhibit.chosen])


def _findings(found: AuditFindings | None) -> dict[str, Any] | None:
    """Describe what an audit found, for the sections that show it."""
    if found is None:
        return None
    return {
        "summary": list(found.summary),
        **({"rules": [dict(rule) for rule in found.rules]} if found.rules else {}),
        "targets": [dict(target) for target in found.targets],
        "periods": [dict(period) for period in found.periods],
        "merit": dict(found.merit),
    }


def _changes(
    exhibit: Exhibit, point: ExhibitPoint, metrics: Sequence[Metric]
) -> dict[str, list[float | None]] | None:
    """Return the intervals of the changes to the chosen point, where they are known."""
    found = exhibit.findings
    if found is None or point is not exhibit.points[exhibit.chosen]:
        return None
    keys = {metric.key: f"{metric.key}@{exhibit.k}" for metric in metrics}
    return {
        name: [_finite(end) for end in found.changes[key]]
        for name, key in keys.items()
        if key in found.changes
    }


def _curves(exposure: Float64 | None, grid: Float64, ranks: Int64) -> dict[str, Any]:
    """Sample the Lorenz curve, and exposure by rank in multiples of an equal share."""
    if exposure is None or exposure.sum() <= 0:
        return {"lorenz": None, "half_held_by": None, "by_rank": None}
    multiples = np.sort(exposure / exposure.mean())[::-1]
    return {
        "lorenz": _rounded(np.interp(grid, *lorenz(exposure))),
        "half_held_by": _half_held_by(multiples),
        "by_rank": _rounded(multiples[ranks - 1]),
    }


def _half_held_by(descending: Float64) -> int:
    """Count the most exposed items that share half of all exposure."""
    held = np.cumsum(descending)
    return int(np.searchsorted(held, held[-1] / 2)) + 1


def _shares(shown: ShownItems, exposure: Float64 | None) -> dict[str, Any]:
    """Say what items of the table have, in multiples of an equal share, and what groups have."""
    if exposure is None or exposure.sum() <= 0:
        return {"exposure": None, "groups": None}
    members = shown.exhibit.groups
    groups = None
    if members is not None:
        groups = _rounded((exposure_of(members, exposure) / exposure.sum())[shown.groups])
    return {"exposure": _rounded((exposure / exposure.mean())[shown.items]), "groups": groups}


def _counts(exhibit: Exhibit, point: ExhibitPoint) -> dict[str, int] | None:
    """Count who gains and who loses against no control, over the whole catalogue."""
    before = None if exhibit.base is None else exhibit.points[exhibit.base].shown.exposure
    after = point.shown.exposure
    if before is None or after is None or before.sum() <= 0 or after.sum() <= 0:
        return None
    return count_moves(before, after)._asdict()


def _intervals_note(exhibit: Exhibit) -> str:
    """Say what the intervals are of, where there are some."""
    if any(key.endswith("_low") for point in exhibit.points for key in point.figures):
        return f"Intervals are 95{NO_BREAK}% intervals over users."
    return ""


def _lists(shown: ShownItems, lists: Any) -> list[list[int]]:
    return [] if lists is None else [shown.place[row[row >= 0]].tolist() for row in lists]


def _users(shown: ShownItems) -> list[dict[str, Any]]:
    examples = shown.exhibit.examples
    if examples is None:
        return []
    nothing = (np.empty(0, dtype=np.int32),) * len(examples.user_ids)
    rows = zip(
        np.asarray(examples.user_ids).tolist(),
        examples.history or nothing,
        examples.liked or nothing,
        strict=True,
    )
    return [
        {
            "label": cut(user),
            "history": shown.place[history[:HISTORY]].tolist(),
            "history_length": len(history),
            # Items that the page does not hold cannot be named.
            "liked": [item for item in shown.place[liked].tolist() if item >= 0],
        }
        for user, history, liked in rows
    ]


def _bounds(figures: Mapping[str, float], key: str) -> list[float | None]:
    """Return a figure with the bounds of its interval."""
    return [_finite(figures.get(key + bound)) for bound in ("", "_low", "_high")]


def _records(trace: Mapping[str, Sequence[float]]) -> list[dict[str, float | None]]:
    rows = zip(*trace.values(), strict=True)
    return [dict(zip(trace, map(_finite, row), strict=True)) for row in rows]


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _lorenz_grid(n_items: int) -> Float64:
    """Choose places on the Lorenz curve, many of them at the end, where it is steep."""
    end = 1 - np.geomspace(1 / max(n_items, 2), 0.5, 60)
    return np.unique(np.concatenate([np.linspace(0, 1, 101), end]))


def _rank_grid(n_items: int) -> Int64:
    return np.unique(np.geomspace(1, n_items, 150).round().astype(np.int64))


def _rounded(values: Float64) -> list[float]:
    """Keep four digits that count: more cannot be seen, and each costs bytes."""
    return [float(f"{value:.4g}") for value in values.tolist()]


def _written(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else cut(value)
