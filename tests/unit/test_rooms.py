"""The law of the rooms is the one that the pages show, and it has no exceptions."""

import re
import tomllib

from tests.support.places import ROOT

CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"][0]
BESIDE = {"plot", "testing"}
"""What the pages show beside the rooms: figures under public names, and helpers of tests."""
LAW = [layer for layer in reversed(CONTRACT["layers"]) if layer not in BESIDE]
"""The rooms, from what everything stands on to the command line."""


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_table_shows_the_rooms_in_the_order_of_the_law():
    rows = re.findall(r"^\| (`[^|]+`) \|", text_of("docs/architecture.md"), re.MULTILINE)
    assert [" | ".join(re.findall(r"`(\w+)`", row)) for row in rows] == LAW


def test_the_picture_shows_the_rooms_in_the_order_of_the_law():
    found = re.findall(
        r'class="room" x="([\d.]+)" y="(\d+)">(\w+)<', text_of("docs/figures/rooms.svg")
    )
    drawn = sorted(found, key=lambda room: (-int(room[1]), float(room[0])))
    assert [name for _, _, name in drawn] == LAW


def test_the_page_for_contributors_shows_the_rooms_in_the_order_of_the_law():
    [lines] = re.findall(r"^```text\n(.*?)^```", text_of("CONTRIBUTING.md"), re.M | re.S)
    drawn = [re.split(r"\s{2,}", line)[1:] for line in reversed(lines.splitlines())]
    assert [room for line in drawn for room in line] == LAW


def test_there_are_no_exceptions():
    assert "ignore_imports" not in CONTRACT
