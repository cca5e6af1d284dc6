"""Whether lists break rules: met, broken, or undecided where the interval holds the threshold.

Of 2,000 groups, fifty or so look broken at 95 % by chance alone. So the intervals of groups that
rules ask for are made wider, until all of them hold at once (Bonferroni): with m of them, each
holds with probability 1 - (1 - c) / m. What several rules ask of one group counts once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from limelight._base.errors import ConfigError
from limelight.audit.record.rules import OF_GROUPS, FailRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limelight._base.arrays import Float64
    from limelight.audit.groups import GroupFigures
    from limelight.audit.record.plan import AuditPlan
    from limelight.audit.result import Audit

VERDICTS = ("broken", "undecided", "met")
"""The worst first."""


@dataclass(frozen=True)
class RuleCheck:
    """One figure held against one rule."""

    rule: str
    planned: bool
    """Whether the rule stands in the plan; others came with the command."""
    figure: str
    """A metric with its k, or a figure of a group."""
    group: int | str | None
    value: float
    low: float | None
    """The interval; None where a figure has none, and its value decides."""
    high: float | None
    verdict: str


@dataclass(frozen=True)
class AuditChecks:
    """All rules, and what became of them."""

    checks: tuple[RuleCheck, ...]
    confidence: float
    correction: str
    family: int
    """How many intervals of groups hold at once."""

    @property
    def level(self) -> float:
        """The probability with which each interval of a group holds."""
        if self.correction == "none" or not self.family:
            return self.confidence
        return 1.0 - (1.0 - self.confidence) / self.family

    @property
    def verdict(self) -> str | None:
        """The worst of all verdicts; None where there are no rules."""
        found = {one.verdict for one in self.checks}
        return next((verdict for verdict in VERDICTS if verdict in found), None)

    def by_rule(self) -> list[RuleOutcome]:
        """Put together what became of each rule, in the order of the rules."""
        rules = dict.fromkeys(one.rule for one in self.checks)
        return [
            RuleOutcome(rule, [one for one in self.checks if one.rule == rule]) for rule in rules
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON.

        Examples
        --------
        >>> AuditChecks((), 0.95, "none", 0).to_dict()["verdict"]
        """
        return {
            "verdict": self.verdict,
            "correction": {
                "method": self.correction,
                "intervals": self.family,
                "confidence": self.confidence,
                "level_of_each": self.level,
            },
            "checks": [asdict(one) for one in self.checks],
        }


class RuleOutcome(NamedTuple):
    """A rule, and all that was held against it."""

    rule: str
    checks: list[RuleCheck]

    @property
    def verdict(self) -> str:
        """The worst verdict."""
        return min((one.verdict for one in self.checks), key=VERDICTS.index)

    @property
    def counts(self) -> Counter[str]:
        """How many checks have each verdict."""
        return Counter(one.verdict for one in self.checks)

    @property
    def worst(self) -> list[RuleCheck]:
        """The checks with the worst verdict, the furthest beyond the threshold first."""
        found = [one for one in self.checks if one.verdict == self.verdict]
        sign = -1 if ">" in self.rule.rsplit('"', 1)[-1] else 1
        return sorted(found, key=lambda one: sign * one.value)


def check_rules(
    audit: Audit, rules: Sequence[FailRule], plan: AuditPlan, n_planned: int
) -> AuditChecks:
    """Hold an audit against rules, of which the first so many stand in the plan."""
    figures = audit.groups_found
    targets = [_targets(audit, rule) for rule in rules]
    family: set[tuple[str, int]] = set()
    for rule, groups in zip(rules, targets, strict=True):
        if figures is not None and groups:
            family |= _intervals(rule, groups, figures)
    empty = AuditChecks((), plan.confidence, plan.correction, len(family))
    bounds = _Bounds(figures, empty.level)
    found: list[RuleCheck] = []
    for number, (rule, groups) in enumerate(zip(rules, targets, strict=True)):
        planned = number < n_planned
        if figures is None or rule.figure not in OF_GROUPS:
            ends = metric_bounds(audit, rule.figure, plan.confidence)
            value = audit.metrics[rule.figure]
            found.append(_checked(rule, rule.figure, None, value, ends, planned=planned))
            continue
        values, low, high = bounds.of(rule.figure)
        for at in groups:
            ends = (None, None) if low is None else (float(low[at]), float(high[at]))
            name, figure = figures.names[at], OF_GROUPS[rule.figure]
            found.append(_checked(rule, figure, name, float(values[at]), ends, planned=planned))
    return AuditChecks(tuple(found), plan.confidence, plan.correction, len(family))


