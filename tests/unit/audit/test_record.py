"""The record: its schema, its bytes, its digests, and verdicts that chance does not bring about."""

import hashlib
import json
import os

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.support.chance import GROUPS, RULES, chance_audit
from tests.support.places import ROOT

import limelight as ll
from limelight._base.errors import ConfigError, DataError

SCHEMA = json.loads((ROOT / "docs/schemas/audit-record-1.json").read_text(encoding="utf-8"))
AUDITS = int(os.environ.get("LIMELIGHT_CHANCE_AUDITS", "3"))
"""How many audits of pure chance; 200 take some minutes."""


def checked(record):
    """Return a record as others read it, once its schema has been looked at."""
    found = json.loads(record.to_json())
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


@pytest.fixture
def files(tmp_path, list_tables):
    """The tables of lists, and a folder to write to."""
    for name in ("good.csv", "before.csv", "items.csv", "groups.csv", "chosen.csv"):
        (tmp_path / name).write_text((list_tables / name).read_text().replace("\n1,", "\nsecret1,"))
    (tmp_path / "regions.csv").write_text("item_id,group\na,north\nb,south\nc,north\n")
    return tmp_path


def everything(files, **more):
    return ll.audit(
        files / "good.csv",
        k=2,
        catalogue=files / "items.csv",
        groups=files / "groups.csv",
        intersect=files / "regions.csv",
        merit=files / "chosen.csv",
        against=files / "before.csv",
        timestamp="shown_at",
        every="day",
        gini=0.5,
        **more,
    )


def test_the_command_is_that_of_limelight_alone(files, monkeypatch):
    audit = ll.audit(files / "good.csv")
    for program, expected in (
        ("/usr/bin/limelight", ["limelight", "audit", "a b.csv"]),
        ("/lib/limelight/__main__.py", ["limelight", "audit", "a b.csv"]),
        ("/lib/pytest/__main__.py", None),
        ("notebook.py", None),
    ):
        monkeypatch.setattr("sys.argv", [program, "audit", "a b.csv"])
        assert checked(audit.record())["command"] == expected


