"""The figures that a page shows as cards: what they are called, and what they say."""

from __future__ import annotations

from typing import Any, NamedTuple

_WITHOUT_K = {
    "relevance",
    "coverage",
    "top_share",
    "merit_gini",
    "merit_distance",
    "merit_spearman",
    "merit_none_share",
}
"""Metrics whose names are long enough without the length of the lists."""


class Metric(NamedTuple):
    """A figure, and how to show it."""

    key: str
    label: str
    better: str
    help: str
    percent: bool = False
    accuracy: bool = False
    """Whether it says what evenness costs."""

    def described(self, k: int) -> dict[str, Any]:
        """Describe it for the page, where most names say the length of the lists."""
        label = self.label if self.key in _WITHOUT_K else f"{self.label}@{k}"
        return self._asdict() | {"label": label, "digits": 1 if self.percent else 4}


METRICS = (
    Metric(
        "ndcg",
        "nDCG",
        "higher",
        "Accuracy: how high lists rank what users were found to like.",
        accuracy=True,
    ),
    Metric(
        "recall",
        "Recall",
        "higher",
        "Accuracy: the share of what users like in their lists.",
        accuracy=True,
    ),
    Metric(
        "relevance",
        "Relevance",
        "higher",
        "How much of the relevance of users' own lists is kept.",
        percent=True,
        accuracy=True,
    ),
    Metric(
        "gini",
        "Gini",
        "lower",
        "Inequality of exposure: 0 if all items have the same, near 1 if a few have all of it.",
    ),
    Metric(
        "coverage",
        "Coverage",
        "higher",
        "The share of the items that any list shows.",
        percent=True,
    ),
    Metric(
        "top_share",
        "Top 1\N{NO-BREAK SPACE}%",
        "lower",
        "The share of all exposure that the most exposed 1\N{NO-BREAK SPACE}% of the items hold.",
        percent=True,
    ),
    Metric(
        "merit_gini",
        "Merit Gini",
        "lower",
        "Inequality of exposure per merit: 0 if exposure is proportional to merit.",
    ),
    Metric(
        "merit_distance",
        "To move",
        "lower",
        "The share of the exposure that would have to move to match merit.",
        percent=True,
    ),
    Metric(
        "merit_spearman",
        "Merit order",
        "higher",
        "Rank correlation of exposure and merit: 1 if both order the items alike.",
    ),
    Metric(
        "merit_none_share",
        "Without merit",
        "",
        "The share of the exposure held by items without merit, such as new ones.",
        percent=True,
    ),
)
