"""Rules and records on the command line: exit codes, files, plans, and mistakes in a sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

MET, BROKEN, WRONG_USE = 0, 1, 2
GROUPS = "--groups groups.csv"
# Lists of 60 users: hit is in all of them, and its seller has two thirds of the exposure.
RULES = [
    ("gini@2 > 0.99", "", MET, MET),
    ("gini@2 > 0.1", "", BROKEN, BROKEN),
    ("coverage@2 < 50%", "", MET, MET),
    ("coverage@2 >= 10%", "", BROKEN, BROKEN),
    ("top_share@2 <= 61%", "", MET, MET),
    ("entropy@2 < 0.52", "", MET, BROKEN),
    ("group:big > 70%", GROUPS, MET, MET),
    ("group:big > 10%", GROUPS, BROKEN, BROKEN),
    ("group:big >= 62%", GROUPS, MET, BROKEN),
    ("ratio:small < 0.9", GROUPS, BROKEN, BROKEN),
    ("impact_ratio:small < 80%", GROUPS, BROKEN, BROKEN),
    ("reach:small < 5%", GROUPS, MET, MET),
    ("reach:* < 5%", GROUPS, MET, BROKEN),
    ('reach:"none" < 5%', GROUPS, MET, BROKEN),
    ("reach:big <= 99%", GROUPS, MET, BROKEN),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists, a catalogue, groups and plans."""
    folder = tmp_path_factory.mktemp("shop")
    rows = [f"u{u},hit,1\nu{u},i{min(u % 12, u % 7)},2" for u in range(60)]
    (folder / "lists.csv").write_text("user_id,item_id,rank\n" + "\n".join(rows) + "\n")
    items = ["hit", *(f"i{n}" for n in range(12)), "x", "y"]
    (folder / "items.csv").write_text("item_id\n" + "\n".join(items) + "\n")
    sellers = ["big" if item == "hit" else "none" if item in "xy" else "small" for item in items]
    pairs = "".join(f"{item},{who}\n" for item, who in zip(items, sellers, strict=True))
    (folder / "groups.csv").write_text("item_id,group\n" + pairs)
    (folder / "odd.csv").write_text("sku,shop\n" + pairs)
    (folder / "plan.toml").write_text(
        'rules = ["gini@2 > 0.99"]\nk = 2\ncatalogue = "items.csv"\ngroups = "odd.csv"\n'
        '[columns]\ngroups_item = "sku"\ngroups_group = "shop"\n'
    )
    return folder


@pytest.mark.parametrize("case", RULES, ids=str)
def test_a_rule_decides_the_exit_code(
    limelight: Run,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, str, int, int],
) -> None:
    rule, more, code, strict = case
    monkeypatch.chdir(shop)
    command = ("audit", "lists.csv", "--catalogue", "items.csv", *more.split(), "--json")
    plain = limelight(*command, "--fail-if", rule)
    told = limelight(*command, "--fail-if", rule, "--strict")
    verdict = json.loads(plain.out)["verdict"]
    assert (plain.code, told.code) == (code, strict), verdict
    assert verdict == {(MET, MET): "met", (BROKEN, BROKEN): "broken"}.get(
        (code, strict), "undecided"
    )
    assert plain.err == ""


def test_one_broken_rule_of_several_is_enough(
    limelight: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    ended = limelight(
        *("audit", "lists.csv", "--fail-if", "gini@2 > 0.99", "--fail-if", "gini@2 > 0.1")
    )
    assert ended.code == BROKEN
    assert ended.out.startswith("A rule is broken: gini@2 > 0.1: found ")
    assert "error" not in ended.err


def test_the_record_is_written_and_repeated(
    limelight: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    texts = []
    for _ in range(2):
        ended = limelight(
            *("audit", "lists.csv", "--plan", "plan.toml", "--four-fifths"),
            *("--record", "out/audit.json"),
        )
        assert ended.code == BROKEN
        assert ended.err == "record written to out/audit.json\n"
        texts.append((shop / "out" / "audit.json").read_text(encoding="utf-8"))
    lines = [[line for line in text.splitlines() if '"created"' not in line] for text in texts]
    assert lines[0] == lines[1]
    found = json.loads(texts[0])
    assert [one["name"] for one in found["inputs"]] == ["lists.csv", "items.csv", "odd.csv"]
    assert found["inputs"][2]["columns"] == {"item": "sku", "group": "shop"}
    assert {one["rule"]: one["planned"] for one in found["checks"]} == {
        "gini@2 > 0.99": True,
        "impact_ratio:* < 80%": False,
    }
    assert str(shop) not in texts[0]


def test_a_plan_is_obeyed_or_the_audit_refused(
    limelight: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    assert limelight("audit", "lists.csv", "--plan", "plan.toml").code == MET
    ended = limelight("audit", "lists.csv", "--plan", "plan.toml", "-k", "1")
    assert ended.code == WRONG_USE
    assert "the plan has k = 2, the audit 1" in ended.err


WRONG = [
    (("--fail-if", "gini@2 0.9"), "needs one of <, <=, > and >=: 'gini@2 0.9'"),
    (("--fail-if", "grup:big > 3%"), "unknown figure of groups in the rule 'grup:big > 3%'"),
    (("--fail-if", "group:big > 3"), "group is from 0 to 1, in the rule 'group:big > 3': '3'"),
    (("--fail-if", "group:big > 3%"), "a rule about groups needs groups: 'group:big > 3%'"),
    (("--fail-if", "gini@20 > 0.9"), "the audit is over ranks 1 to 2, not as in the rule"),
    (("--four-fifths",), "a rule about groups needs groups: 'impact_ratio:* < 80%'"),
    (("--strict",), "--strict speaks of rules, and none was given"),
    (("--record", "audit.txt"), "a record is a JSON file: 'audit.txt'"),
    (("--intersect", "groups.csv"), "an intersection needs groups: --intersect 'groups.csv'"),
    (("--small-groups", "two"), "--small-groups must be a share: 'two'"),
]


@pytest.mark.parametrize(("flags", "message"), WRONG, ids=str)
def test_a_mistake_is_not_a_broken_rule(
    limelight: Run,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(shop)
    ended = limelight("audit", "lists.csv", *flags)
    assert ended.code == WRONG_USE
    assert ended.out == ""
    assert message in ended.err
    assert "\nhint: " in ended.err