def test_the_schema_is_one_and_holds_for_the_record_of_the_demo():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    shown = (ROOT / "docs/schemas/audit-record-demo.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(shown))


def test_the_schema_refuses_what_is_no_record(files):
    found = checked(ll.audit(files / "good.csv").record())
    for wrong in ({"verdict": "fine"}, {"created": "today"}, {"users": ["u"]}, {"inputs": []}):
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(found | wrong)


def test_a_record_of_everything(files):
    audit = everything(files)
    found = checked(audit.record(fail_if=["gini@2 > 0.9", "group:* > 90%"], four_fifths=True))
    assert found["schema"] == "limelight.audit/1"
    assert [one["role"] for one in found["inputs"]] == [
        *("lists", "against", "catalogue", "groups", "intersect", "merit")
    ]
    lists = found["inputs"][0]
    content = (files / "good.csv").read_bytes()
    assert (lists["bytes"], lists["rows"]) == (len(content), 9)
    assert lists["sha256"] == hashlib.sha256(content).hexdigest()
    assert lists["columns"] == {
        "user": "user_id",
        "item": "item_id",
        "rank": "rank",
        "timestamp": "shown_at",
    }
    assert found["dropped"]["list_rows_beyond_k"] == 3
    assert found["population"]["items_without_group"] == 3
    figures = {one["figure"] for one in found["results"]}
    assert figures <= {one["figure"] for one in found["definitions"]}
    by_slice = {(one["figure"], str(one["slice"])): one for one in found["results"]}
    gini = by_slice["gini", "{}"]
    assert gini["value"] == pytest.approx(audit["gini@2"], rel=1e-11)
    assert gini["low"] == pytest.approx(audit["gini@2_low"], rel=1e-11)
    change = by_slice["gini", "{'lists': 'change'}"]
    assert change["high"] == pytest.approx(audit.comparison.metrics["gini@2_change_high"])
    for group in audit.groups:
        of_group = str({"group": group.group})
        assert by_slice["exposure_share", of_group]["low"] == pytest.approx(group.share_low)
        assert by_slice["reach", of_group]["high"] == pytest.approx(group.reach_high)
        impact = by_slice["impact_ratio", of_group]
        assert impact["value"] == pytest.approx(group.impact_ratio)
        assert impact["low"] <= impact["value"] <= impact["high"]
    assert {one["rule"] for one in found["checks"]} == {
        *("gini@2 > 0.9", "group:* > 90%", "impact_ratio:* < 80%")
    }
    assert not any(one["planned"] for one in found["checks"])
    assert found["verdict"] == "undecided"


def test_a_record_without_rules_of_frames():
    lists = pa.table({"user_id": ["secret", "secret"], "item_id": [1, 2], "rank": [1, 2]})
    record = ll.audit(lists).record()
    found = checked(record)
    assert (record.verdict, found["checks"], found["plan"], found["command"]) == (
        None,
        [],
        None,
        None,
    )
    assert [one["sha256"] for one in found["inputs"]] == [None]
    assert repr(record) == "AuditRecord(verdict=None, checks=0)"


def test_the_same_input_makes_the_same_bytes_but_for_the_time(files):
    texts = [everything(files).record(fail_if="reach:* < 1%").to_json() for _ in range(2)]
    lines = [[one for one in text.splitlines() if '"created"' not in one] for text in texts]
    assert lines[0] == lines[1]
    assert len(lines[0]) == len(texts[0].splitlines()) - 1


def test_no_user_is_named(files):
    record = everything(files).record(fail_if=["gini@2 > 0.9", "group:* > 1%"])
    assert "secret1" in (files / "good.csv").read_text()
    assert "secret" not in record.to_json()


def test_numbers_have_twelve_digits(files):
    found = checked(everything(files).record())
    for one in found["results"]:
        for value in (one["value"], one["low"], one["high"]):
            assert value is None or value == float(f"{value:.12g}")


def test_a_folder_has_the_digest_of_its_files(files):
    folder = files / "lists"
    folder.mkdir()
    first, second = "user_id,item_id,rank\n1,a,1\n", "user_id,item_id,rank\n2,b,1\n"
    (folder / "a.csv").write_text(first)
    (folder / "b.csv").write_text(second)
    [one] = checked(ll.audit(folder).record())["inputs"]
    told = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
        for name, text in (("a.csv", first), ("b.csv", second))
    )
    assert one["sha256"] == hashlib.sha256(told.encode()).hexdigest()
    assert (one["files"], one["bytes"]) == (2, len(first) + len(second))


def test_a_file_that_changed_is_refused(files):
    audit = ll.audit(files / "good.csv")
    with (files / "good.csv").open("a") as file:
        file.write("4,a,1,1,2024-01-01\n")
    with pytest.raises(DataError, match="the file has changed since it was audited"):
        audit.record().to_dict()


def test_a_record_is_written_whole(files):
    record = ll.audit(files / "good.csv").record(fail_if="gini@3 > 0.9")
    record.save(files / "audit.json")
    assert (files / "audit.json").read_text(encoding="utf-8") == record.to_json()
    assert {one.name for one in files.iterdir() if one.name.startswith(".")} == set()


def test_checks_are_shown(files):
    audit = everything(files)
    shown = audit.record(fail_if=["coverage@2 < 99%", "gini@2 > 99%"]).audit
    assert audit.checks is None
    assert "A rule is broken: coverage@2 < 99%: found 50.00 % [28.22 %, 71.78 %]." in str(shown)
    assert "Rules\n  fail if" in str(shown)
    assert shown.to_dict()["verdict"] == "broken"
    assert [one["verdict"] for one in shown.to_dict()["checks"]] == ["broken", "met"]
    findings = shown.exhibit().findings
    assert findings.headline.startswith("A rule is broken: coverage@2")
    assert [one["verdict"] for one in findings.rules] == ["broken", "met"]


