"""``limelight fit --from`` and ``--item-features``, on files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.commands import succeed

import limelight as ll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with early.parquet, new.parquet, films.parquet and model/ (iALS on the first)."""
    folder = tmp_path_factory.mktemp("stage")
    data = ll.marketplace(300, 100, 5000, seed=1).interactions
    users = np.repeat(np.arange(300), np.diff(data.indptr))
    table = pa.table({"user_id": users, "item_id": data.indices})
    early = (users < 290) & (data.indices < 95)
    pq.write_table(table.filter(pa.array(early)), folder / "early.parquet")
    pq.write_table(table.filter(pa.array(~early)), folder / "new.parquet")
    about = {"item_id": np.arange(110), "shelf": [f"s{n % 4}" for n in range(110)]}
    pq.write_table(pa.table(about), folder / "films.parquet")
    settings = ("--model", "ials", "--factors", 8, "--epochs", 4)
    succeed("fit", folder / "early.parquet", *settings, "-o", folder / "model")
    return folder


def test_a_model_grows(limelight: Run, stage: Path, tmp_path: Path) -> None:
    output, old = tmp_path / "grown", ll.load(stage / "model")
    ended = limelight("fit", stage / "new.parquet", "--from", stage / "model", "-o", output)
    assert ended.code == 0
    assert "new users" in ended.out
    model = ll.load(output)
    counts = [len(model.user_ids) - len(old.user_ids), len(model.item_ids) - len(old.item_ids)]
    assert re.search(rf"new users +{counts[0]}\n", ended.out)
    assert min(counts) > 0
    assert model.get_params() == old.get_params()


def test_into_its_own_folder_as_json(limelight: Run, stage: Path, tmp_path: Path) -> None:
    ll.load(stage / "model").save(tmp_path / "model")
    flags = ("--from", tmp_path / "model", "-o", tmp_path / "model", "--factors", 8, "--json")
    record = json.loads(limelight("fit", stage / "new.parquet", *flags).out)
    model = ll.load(tmp_path / "model")
    assert record["users"] == len(model.user_ids)
    assert record["new_interactions"] == pq.read_metadata(stage / "new.parquet").num_rows
    again = json.loads(limelight("fit", stage / "new.parquet", *flags).out)
    assert again["new_users"] == again["new_items"] == again["new_interactions"] == 0


def test_much_that_is_new_is_said_once(limelight: Run, stage: Path, tmp_path: Path) -> None:
    succeed("fit", stage / "new.parquet", "--model", "ials", "-o", tmp_path / "small")
    flags = ("--from", tmp_path / "small", "-o", tmp_path / "large")
    ended = limelight("fit", stage / "early.parquet", *flags)
    assert ended.code == 0
    assert len(re.findall("^[0-9]+ % of the pairs are new", ended.err, re.MULTILINE)) == 1
    assert ended.err.count("are new") == 1


