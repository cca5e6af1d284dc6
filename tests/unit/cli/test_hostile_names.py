"""Ids, titles and groups that a stranger chose are shown as text, and nothing obeys them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.documents import Document
from limelight._base.errors import DataError
from limelight._base.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

HOSTILE = "\x1b[2J\x9b31m[bold]x[/bold]<script>\r\n\u202eevil"
ITEMS = [HOSTILE, "plain"]
LISTS = {"user_id": ["u", "u", "v"], "item_id": [*ITEMS, HOSTILE], "rank": [1, 2, 1]}


def shows_only_text(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(LISTS), "lists.parquet")
    titles = [f"title {HOSTILE}", "a title"]
    items = pa.table({"item_id": ITEMS, "group": [f"g{HOSTILE}", "h"], "title": titles})
    pq.write_table(items, "items.parquet")
    scores = pa.table({**LISTS, "score": [0.9, 0.5, 0.4]}).drop_columns("rank")
    pq.write_table(scores, "candidates.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "audit lists.parquet --catalogue items.parquet --groups items.parquet",
        "audit lists.parquet --against lists.parquet --groups items.parquet --json",
        "rerank candidates.parquet -k 1 --gini 0.9 -o out.parquet",
        "rerank candidates.parquet -k 1 --gini 0.9 --catalogue items.parquet -o out.csv --json",
    ],
)
def test_commands(limelight: Run, folder: Path, command: str) -> None:
    ended = limelight(*command.split())
    assert ended.code == 0, ended.err
    assert shows_only_text(ended.out)
    assert shows_only_text(ended.err)
    if command.startswith("audit"):
        assert "[bold]x[/bold]<script>" in ended.out


def test_json_still_says_the_same(limelight: Run, folder: Path) -> None:
    ended = limelight("audit", "lists.parquet", "--json")
    assert json.loads(ended.out)["most_exposed"][0]["item_id"] == HOSTILE


def test_errors(limelight: Run, folder: Path) -> None:
    pq.write_table(pa.table({"item_id": ["plain"]}), "few.parquet")
    ended = limelight("audit", "lists.parquet", "--catalogue", "few.parquet")
    assert ended.code == 1
    assert shows_only_text(ended.err)
    assert "[bold]x[/bold]" in ended.err


def test_an_error_in_python() -> None:
    error = DataError(f"no such column: {HOSTILE}", hint=HOSTILE)
    assert shows_only_text(str(error))
    assert error.hint == HOSTILE


def test_lists_on_a_terminal_are_text(
    limelight: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = "fit lists.parquet --model popularity -o model"
    assert limelight(*fit.split()).code == 0
    asked = ["recommend", "model", "-k", "1", "--keep-seen"]
    assert not shows_only_text(limelight(*asked).out)
    monkeypatch.setattr("limelight.cli.recommend.sys.stdout.isatty", lambda: True)
    ended = limelight(*asked)
    assert ended.code == 0, ended.err
    assert shows_only_text(ended.out)
    assert "[bold]x[/bold]<script>" in ended.out


def test_notebooks() -> None:
    page = ll.audit(pa.table(LISTS), top=2)._repr_html_()
    assert "<script>" not in page
    assert shows_only_text(page)
    assert shows_only_text(Document(HOSTILE, notes=[HOSTILE]).html())


def test_letters_of_all_languages_stay() -> None:
    for text in ("Amélie\xa0!", "नम\u200cस्ते", "👩\u200d🚀", "東京"):
        assert printable(text) == text
