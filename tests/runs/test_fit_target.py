"""``limelight fit`` with a target: from a table to lists that keep to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight.data import Split

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

FAILED, WRONG_USE = 1, 2
SMALL = ("--factors", 8, "--epochs", 8)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("target") / "split"
    data = ll.marketplace(1500, 120, 30_000).interactions
    ll.split_users(data, validation=300, test=300).save(folder)
    return folder


def test_a_gini_index_from_table_to_lists(limelight: Run, split: Path, tmp_path: Path) -> None:
    model, lists = tmp_path / "model", tmp_path / "lists.parquet"
    ended = limelight("fit", split, "--gini", 0.4, "--at", 10, *SMALL, "--json", "-o", model)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["target"] == {"gini": 0.4, "at": 10}
    assert found["population"] == "1,500 users' lists"
    assert found["validation"]["gini@10"] == pytest.approx(0.4, abs=0.005)
    assert found["served"]["gini@10"] == pytest.approx(0.4, abs=0.01)
    assert found["test"]["gini@10"] == found["validation"]["gini@10"]  # of everybody's lists
    assert {"ndcg@10_low", "ndcg_loss@10_high"} <= set(found["test"])

    ended = limelight("recommend", model, "-k", 10, "--json", "-o", lists)
    assert pq.read_table(lists).num_rows == 1500 * 10
    measured = json.loads(ended.out)
    assert measured["gini@10"] == pytest.approx(found["served"]["gini@10"])
    audited = json.loads(limelight("audit", lists, "-k", 10, "--json").out)
    assert audited["gini@10"] == pytest.approx(0.4, abs=0.01)
    again = limelight("rerank", model, "--gini", 0.2, "-k", 10, "--json", "-o", lists)
    assert json.loads(again.out)["gini@10"] == pytest.approx(0.2, abs=0.005)


def test_text_says_what_was_achieved(limelight: Run, split: Path, tmp_path: Path) -> None:
    ended = limelight(
        "fit", split, "--max-ndcg-loss", "5%", "--at", 10, *SMALL, "-o", tmp_path / "model"
    )
    assert ended.code == 0, ended.err
    for words in ("target: a loss of nDCG of 5 %, lists of 10", "met by:", "ndcg_loss", "exadmm"):
        assert words in ended.out


def test_a_cap_for_sellers(limelight: Run, split: Path, tmp_path: Path) -> None:
    rows = [f"{item},seller {int(item) % 6}" for item in Split.load(split).train.item_ids]
    (tmp_path / "sellers.csv").write_text("\n".join(["item_id,group", *rows]) + "\n")
    arguments = ("--groups", tmp_path / "sellers.csv", "--group-cap", "25%", "--at", 10, *SMALL)
    ended = limelight("fit", split, *arguments, "--json", "-o", tmp_path / "model")
    assert ended.code == 0, ended.err
    groups = json.loads(ended.out)["groups"]
    assert len(groups) == 6
    assert max(group["after"] for group in groups) < 0.27


REFUSED = [
    (("--gini", "0.4", "--for", "0"), WRONG_USE, "a population needs at least 1 user: 0"),
    (("--gini", "0.4", "--for", "-7"), WRONG_USE, "a population needs at least 1 user: -7"),
    (("--gini", "0.4", "--for", "none.csv"), FAILED, "no such file or folder: none.csv"),
    (("--for", "held-out"), WRONG_USE, "--for speaks of a target, and none was given"),
    (("--nearest",), WRONG_USE, "--nearest speaks of a target, and none was given"),
    (("--keep-held-out",), WRONG_USE, "--keep-held-out speaks of a target, and none was given"),
    (("--gini", "1.4"), WRONG_USE, "gini must be from 0 to 1: 1.4"),
    (("--max-ndcg-loss", "much"), WRONG_USE, "--max-ndcg-loss must be a share: 'much'"),
    (("--gini", "0.4", "--exposure-weight", "1"), WRONG_USE, "finds the exposure weight by itself"),
    (("--gini", "0.4", "--serve", "tea"), WRONG_USE, "'tea'"),
    (("--group-cap", "3%"), WRONG_USE, "--group-cap needs groups"),
    (("--gini", "0.2", "--at", "2", "--for", "30"), FAILED, "out of reach: a Gini index of 0.2"),
    (
        ("--min-coverage", "0.9", "--at", "2", "--for", "30"),
        FAILED,
        "more than 50.0 % of 120 items",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: " ".join(case[0]))
def test_wrong_wishes_leave_nothing(
    limelight: Run, split: Path, tmp_path: Path, case: tuple[tuple[str, ...], int, str]
) -> None:
    arguments, code, message = case
    ended = limelight("fit", split, *arguments, *SMALL, "-o", tmp_path / "model")
    assert ended.code == code, ended.err
    assert ended.out == ""
    assert message in ended.err
    assert "hint: " in ended.err
    assert list(tmp_path.iterdir()) == []
