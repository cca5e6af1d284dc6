"""The record of an audit: a JSON file that others can check, and compare with the next one.

It holds everything that figures depend on, and no user ids. For the same input it has the same
bytes, but for the time. Numbers have twelve significant digits, because the last ones of a sum may
differ between processors.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from limelight._base.files import write_text
from limelight._base.machine import command_line, package_version
from limelight._base.printable import printable_lines
from limelight._native import variant
from limelight.audit.record.checks import AuditChecks, check_rules, group_bounds, metric_bounds
from limelight.audit.record.definitions import definitions_of
from limelight.audit.record.plan import NO_PLAN, AuditPlan, read_plan
from limelight.audit.record.rules import FOUR_FIFTHS, OF_GROUPS, parse_rule

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from limelight.audit.result import Audit

SCHEMA = "limelight.audit/1"
_LIMITS = (
    "An interval speaks of other samples of as many users, not of infinitely many: Gini falls and "
    "coverage grows with the number of lists.",
    "Lists say what was shown, not what was seen, clicked or bought.",
)
_OF_PERIODS = ("gini", "gini_floor", "coverage", "top_share")


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """An audit that was held against rules."""

    audit: Audit
    """It shows what became of the rules: `print(record.audit)`, `record.audit.report(...)`."""

    checks: AuditChecks
    plan: AuditPlan
    created: str
    """When, in UTC."""

    @property
    def verdict(self) -> str | None:
        """The worst verdict: "broken", "undecided" or "met"; None where there are no rules."""
        return self.checks.verdict

    def __repr__(self) -> str:
        """Show the verdict, and how many checks there are."""
        return f"AuditRecord(verdict={self.verdict!r}, checks={len(self.checks.checks):,})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as docs/schemas/audit-record-1.json describes it."""
        audit = self.audit
        results = list(_results(audit, self.plan.confidence))
        names = [one["figure"] for one in results]
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "created": self.created,
            "tool": {"name": "limelight", "version": package_version(), "kernels": variant()},
            "command": command_line(),
            "plan": self.plan.to_dict() if self.plan.path else None,
            "inputs": [one.to_dict() for one in audit.inputs],
            "settings": {
                "k": audit.k,
                "small_groups": audit.small_groups,
                "confidence": self.plan.confidence,
            },
            "population": _population(audit),
            "dropped": audit.dropped,
            "definitions": definitions_of(names),
            "results": results,
            **self.checks.to_dict(),
            "targets": [asdict(one) for one in audit.targets],
            "notes": list(audit.notes),
            "limits": list(_LIMITS),
        }
        rounded: dict[str, Any] = _rounded(found)
        return rounded

    def to_json(self) -> str:
        """Return it as text."""
        text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=2)
        return printable_lines(text, lambda character: json.dumps(character)[1:-1]) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record, whole or not at all."""
        write_text(path, self.to_json())


def make_record(
    audit: Audit,
    plan: str | os.PathLike[str] | None,
    fail_if: Sequence[str],
    *,
    four_fifths: bool = False,
) -> AuditRecord:
    """Hold an audit against the rules of a plan, and against others."""
    fixed = NO_PLAN if plan is None else read_plan(plan)
    fixed.check(audit)
    planned = fixed.parsed()
    others = [parse_rule(text) for text in fail_if]
    if four_fifths and not fixed.four_fifths:
        others.append(parse_rule(FOUR_FIFTHS))
    checks = check_rules(audit, [*planned, *others], fixed, len(planned))
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return AuditRecord(replace(audit, checks=checks), checks, fixed, created)


def _population(audit: Audit) -> dict[str, Any]:
    found: dict[str, Any] = {
        "users": audit.users,
        "lists": audit.lists,
        "items": audit.items,
        "items_in_no_list": audit.unexposed,
        "catalogue_given": audit.catalogue_given,
    }
    figures = audit.groups_found
    if figures is not None and audit.ungrouped is not None:
        found |= {
            "groups": len(figures.names),
            "small_groups": int((~figures.compared).sum()),
            "items_without_group": round(audit.ungrouped.catalogue_share * audit.items),
            "exposure_without_group": audit.ungrouped.exposure_share,
        }
    return found


def _results(audit: Audit, confidence: float) -> Iterator[dict[str, Any]]:
    """Give every figure with the slice that it is of, and its interval."""
    for key, value in audit.metrics.items():
        yield _result(key, {}, value, *metric_bounds(audit, key, confidence), k=audit.k)
    yield from _group_results(audit, confidence)
    if audit.comparison is not None:
        changes = audit.comparison.metrics
        for key in audit.metrics:
            yield _result(key, {"lists": "before"}, changes[f"{key}_before"], k=audit.k)
            # Intervals of changes are those of 95 %, whatever the plan says.
            ends = (
                (changes.get(f"{key}_change_low"), changes.get(f"{key}_change_high"))
                if confidence == NO_PLAN.confidence
                else (None, None)
            )
            yield _result(key, {"lists": "change"}, changes[f"{key}_change"], *ends, k=audit.k)
    for period in audit.periods:
        for name in _OF_PERIODS:
            yield _result(name, {"period": period.start}, getattr(period, name), k=audit.k)


def _group_results(audit: Audit, confidence: float) -> Iterator[dict[str, Any]]:
    figures = audit.groups_found
    if figures is None:
        return
    at_once = 1.0 - (1.0 - confidence) / max(1, int(figures.compared.sum()))
    columns = {
        name: group_bounds(figures, rule, at_once if rule == "impact_ratio" else confidence)
        for rule, name in OF_GROUPS.items()
    }
    columns["selection_rate"] = figures.selected, None, None
    columns["selection_ratio"] = figures.impact(figures.selected), None, None
    for at, group in enumerate(figures.names):
        for name, (values, low, high) in columns.items():
            if values[at] == values[at]:  # small groups have no ratio to others
                ends = (None, None) if low is None else (float(low[at]), float(high[at]))
                yield _result(name, {"group": group}, float(values[at]), *ends, k=audit.k)


def _result(
    key: str,
    of: dict[str, Any],
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    k: int,
) -> dict[str, Any]:
    name = key.partition("@")[0]
    return {"figure": name, "k": k, "slice": of, "value": value, "low": low, "high": high}


def _rounded(value: Any) -> Any:
    """Keep twelve significant digits of every number; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(name): _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if abs(value) < float("inf") else None
    return value