def test_more_memory_than_there_is(
    limelight: Run, stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.solve.cost.grow_bytes", lambda **_: 1 << 60)
    more = ("--from", stage / "model", "-o", tmp_path / "model")
    ended = limelight("fit", stage / "new.parquet", *more)
    assert ended.code != 0
    assert "growing the model" in ended.err
    assert "hint: use a machine with more memory" in ended.err
    assert not (tmp_path / "model").exists()


def test_weights_are_added_up(limelight: Run, stage: Path, tmp_path: Path) -> None:
    for name in ("early", "new"):
        table = pq.read_table(stage / f"{name}.parquet")
        plays = np.arange(table.num_rows) % 3 + 1
        pq.write_table(table.append_column("plays", pa.array(plays)), tmp_path / f"{name}.parquet")
    settings = ("--model", "ials", "--factors", 8, "--epochs", 4, "--weight", "plays")
    model = tmp_path / "model"
    succeed("fit", tmp_path / "early.parquet", *settings, "-o", model)
    for _ in range(2):
        more = ("--weight", "plays", "--from", model, "-o", model)
        assert limelight("fit", tmp_path / "new.parquet", *more).code == 0
    sums = [
        pq.read_table(tmp_path / f"{name}.parquet")["plays"].to_numpy().sum()
        for name in ("early", "new")
    ]
    seen = ll.load(model).learned.seen
    assert seen is not None
    assert seen.weights is not None
    assert seen.weights.sum() == sums[0] + 2 * sums[1]


def test_what_the_data_chose_is_kept(limelight: Run, stage: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    succeed("fit", stage / "early.parquet", "--epochs", 2, "-o", model)
    chosen = ll.load(model).chosen_  # type: ignore[attr-defined]
    more = ("--factors", chosen["factors"], "--regularization", "auto", "--from", model)
    ended = limelight("fit", stage / "new.parquet", *more, "-o", model)
    assert ended.code == 0, ended.err
    assert ll.load(model).chosen_ == chosen  # type: ignore[attr-defined]
    ended = limelight("fit", stage / "new.parquet", "--from", model, "--factors", 5, "-o", model)
    assert f"was fitted with --factors {chosen['factors']}, not 5" in ended.err


def test_items_by_features(limelight: Run, stage: Path, tmp_path: Path) -> None:
    output, films = tmp_path / "model", ("--item-features", stage / "films.parquet")
    settings = ("--model", "ials", "--factors", 8, "--epochs", 4)
    ended = limelight("fit", stage / "early.parquet", *settings, *films, "-o", output)
    assert ended.code == 0
    assert len(ll.load(output).item_ids) == 110
    ended = limelight("fit", stage / "new.parquet", "--from", output, *films, "-o", output)
    assert ended.code == 0
    assert ll.load(output).learned.features is not None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--factors", 9), "was fitted with --factors 8, not 9"),
        (("--exposure-weight", 1), "ials has no such setting: --exposure-weight"),
        (("--hidden", 8), "ials has no such setting: --hidden"),
        (("--model", "exadmm"), "is ials, not --model exadmm"),
        (("--gini", 0.6), "so there is no target"),
        (("--resume",), "so there is no checkpoint"),
        (("--tune",), "so there is no tuning"),
        (("--item-features", "films.parquet"), "fitted without item features"),
    ],
)
def test_what_contradicts_is_refused(
    limelight: Run, stage: Path, tmp_path: Path, flags: tuple[object, ...], words: str
) -> None:
    output = tmp_path / "model"
    more = ("--from", stage / "model", *flags, "-o", output)
    ended = limelight("fit", stage / "new.parquet", *more)
    assert ended.code != 0
    assert words in ended.err
    assert "hint:" in ended.err
    assert not output.exists()


def test_a_reranked_model_is_refused(limelight: Run, stage: Path, tmp_path: Path) -> None:
    ll.BestResponse(strength=0.3).over(ll.load(stage / "model")).save(tmp_path / "fair")
    more = ("--from", tmp_path / "fair", "-o", tmp_path / "model")
    ended = limelight("fit", stage / "new.parquet", *more)
    assert "decided for the users that it has" in ended.err


def test_features_of_a_model_that_has_no_use_for_them(
    limelight: Run, stage: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    succeed("fit", stage / "early.parquet", "--model", "popularity", "-o", model)
    more = ("--item-features", stage / "films.parquet", "--from", model, "-o", model)
    ended = limelight("fit", stage / "new.parquet", *more)
    assert "--model popularity cannot use --item-features" in ended.err
    assert limelight("fit", stage / "new.parquet", "--from", model, "-o", model).code == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--model", "popularity"), "--model popularity cannot use --item-features"),
        (("--gini", 0.6), "a target cannot use --item-features"),
    ],
)
def test_features_without_use(
    limelight: Run, stage: Path, tmp_path: Path, flags: tuple[object, ...], words: str
) -> None:
    more = ("--item-features", stage / "films.parquet", *flags, "-o", tmp_path / "model")
    assert words in limelight("fit", stage / "early.parquet", *more).err
