"""Data sets by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limelight._base.errors import ConfigError
from limelight.lab.bench.task import DataSet, built_in, parse_named, read_named

if TYPE_CHECKING:
    from pathlib import Path


def test_a_named_file_with_settings(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(40) for item in range(10)]
    file.write_text("\n".join(["who,what,stars", *rows]) + "\n")
    data = read_named(f"mine={file},user=who,item=what,rating=stars,min-rating=4,min-user=1")
    assert data.name == "mine"
    assert data.interactions.nnz == 160
    assert data.describe() == {
        "source": "ratings.csv",
        "users": 36,
        "items": 10,
        "interactions": 144,
    }


def test_settings_have_their_types() -> None:
    assert parse_named("a=b.csv") == ("a", "b.csv", {})
    settings = parse_named("a=b.csv,core=5,filter-order=together,min-rating=3.5")[2]
    assert settings == {"core": 5, "filter_order": "together", "min_rating": 3.5}


@pytest.mark.parametrize("text", ["file.csv", "=file.csv", "name=", ""])
def test_a_data_set_needs_a_name_and_a_file(text: str) -> None:
    with pytest.raises(ConfigError, match="--data must be NAME=FILE: ") as caught:
        parse_named(text)
    assert "for example --data" in str(caught.value.hint)


@pytest.mark.parametrize("part", ["stars=4", "min-rating=four", "min-rating", "user="])
def test_a_setting_that_cannot_be_understood(part: str) -> None:
    with pytest.raises(ConfigError, match=f"not a setting of --data: '{part}'") as caught:
        parse_named(f"a=b.csv,{part}")
    assert "min-rating" in str(caught.value.hint)


def test_built_in_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.lab.bench.task.SHAPES", {"small": (200, 50, 2000)})
    data = built_in("small")
    assert data.interactions.shape == (200, 50)
    assert data.describe()["source"] == "made up"


def test_some_users_are_held_out(tiny: DataSet) -> None:
    assert tiny.split.train.n_users == 270
    assert tiny.split.test.n_users == 30