def test_a_confidence_of_a_plan_widens_intervals(files):
    (files / "plan.toml").write_text('rules = ["gini@3 > 0.9"]\nconfidence = 0.99\n')
    audit = ll.audit(files / "good.csv", catalogue=files / "items.csv")
    [usual] = audit.record(fail_if="gini@3 > 0.9").checks.checks
    [wide] = audit.record(plan=files / "plan.toml").checks.checks
    assert (usual.low, usual.high) == (audit["gini@3_low"], audit["gini@3_high"])
    times = stats.norm.ppf(0.995) / stats.norm.ppf(0.975)
    assert wide.value - wide.low == pytest.approx(times * (usual.value - usual.low))
    assert (usual.planned, wide.planned) == (False, True)


def test_what_several_rules_ask_of_one_group_counts_once(files):
    audit = ll.audit(files / "good.csv", groups=files / "groups.csv")

    def family(*rules):
        return audit.record(fail_if=rules).checks.family

    assert family("gini@3 > 0.9") == 0
    assert family("group:x > 90%", "group:x < 1%", "ratio:x > 3") == 1
    assert family("group:x > 90%", "reach:x < 1%") == 2
    assert family("impact_ratio:x < 0.8") == 2  # the interval of the most favoured group, too
    assert family("group:* > 90%", "impact_ratio:* < 0.8", "reach:* < 1%") == 4
    assert audit.record(fail_if="group:* > 90%").checks.level == pytest.approx(1 - 0.05 / 2)


def test_pure_chance_breaks_no_rule_though_every_group_is_at_the_edge(tmp_path):
    """Of so many audits at most 5 % say "broken" anywhere; uncorrected, all of them do."""
    plan = tmp_path / "plan.toml"
    plan.write_text('correction = "none"\n')
    audits = [chance_audit(seed) for seed in range(AUDITS)]
    verdicts = [one.record(fail_if=RULES).verdict for one in audits]
    assert verdicts.count("broken") <= 0.05 * AUDITS
    assert len(audits[0].groups) == GROUPS
    assert audits[0].record(plan=plan, fail_if=RULES).verdict == "broken"


def test_what_is_more_than_chance_is_found():
    generator = np.random.default_rng(0)
    items = np.where(generator.random((3000, 5)) < 0.3, 0, generator.integers(1, 500, (3000, 5)))
    users, chosen, ranks = [], [], []
    for user, row in enumerate(items):
        for rank, item in enumerate(dict.fromkeys(row.tolist()), 1):
            users.append(user)
            chosen.append(item)
            ranks.append(rank)
    audit = ll.audit(
        pa.table({"user_id": users, "item_id": chosen, "rank": ranks}),
        catalogue=np.arange(500),
        groups=pa.table({"item_id": np.arange(500), "group": np.arange(500)}),
    )
    record = audit.record(fail_if=["group:* > 10%", "reach:0 < 50%", "impact_ratio:* < 80%"])
    broken, met, unequal = record.checks.by_rule()
    assert [one.group for one in broken.worst] == [0]
    assert broken.verdict == "broken"
    assert met.verdict == "met"
    assert unequal.counts == {"broken": 499, "met": 1}


