"""Rules that lists should not break, such as "gini@20 > 0.9" or "group:acme > 3%".

A rule says when lists fail: a figure, one of < <= > >=, and a number, or a share in percent.

    METRIC@K             a metric of the audit, such as gini@20 or coverage@20
    group:NAME           the group's share of the exposure
    ratio:NAME           that share over the group's share of the catalogue
    impact_ratio:NAME    that ratio over the highest of all groups
    reach:NAME           the share of the users who saw one of the group's items

NAME may be * for every group, and stands in double quotes where it has a sign or is a lone *.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

from limelight._base.errors import ConfigError

OF_GROUPS = {
    "group": "exposure_share",
    "ratio": "ratio",
    "impact_ratio": "impact_ratio",
    "reach": "reach",
}
"""What a rule calls the figures of groups, and what records call them."""
FOUR_FIFTHS = "impact_ratio:* < 80%"
_SIGNS = ("<=", ">=", "<", ">")
_EXAMPLES = "for example gini@20 > 0.9 or group:acme > 3%"
_SHARES = {"gini", "gini_uniform", "coverage", "entropy", "top_share", "group", "reach"}
"""Figures from 0 to 1, of which some are written in percent and forgotten to be."""


@dataclass(frozen=True)
class FailRule:
    """What lists should not have."""

    text: str
    """As it was written."""
    figure: str
    """A metric with its k, or a figure of groups as rules call it."""
    group: str | None
    """The group, where it is of one."""
    sign: str
    threshold: float
    every: bool = False
    """Whether it is of every group."""

    def fails(self, value: float) -> bool:
        """Tell whether lists with such a figure fail.

        Examples
        --------
        >>> parse_rule("gini@20 > 0.9").fails(0.95), parse_rule("gini@20 > 0.9").fails(0.9)
        (True, False)
        """
        if self.sign.startswith(">"):
            return value > self.threshold or (self.sign == ">=" and value == self.threshold)
        return value < self.threshold or (self.sign == "<=" and value == self.threshold)

    def verdict(self, low: float, high: float) -> str:
        """Say "broken" if all of an interval fails, "met" if nothing of it does.

        Examples
        --------
        >>> rule = parse_rule("gini@20 > 0.9")
        >>> rule.verdict(0.91, 0.95), rule.verdict(0.8, 0.85), rule.verdict(0.85, 0.95)
        ('broken', 'met', 'undecided')
        """
        fails = {self.fails(low), self.fails(high)}
        return "undecided" if len(fails) > 1 else "broken" if fails == {True} else "met"


def parse_rule(text: str) -> FailRule:
    """Read a rule.

    Examples
    --------
    >>> rule = parse_rule('group:"Oak < Co" >= 3%')
    >>> rule.figure, rule.group, rule.sign, rule.threshold
    ('group', 'Oak < Co', '>=', 0.03)
    >>> parse_rule("reach:* < 10%").every
    True
    """
    if not isinstance(text, str) or not text.strip():
        message = f"a rule is a text with a figure, a sign and a number: {text!r}"
        raise ConfigError(message, hint=_EXAMPLES)
    figure, sign, number = _cut(text)
    threshold = _number(text, number)
    kind, colon, name = figure.partition(":")
    if colon and kind.strip() in OF_GROUPS:
        name, kind = name.strip(), kind.strip()
        group = _unquoted(text, name)
        rule = FailRule(text.strip(), kind, group, sign, threshold, every=name == "*")
    else:
        rule = FailRule(text.strip(), _metric(text, figure), None, sign, threshold)
    if rule.figure.partition("@")[0] in _SHARES and not 0 <= threshold <= 1:
        message = f"{rule.figure} is from 0 to 1, in the rule {text!r}: {number!r}"
        raise ConfigError(message, hint="3 % is 3% or 0.03")
    return rule


def _cut(text: str) -> tuple[str, str, str]:
    """Cut a rule at its sign; quotes keep signs from being one."""
    quoted, found = False, []
    for at, character in enumerate(text):
        quoted ^= character == '"'
        if not quoted and character in "<>":
            found.append(at)
    if quoted:
        message = f"a quote is not closed in the rule {text!r}: {text[text.rindex(chr(34)) :]!r}"
        raise ConfigError(message, hint='for example group:"Oak & Co" > 3%')
    if not found:
        message = f"a rule needs one of <, <=, > and >=: {text!r}"
        raise ConfigError(message, hint=_EXAMPLES)
    if len(found) > 1:
        message = f"a rule has one sign, not {len(found)}: {text!r}"
        raise ConfigError(message, hint="write two rules, or names with signs in double quotes")
    rest = text[found[0] :]
    sign = next(sign for sign in _SIGNS if rest.startswith(sign))
    return text[: found[0]].strip(), sign, rest[len(sign) :].strip()


def _number(text: str, number: str) -> float:
    """Read a number or a share in percent."""
    try:
        value = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        message = f"not a number in the rule {text!r}: {number!r}"
        raise ConfigError(message, hint="write 0.9 or 90%")
    return value


def _unquoted(text: str, name: str) -> str | None:
    """Take the name of a group out of its quotes; None for every group."""
    if name == "*":
        return None
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = name[1:-1]
    if not name:
        message = f"no group is named in the rule {text!r}: {name!r}"
        raise ConfigError(message, hint="for example group:acme > 3%, or group:* > 3% for all")
    return name


def _metric(text: str, figure: str) -> str:
    """Check that a figure is a name and a length of lists."""
    name, at, k = figure.partition("@")
    if ":" in name:
        kind = name.partition(":")[0].strip()
        near = difflib.get_close_matches(kind, OF_GROUPS, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        message = f"unknown figure of groups in the rule {text!r}: {kind!r}"
        raise ConfigError(message, hint=f"{guess}known: {', '.join(OF_GROUPS)}")
    if not name.strip().isidentifier():
        message = f"no figure in the rule {text!r}: {figure!r}"
        raise ConfigError(message, hint=_EXAMPLES)
    if not at:
        message = f"a metric needs the length of lists in the rule {text!r}: {figure!r}"
        hint = f"for example {name.strip()}@20; groups are named as group:acme"
        raise ConfigError(message, hint=hint)
    if not k.isdecimal() or int(k) < 1:
        message = f"not a length of lists in the rule {text!r}: {k!r}"
        raise ConfigError(message, hint=f"write a whole number, such as {name.strip()}@20")
    return f"{name.strip()}@{int(k)}"
