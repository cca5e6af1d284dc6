"""The law of the rooms is the one that CONTRIBUTING shows, and it has no exceptions."""

import re
import tomllib

from tests.support.places import ROOT

CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"][0]


def test_the_map_of_the_house_is_the_order_of_the_law():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    drawn = [re.findall(r"`(\w+)`", row) for row in rows]
    assert drawn == [layer.split(" | ") for layer in reversed(CONTRACT["layers"])]


def test_there_are_no_exceptions():
    assert "ignore_imports" not in CONTRACT