def metric_bounds(audit: Audit, key: str, confidence: float) -> tuple[float | None, float | None]:
    """Give the interval of a metric; none where it has none."""
    if key not in audit.errors:
        return None, None
    margin = -float(special.ndtri((1.0 - confidence) / 2.0)) * audit.errors[key]
    value = audit.metrics[key]
    return max(0.0, value - margin), min(1.0, value + margin)


def _checked(
    rule: FailRule,
    figure: str,
    group: int | str | None,
    value: float,
    ends: tuple[float | None, float | None],
    *,
    planned: bool,
) -> RuleCheck:
    """Hold a figure against a rule; without an interval, its value decides."""
    low, high = (value if end is None else end for end in ends)
    return RuleCheck(rule.text, planned, figure, group, value, *ends, rule.verdict(low, high))


def _targets(audit: Audit, rule: FailRule) -> list[int]:
    """Find the groups that a rule is about, by number; refuse what the audit does not have."""
    if rule.figure not in OF_GROUPS:
        _refuse_metric(audit, rule)
        return []
    figures = audit.groups_found
    if figures is None:
        message = f"a rule about groups needs groups: {rule.text!r}"
        raise ConfigError(message, hint="name them with groups='...'")
    has_figure = np.ones(len(figures.names), dtype=bool)
    if rule.figure == "impact_ratio":
        has_figure = ~np.isnan(figures.impact(figures.rates))
    if rule.every:
        return [int(at) for at in np.flatnonzero(has_figure)]
    place = {str(name): at for at, name in enumerate(figures.names)}
    if rule.group not in place:
        message = f"the rule {rule.text!r} is of a group without items: {rule.group!r}"
        raise ConfigError(message, hint="name groups as the table of groups does")
    if not has_figure[place[rule.group]]:
        message = f"the group of the rule {rule.text!r} is too small to be compared: {rule.group!r}"
        raise ConfigError(message, hint="lower small_groups, or leave the rule out")
    return [place[rule.group]]


def _refuse_metric(audit: Audit, rule: FailRule) -> None:
    """Refuse a metric that the audit does not have."""
    name, _, k = rule.figure.partition("@")
    known = [key.partition("@")[0] for key in audit.metrics]
    if name not in known:
        message = f"the audit has no such metric for the rule {rule.text!r}: {name!r}"
        raise ConfigError(message, hint=f"known: {', '.join(known)}; those of merit need merit")
    if int(k) != audit.k:
        message = f"the audit is over ranks 1 to {audit.k}, not as in the rule: {rule.text!r}"
        raise ConfigError(message, hint=f"write {name}@{audit.k}, or audit with k={k}")


def _intervals(
    rule: FailRule, groups: Iterable[int], figures: GroupFigures
) -> set[tuple[str, int]]:
    """Name the intervals that a rule needs: an impact ratio needs those of all that compare."""
    if rule.figure == "reach":
        return {("reach", at) for at in groups}
    if rule.figure == "impact_ratio":
        groups = np.flatnonzero(figures.compared).tolist()
    return {("share", at) for at in groups}


class _Bounds:
    """The figures of groups with their intervals, each worked out once."""

    def __init__(self, figures: GroupFigures | None, level: float) -> None:
        self._figures, self._level = figures, level
        self._known: dict[str, tuple[Float64, Any, Any]] = {}

    def of(self, figure: str) -> tuple[Float64, Any, Any]:
        """Return values, lows and highs; lows and highs are None for one user."""
        if figure not in self._known:
            assert self._figures is not None
            self._known[figure] = group_bounds(self._figures, figure, self._level)
        return self._known[figure]


def group_bounds(figures: GroupFigures, figure: str, level: float) -> tuple[Float64, Any, Any]:
    """Give a figure of all groups, as rules call it, with intervals made from those of a level."""
    if figure == "reach":
        values, found = figures.reach, figures.reach_bounds(level)
    elif figure == "impact_ratio":
        values, found = figures.impact(figures.rates), figures.impact_bounds(level)
    else:
        per_item = figure == "ratio"
        values, found = figures.rates if per_item else figures.shares, figures.share_bounds(level)
        if per_item and found is not None:
            found = found[0] / figures.catalogue, found[1] / figures.catalogue
    low, high = (None, None) if found is None else found
    return values, low, high