PLANS = [
    (
        'rule = ["gini@3 > 0.9"]',
        ConfigError,
        "unknown key in the plan 'plan.toml': 'rule'",
        "'rules'?",
    ),
    (
        "rules = 'gini@3 > 0.9'",
        ConfigError,
        "rules of the plan must be a list of texts",
        "for exam",
    ),
    ('rules = ["gini > 0.9"]', ConfigError, "needs the length of lists", "gini@20"),
    ("rules = [3]", ConfigError, "a rule is a text", "for example"),
    ("k = 0", ConfigError, "k of the plan must be at least 1: 0", "integer"),
    ("confidence = 95", ConfigError, "confidence of the plan must be below 1: 95", "0.95 is 95 %"),
    (
        "confidence = 0.1",
        ConfigError,
        "confidence of the plan must be a finite number above 0.5",
        "",
    ),
    ('correction = "holm"', ConfigError, "correction of the plan", "bonferroni"),
    ("four_fifths = 1", ConfigError, "four_fifths of the plan must be True or False", ""),
    ("groups = 3", ConfigError, "groups of the plan must be a text: 3", "[columns]"),
    ("columns = 3", ConfigError, "columns of the plan must be a text: 3", "[columns]"),
    ("[columns]\nuser = 3", ConfigError, "user of the plan must be a text: 3", "[columns]"),
    ("rules = [", DataError, "the plan is no TOML", "for example"),
    ("k = 2", ConfigError, "the plan has k = 2, the audit 3", "as planned"),
    ("small_groups = 0.1", ConfigError, "the plan has small_groups = 0.1, the audit 0.0", "as pl"),
    (
        'groups = "items.csv"',
        ConfigError,
        "the plan has groups = 'items.csv', the audit 'groups.csv'",
        "",
    ),
    (
        'intersect = "items.csv"',
        ConfigError,
        "the plan has intersect = 'items.csv', the audit None",
        "",
    ),
    ('[columns]\nuser = "who"', ConfigError, "columns.user = 'who', the audit 'user_id'", "as pl"),
]


@pytest.mark.parametrize(("text", "error", "message", "hint"), PLANS)
def test_a_wrong_plan_gets_a_sentence(files, monkeypatch, text, error, message, hint):
    monkeypatch.chdir(files)
    (files / "plan.toml").write_text(text)
    with pytest.raises(error) as told:
        ll.audit("good.csv", groups="groups.csv").record(plan="plan.toml")
    assert message in told.value.message
    assert hint in told.value.hint


def test_a_plan_is_in_the_record(files, monkeypatch):
    monkeypatch.chdir(files)
    text = (
        'rules = ["gini@3 > 0.9"]\nk = 3\ngroups = "groups.csv"\nfour_fifths = true\n'
        '[columns]\nuser = "user_id"\ngroups_group = "group"\n'
    )
    (files / "plan.toml").write_text(text)
    record = ll.audit("good.csv", groups="groups.csv").record(
        plan="plan.toml", fail_if=["coverage@3 < 1%"], four_fifths=True
    )
    found = checked(record)
    assert found["plan"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert found["plan"]["criteria"]["rules"] == ["gini@3 > 0.9"]
    assert [(one["rule"], one["planned"]) for one in found["checks"]] == [
        ("gini@3 > 0.9", True),
        ("impact_ratio:* < 80%", True),
        ("impact_ratio:* < 80%", True),
        ("coverage@3 < 1%", False),
    ]


RULES_REFUSED = [
    (
        "gini@5 > 0.9",
        "the audit is over ranks 1 to 3, not as in the rule: 'gini@5 > 0.9'",
        "gini@3",
    ),
    (
        "merit_gini@3 > 0.9",
        "no such metric for the rule 'merit_gini@3 > 0.9': 'merit_gini'",
        "known",
    ),
    ("group:acme > 3%", "is of a group without items: 'acme'", "the table of groups"),
    ("impact_ratio:x < 1", "is too small to be compared: 'x'", "lower small_groups"),
]


@pytest.mark.parametrize(("rule", "message", "hint"), RULES_REFUSED)
def test_a_rule_of_what_the_audit_has_not_is_refused(files, rule, message, hint):
    audit = ll.audit(files / "good.csv", groups=files / "groups.csv", small_groups=0.5)
    with pytest.raises(ConfigError) as told:
        audit.record(fail_if=rule)
    assert message in told.value.message
    assert hint in told.value.hint


def test_a_rule_of_groups_needs_groups(files):
    with pytest.raises(ConfigError, match="a rule about groups needs groups"):
        ll.audit(files / "good.csv").record(four_fifths=True)
