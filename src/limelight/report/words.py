"""What a report says in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limelight.evaluate.exhibit import Exhibit, Point


def headline(exhibit: Exhibit) -> str:
    """Say what the chosen point does, with its numbers."""
    return sentence(exhibit, exhibit.points[exhibit.chosen])


def sentence(exhibit: Exhibit, point: Point) -> str:
    """Say what a point does against no control, with its numbers.

    Examples
    --------
    >>> from limelight.evaluate.exhibit import Exhibit, Point
    >>> plain = Point("iALS", "iALS", {"ndcg@20": 0.2, "gini@20": 0.9, "coverage@20": 0.3})
    >>> fair = Point("online", "online", {"ndcg@20": 0.19, "gini@20": 0.7, "coverage@20": 0.6})
    >>> exhibit = Exhibit("frontier", "A front", 20, (plain, fair), ["a", "b"], chosen=1)
    >>> sentence(exhibit, fair)
    'With online, the Gini@20 of exposure falls from 0.900 to 0.700, 60 % of the items are shown
    instead of 30 %, and nDCG@20 falls by 5.0 %.'
    >>> sentence(exhibit, plain)
    'iALS: Gini@20 of exposure 0.900, 30 % of the items shown, nDCG@20 0.2000.'
    """
    base = None if exhibit.base is None else exhibit.points[exhibit.base]
    if base is None or base is point:
        return _alone(exhibit, point)
    k, now, then = exhibit.k, point.figures, base.figures
    parts = []
    if f"gini@{k}" in now and f"gini@{k}" in then:
        parts.append(_moved(f"the Gini@{k} of exposure", then[f"gini@{k}"], now[f"gini@{k}"]))
    if f"coverage@{k}" in now and f"coverage@{k}" in then:
        before, after = then[f"coverage@{k}"], now[f"coverage@{k}"]
        parts.append(f"{_share(after)} of the items are shown instead of {_share(before)}")
    if then.get(f"ndcg@{k}") and f"ndcg@{k}" in now:
        parts.append(_cost(now[f"ndcg@{k}"] / then[f"ndcg@{k}"] - 1, f"nDCG@{k}"))
    elif f"relevance@{k}" in now:
        parts.append(_cost(now[f"relevance@{k}"] - 1, "the relevance of the lists"))
    if not parts:
        return _alone(exhibit, point)
    return f"With {point.label}, {_listed(parts)}."


def _alone(exhibit: Exhibit, point: Point) -> str:
    k, found = exhibit.k, point.figures
    parts = []
    if f"gini@{k}" in found:
        parts.append(f"Gini@{k} of exposure {found[f'gini@{k}']:.3f}")
    if f"coverage@{k}" in found:
        parts.append(f"{_share(found[f'coverage@{k}'])} of the items shown")
    if f"ndcg@{k}" in found:
        parts.append(f"nDCG@{k} {found[f'ndcg@{k}']:.4f}")
    return f"{point.label}: {', '.join(parts)}." if parts else f"{point.label}."


def _moved(what: str, before: float, after: float) -> str:
    verb = "falls" if after < before else "rises"
    return f"{what} {verb} from {before:.3f} to {after:.3f}"


def _cost(change: float, what: str) -> str:
    verb = "rises" if change > 0 else "falls"
    return f"{what} {verb} by {100 * abs(change):.1f} %"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _listed(parts: list[str]) -> str:
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
