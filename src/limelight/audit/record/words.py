"""What became of rules, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.printable import printable
from limelight._base.text import count, percent

if TYPE_CHECKING:
    from limelight.audit.record.checks import AuditChecks, RuleCheck, RuleOutcome
    from limelight.audit.result import Audit

_SHARES = {"coverage", "top_share", "merit_distance", "exposure_share", "reach"}
_LONGEST = 60


def broken_rules(audit: Audit) -> list[str]:
    """Say which rules are broken, and which are undecided, a sentence for each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.audit.audit import audit
    >>> lists = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]})
    >>> broken_rules(audit(lists).record(fail_if="coverage@1 >= 99%").audit)
    ['A rule is broken: coverage@1 >= 99%: found 100.00 % [100.00 %, 100.00 %].']
    """
    if audit.checks is None:
        return []
    outcomes = audit.checks.by_rule()
    broken = [f"A rule is broken: {_said(one)}" for one in outcomes if one.verdict == "broken"]
    undecided = [
        f"A rule is undecided: {_said(one)} The interval holds the threshold."
        for one in outcomes
        if one.verdict == "undecided"
    ]
    return broken + undecided


def rule_rows(audit: Audit) -> list[dict[str, str]]:
    """Tabulate the rules: what was found, its interval, and the verdict; of groups, the worst."""
    rows = []
    for one in audit.checks.by_rule() if audit.checks else ():
        worst, several = one.worst[0], len(one.checks) > 1
        name = f"{_name(worst)} " if several else ""
        rows.append(
            {
                "rule": printable(one.rule),
                "found": name + _figure(worst, worst.value),
                "interval": _interval(worst),
                "verdict": one.verdict,
                "result": f"{one.verdict}{_counted(one) if several else ''}",
            }
        )
    return rows


def at_once(checks: AuditChecks) -> str:
    """Say for how many groups intervals hold together; empty where none is of groups."""
    if not checks.family:
        return ""
    level = percent(checks.confidence, 0)
    if checks.correction == "none":
        return f"each interval of a group holds with {level}; those of many do not hold at once"
    return f"with {level}, {count(checks.family, 'interval')} of groups hold at once"


def _said(one: RuleOutcome) -> str:
    worst, others = one.worst[0], len(one.worst) - 1
    name = "" if worst.group is None else f"{_name(worst)} has "
    found = f"{name or 'found '}{_figure(worst, worst.value)} {_interval(worst)}".rstrip()
    more = f"; so is {count(others, 'other group')}" if others == 1 else ""
    more = f"; so are {count(others, 'other group')}" if others > 1 else more
    return f"{printable(one.rule)}: {found}{more}."


def _counted(one: RuleOutcome) -> str:
    found = one.counts
    return f" for {found[one.verdict]:,} of {count(len(one.checks), 'group')}"


def _name(check: RuleCheck) -> str:
    name = printable(str(check.group))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _interval(check: RuleCheck) -> str:
    if check.low is None or check.high is None:
        return ""
    return f"[{_figure(check, check.low)}, {_figure(check, check.high)}]"


def _figure(check: RuleCheck, value: float) -> str:
    """Write a figure for people: shares in percent."""
    name = check.figure.partition("@")[0]
    return percent(value, 2) if name in _SHARES else f"{value:.4f}"
