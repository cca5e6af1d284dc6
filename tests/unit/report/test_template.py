"""The parts of a report page fit together."""

from __future__ import annotations

import re
from importlib.resources import files

TEMPLATE = files("limelight.report") / "template"
SLOTS = {"title", "headline", "payload", "charts", "script"}


def read(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


def test_every_script_is_listed_once() -> None:
    listed = read("scripts.txt").split()
    found = {part.name for part in TEMPLATE.iterdir() if part.name.endswith(".js")}
    assert sorted(listed) == sorted(found - {"charts.min.js"})


def test_the_template_has_its_slots() -> None:
    assert set(re.findall(r"\{\{(\w+)\}\}", read("page.html"))) == SLOTS
    assert set(re.findall(r"\{\{(\w+)\}\}", read("head.html"))) == {"policy", "title", "style"}


def test_no_script_ends_its_element_or_makes_html_or_code_from_text() -> None:
    for name in [*read("scripts.txt").split(), "charts.min.js"]:
        assert not re.search(r"</script|<!--|\beval\(|new Function", read(name), re.IGNORECASE), (
            name
        )
    for name in read("scripts.txt").split():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", read(name))


def test_the_charts_are_small_and_carry_their_licences() -> None:
    charts = read("charts.min.js")
    assert len(charts.encode()) < 600_000
    for owner in ("The Apache Software Foundation", "Baidu Inc.", "Microsoft Corporation"):
        assert owner in charts
    assert "Apache License" in read("charts.LICENSE.txt")
