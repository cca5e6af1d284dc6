"""Rules: how they are read, what is wrong with bad ones, and their verdicts on every side."""

import pytest

from limelight._base.errors import ConfigError
from limelight.audit.record.rules import FOUR_FIFTHS, parse_rule

GOOD = [
    ("gini@20 > 0.9", ("gini@20", None, ">", 0.9, False)),
    ("coverage@5<50%", ("coverage@5", None, "<", 0.5, False)),
    ("  top_share@10  >=  12.5%  ", ("top_share@10", None, ">=", 0.125, False)),
    ("merit_spearman@20 <= -0.1", ("merit_spearman@20", None, "<=", -0.1, False)),
    ("group:acme > 3%", ("group", "acme", ">", 0.03, False)),
    ("group: Oak & Co > 3%", ("group", "Oak & Co", ">", 0.03, False)),
    ('group:"a < b" > 3%', ("group", "a < b", ">", 0.03, False)),
    ('reach:"*" < 1%', ("reach", "*", "<", 0.01, False)),
    ("reach:* < 1%", ("reach", None, "<", 0.01, True)),
    ("ratio:7 < 0.5", ("ratio", "7", "<", 0.5, False)),
    ("impact_ratio:acme + north < 80%", ("impact_ratio", "acme + north", "<", 0.8, False)),
    ("group:a:b > 1e-3", ("group", "a:b", ">", 0.001, False)),
    (FOUR_FIFTHS, ("impact_ratio", None, "<", 0.8, True)),
]
BAD = [
    ("", "a rule is a text with a figure, a sign and a number: ''", "for example gini@20 > 0.9"),
    (7, "a rule is a text with a figure, a sign and a number: 7", "for example"),
    ("gini@20 0.9", "needs one of <, <=, > and >=: 'gini@20 0.9'", "for example"),
    ("gini@20 = 0.9", "needs one of <, <=, > and >=: 'gini@20 = 0.9'", "for example"),
    ("0.1 < gini@20 < 0.9", "has one sign, not 2: ", "write two rules"),
    ("gini@20 > much", "not a number in the rule 'gini@20 > much': 'much'", "0.9 or 90%"),
    ("gini@20 > ", "not a number in the rule 'gini@20 > ': ''", "0.9 or 90%"),
    ("gini@20 > nan", "not a number in the rule 'gini@20 > nan': 'nan'", "0.9 or 90%"),
    ("gini > 0.9", "needs the length of lists in the rule 'gini > 0.9': 'gini'", "gini@20"),
    ("gini@ten > 0.9", "not a length of lists in the rule 'gini@ten > 0.9': 'ten'", "gini@20"),
    ("gini@0 > 0.9", "not a length of lists in the rule 'gini@0 > 0.9': '0'", "gini@20"),
    ("> 0.9", "no figure in the rule '> 0.9': ''", "for example"),
    ("grup:acme > 3%", "unknown figure of groups in the rule 'grup:acme > 3%': 'grup'", "'group'?"),
    ("group: > 3%", "no group is named in the rule 'group: > 3%': ''", "group:* > 3% for all"),
    ('group:"acme > 3%', "a quote is not closed", 'group:"Oak & Co" > 3%'),
    ("group:acme > 3", "group is from 0 to 1, in the rule 'group:acme > 3': '3'", "3% or 0.03"),
    ("gini@20 > 90", "gini@20 is from 0 to 1, in the rule 'gini@20 > 90': '90'", "3% or 0.03"),
]


@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_a_rule_is_read(text, expected):
    rule = parse_rule(text)
    assert (rule.figure, rule.group, rule.sign, rule.threshold, rule.every) == expected
    assert rule.text == text.strip()


@pytest.mark.parametrize(("text", "message", "hint"), BAD)
def test_a_bad_rule_gets_a_sentence(text, message, hint):
    with pytest.raises(ConfigError) as told:
        parse_rule(text)
    assert message in told.value.message
    assert hint in told.value.hint


def naive_verdict(sign, threshold, low, high):
    """Try points of the interval one by one."""
    fails = {
        {
            "<": value < threshold,
            "<=": value <= threshold,
            ">": value > threshold,
            ">=": value >= threshold,
        }[sign]
        for value in (low + (high - low) * step / 100 for step in range(101))
    }
    return "undecided" if len(fails) == 2 else "broken" if True in fails else "met"


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("ends", [(0.1, 0.2), (0.1, 0.5), (0.5, 0.9), (0.4, 0.6), (0.5, 0.5)])
def test_a_verdict_is_that_of_all_points_of_the_interval(sign, ends):
    assert parse_rule(f"gini@5 {sign} 0.5").verdict(*ends) == naive_verdict(sign, 0.5, *ends)
