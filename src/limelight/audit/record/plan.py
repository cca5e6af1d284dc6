"""The plan of an audit: the criteria, fixed in a TOML file before anything is measured."""

from __future__ import annotations

import difflib
import hashlib
import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_choice, check_flag, check_integer, check_number
from limelight.audit.record.rules import FOUR_FIFTHS, FailRule, parse_rule

if TYPE_CHECKING:
    from limelight.audit.result import Audit

CORRECTIONS = ("bonferroni", "none")
TABLES = ("catalogue", "groups", "intersect")
"""Tables that a plan may name, relative to its own place."""


@dataclass(frozen=True)
class AuditPlan:
    """What an audit is to find out; a default stands for what a plan leaves open."""

    rules: tuple[str, ...] = ()
    k: int | None = None
    confidence: float = 0.95
    """The probability with which intervals hold."""
    correction: str = "bonferroni"
    """Whether the intervals of groups hold all at once, or each by itself ("none")."""
    small_groups: float | None = None
    four_fifths: bool = False
    catalogue: str | None = None
    groups: str | None = None
    intersect: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    """Names of columns, under those of the flags: `user`, `groups_group`."""

    path: str = ""
    sha256: str = ""
    size: int = 0

    def parsed(self) -> list[FailRule]:
        """Return the rules, that of four fifths last."""
        return [parse_rule(text) for text in (*self.rules, *[FOUR_FIFTHS] * self.four_fifths)]

    def table(self, name: str) -> str | None:
        """Return the path of a table that the plan names."""
        given: str | None = getattr(self, name)
        return None if given is None else str(Path(self.path).parent / given)

    def check(self, audit: Audit) -> None:
        """Refuse an audit that was made in another way than planned."""
        if self.k is not None and self.k != audit.k:
            _refuse("k", self.k, audit.k)
        if self.small_groups is not None and self.small_groups != audit.small_groups:
            _refuse("small_groups", self.small_groups, audit.small_groups)
        inputs = {one.role: one for one in audit.inputs}
        for name in TABLES:
            if (planned := self.table(name)) is not None:
                used = inputs[name].name if name in inputs else None
                if used is None or Path(used).resolve() != Path(planned).resolve():
                    _refuse(name, planned, used)
        for name, planned in self.columns.items():
            role, _, column = name.partition("_")
            roles = (role,) if role in inputs and column else ("lists", *inputs)
            known = (inputs[one].columns.get(column or name) for one in roles if one in inputs)
            used = next((one for one in known if one is not None), None)
            if used != planned:
                _refuse(f"columns.{name}", planned, used)

    def to_dict(self) -> dict[str, Any]:
        """Return the file's name, its digest and its criteria, for a record."""
        given = {own.name: getattr(self, own.name) for own in fields(self)}
        about = {"path": given.pop("path"), "bytes": given.pop("size")}
        about["sha256"] = given.pop("sha256")
        return about | {"criteria": given | {"rules": list(self.rules)}}


NO_PLAN = AuditPlan()


def read_plan(path: str | os.PathLike[str]) -> AuditPlan:
    """Read a plan; refuse what it does not know, and what is not as it should be."""
    try:
        content = Path(path).read_bytes()
        found = tomllib.loads(content.decode("utf-8"))
    except FileNotFoundError:
        message = f"no such file: {os.fspath(path)!r}"
        raise DataError(message, hint="the plan is a TOML file with rules = [...]") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"the plan is no TOML, {error}: {os.fspath(path)!r}"
        raise DataError(message, hint='for example rules = ["gini@20 > 0.9"]') from error
    known = [own.name for own in fields(AuditPlan)][:-3]
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            message = f"unknown key in the plan {os.fspath(path)!r}: {name!r}"
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(message, hint=hint)
    _check(found)
    if "rules" in found:
        found["rules"] = tuple(found["rules"])
    plan = AuditPlan(
        **found,
        path=os.fspath(path),
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )
    plan.parsed()
    return plan


def _check(found: dict[str, Any]) -> None:
    """Refuse values that a plan cannot have."""
    rules = found.get("rules", [])
    if not isinstance(rules, list):
        message = f"rules of the plan must be a list of texts: {rules!r}"
        raise ConfigError(message, hint='for example rules = ["gini@20 > 0.9"]')
    if "k" in found:
        check_integer("k of the plan", found["k"], least=1)
    for name, above in (("confidence", 0.5), ("small_groups", None)):
        if name in found:
            check_number(f"{name} of the plan", found[name], above=above)
            if found[name] >= 1:
                message = f"{name} of the plan must be below 1: {found[name]!r}"
                raise ConfigError(message, hint="0.95 is 95 %")
    if "correction" in found:
        check_choice("correction of the plan", found["correction"], CORRECTIONS)
    if "four_fifths" in found:
        check_flag("four_fifths of the plan", found["four_fifths"])
    columns = found.get("columns", {})
    texts = {name: found[name] for name in TABLES if name in found}
    texts |= columns if isinstance(columns, dict) else {"columns": columns}
    for name, value in texts.items():
        if not isinstance(value, str):
            message = f"{name} of the plan must be a text: {value!r}"
            raise ConfigError(message, hint="columns have a table: [columns] user = 'customer'")


def _refuse(name: str, planned: object, used: object) -> None:
    message = f"the plan has {name} = {planned!r}, the audit {used!r}"
    raise ConfigError(
        message, hint="audit as planned, or change the plan, which changes its digest"
    )
