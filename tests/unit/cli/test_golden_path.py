"""From a table to an audit, on files."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from limelight.cli.flags.reading import Reading
from limelight.data import Split, read
from limelight.data.read import ReadOptions
from limelight.metrics.evaluate import evaluate
from limelight.models.folder import load_model

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run


def test_describe(limelight: Run, files: Path) -> None:
    ended = limelight("data", "describe", files / "ratings.csv")
    assert ended.code == 0
    assert ended.err == ""
    assert "duplicates merged" in ended.out
    record = json.loads(limelight("data", "describe", files / "ratings.csv", "--json").out)
    data = read(files / "ratings.csv")
    assert record["users"] == data.n_users == 200
    assert record["interactions"] + record["duplicates"] == 4000
    assert record["density"] == data.nnz / (data.n_users * data.n_items)
    assert record["per_user_p50"] == np.median(np.diff(data.indptr))
    assert record["per_item_max"] == np.bincount(data.indices).max()
    assert record["items_below_5"] == np.sum(np.bincount(data.indices) < 5)
    assert 0 < record["popularity_top_share"] < record["popularity_gini"] < 1


def test_a_table_is_opened_once_sampled_once_and_read_once(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def count(module: Any, name: str) -> None:
        function = getattr(module, name)

        def counted(*arguments: Any, **given: Any) -> Any:
            calls.append(name)
            return function(*arguments, **given)

        monkeypatch.setattr(module, name, counted)

    reading, estimate = (sys.modules[f"limelight.data.{name}"] for name in ("read", "estimate"))
    count(reading, "open_parts")
    count(reading, "choose_columns")
    count(estimate, "sample_table")
    count(sys.modules["limelight.data.files"].TextFile, "batches")
    limelight("fit", files / "ratings.csv", "--model", "popularity", "-o", tmp_path / "model")
    assert calls == ["open_parts", "choose_columns", "sample_table", "batches"]


def test_every_option_of_reading_has_a_flag() -> None:
    assert tuple(field.name for field in fields(Reading)) == ReadOptions._fields


def test_reading_flags_reach_the_reader(limelight: Run, files: Path) -> None:
    flags = "--rating rating --min-rating 4 --timestamp time --min-user 3 --min-item 2"
    flags += " --user userId --item movieId --filter-order items-first"
    command = ["data", "describe", files / "ratings.csv", *flags.split(), "--json"]
    record = json.loads(limelight(*command).out)
    data = read(
        files / "ratings.csv",
        rating="rating",
        min_rating=4,
        min_user=3,
        min_item=2,
        filter_order="items-first",
    )
    assert (record["users"], record["items"], record["interactions"]) == (*data.shape, data.nnz)
    core = json.loads(
        limelight("data", "describe", files / "ratings.csv", "--core", 5, "--json").out
    )
    assert min(core["per_user_min"], core["per_item_min"]) >= 5


def test_split(limelight: Run, files: Path, tmp_path: Path) -> None:
    command = ["data", "split", files / "ratings.csv", "--seed", 5, "-o", tmp_path / "split"]
    ended = limelight(*command)
    assert ended.code == 0
    assert "validation" in ended.out
    assert ended.err.endswith(f"written to {tmp_path / 'split'}\n")
    record = json.loads(limelight(*command, "--validation", 7, "--test", "0.05", "--json").out)
    split = Split.load(tmp_path / "split")
    assert record["validation_users"] == split.validation.n_users == 7
    assert record["test_users"] == split.test.n_users == 10
    assert record["test_targets"] == split.test.targets.nnz
    assert record["train_interactions"] == split.train.nnz


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_convert(limelight: Run, files: Path, tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"out.{ending}"
    assert limelight("data", "convert", files / "ratings.csv", "-o", output).code == 0
    before, after = read(files / "ratings.csv"), read(output)
    assert after.duplicates == 0
    assert after.fingerprint() == before.fingerprint()
    assert np.array_equal(after.order, before.order), "the order inside users is kept"
    command = ["data", "convert", files / "split", "-o", output, "--json"]
    assert json.loads(limelight(*command).out)["users"] == Split.load(files / "split").train.n_users


def test_fit_from_a_table(limelight: Run, files: Path, tmp_path: Path) -> None:
    flags = "--model ials --factors 4 --epochs 3 --regularization 0.01 --rating rating"
    ended = limelight("fit", files / "ratings.csv", *flags.split(), "-o", tmp_path / "model")
    assert ended.code == 0
    assert ended.out.startswith("Control of exposure is off. nDCG@20 is 0.")
    assert "All epochs ran." in ended.out
    assert ended.err.endswith(f"written to {tmp_path / 'model'}\n")
    model = load_model(tmp_path / "model")
    assert model.get_params()["regularization"] == 0.01
    assert model.config.epochs == 3


def test_fit_summary(limelight: Run, files: Path, tmp_path: Path) -> None:
    flags = "--penalty 0.1 --learning-rate auto --epochs 4 --factors 4 --exposure-weight 1e-4"
    command = ["fit", files / "split", *flags.split(), "-o", tmp_path / "model", "--json"]
    ended = limelight(*command)
    record = json.loads(ended.out)
    model = load_model(tmp_path / "model")
    assert record["model"] == "exadmm"
    assert record["epochs"] == 4
    assert record["status"] == "finished"
    assert record["objective"] == model.trace_[-1].objective
    assert model.get_params()["penalty"] == 0.1
    assert limelight(*command).code == 0, "an older model is replaced"


def test_a_fit_says_how_much_memory_it_takes_or_refuses(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["fit", files / "split", "--factors", 4, "--epochs", 1, "-o", tmp_path / "model"]
    monkeypatch.setattr("limelight._base.memory.room", lambda _: 1000)
    refused = limelight(*command)
    assert refused.code == 1
    assert "error: the fit takes about " in refused.err
    monkeypatch.setattr("limelight._base.memory.room", lambda _: None)
    ended = limelight(*command)
    assert ended.code == 0
    assert re.search("the fit takes about [0-9.]+ [MG]iB of memory\n", ended.err)


def test_recommend_to_all(limelight: Run, files: Path) -> None:
    table = pq.read_table(files / "lists.parquet").to_pydict()
    model = load_model(files / "model")
    ids, scores = model.recommend(k=5)
    assert table["item_id"] == model.item_ids[ids[ids >= 0]].tolist()
    assert table["score"] == scores[ids >= 0].tolist()
    assert table["user_id"][:5] == [model.user_ids[0]] * 5
    assert table["rank"][:5] == [1, 2, 3, 4, 5]


def test_recommend_to_some(limelight: Run, files: Path) -> None:
    model = load_model(files / "model")
    wanted = [str(model.user_ids[9]), str(model.user_ids[3])]
    command = ["recommend", files / "model", "-k", 2, "--threads", 1]
    ended = limelight(*command, "--user-id", wanted[0], "--user-id", wanted[1])
    lines = [line.replace('"', "").split(",") for line in ended.out.splitlines()]
    assert lines[0] == ["user_id", "item_id", "rank", "score"]
    ids, _ = model.recommend(users=[9, 3], k=2)
    assert [line[:2] for line in lines[1:]] == [
        [wanted[row], str(model.item_ids[item])] for row in range(2) for item in ids[row]
    ]


def test_recommend_with_what_was_seen(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    command = ["fit", files / "split", "--factors", 4, "--epochs", 2, "--no-history", "-o", model]
    assert limelight(*command).code == 0
    assert not (model / "seen.safetensors").exists()
    output = tmp_path / "lists.csv"
    record = json.loads(limelight("recommend", model, "--keep-seen", "-o", output, "--json").out)
    assert record["users"] == 150
    assert pa.csv.read_csv(output).num_rows == 150 * 20


def test_recommend_some_items_only(limelight: Run, files: Path, tmp_path: Path) -> None:
    model = load_model(files / "model")
    some = model.item_ids[:30].tolist()
    (tmp_path / "some.csv").write_text("item_id\n" + "\n".join(map(str, some)))
    (tmp_path / "out.csv").write_text(f"item_id\n{some[0]}\n{some[1]}\n")
    command = ["recommend", files / "model", "-k", 5, "-o", tmp_path / "lists.parquet"]
    limelight(*command, "--allow", tmp_path / "some.csv", "--exclude", tmp_path / "out.csv")
    table = pq.read_table(tmp_path / "lists.parquet").to_pydict()
    expected = model.recommend(k=5, allow=some, exclude=some[:2]).ids
    shown = [model.item_ids[item] for row in expected for item in row if item >= 0]
    assert table["item_id"] == shown
    (tmp_path / "out.csv").write_text("item_id\nnothing\n")
    ended = limelight(*command, "--exclude", tmp_path / "out.csv")
    assert ended.code == 0  # a list of what is sold out may be newer than the model
    ended = limelight(*command, "--allow", tmp_path / "out.csv")
    assert ended.code == 1
    assert "exclude and allow leave none of" in ended.err


def test_recommend_to_unseen_users(limelight: Run, files: Path, tmp_path: Path) -> None:
    # One odd id makes text of all ids in the file; the model knows its items as integers.
    (tmp_path / "new.csv").write_text("who,what\nana,1\nana,2\nana,odd\nbob,odd\n")
    command = ["recommend", files / "model", "--history", tmp_path / "new.csv", "-k", 3]
    ended = limelight(*command, "--user", "who", "--item", "what", "-o", tmp_path / "lists.parquet")
    assert "the model does not know, left out: 1" in ended.err
    assert "1 of 2 users has no history that the model knows: they get the most" in ended.err
    table = pq.read_table(tmp_path / "lists.parquet").to_pydict()
    assert table["user_id"] == ["ana"] * 3 + ["bob"] * 3
    model = load_model(files / "model")
    column_of = {item: column for column, item in enumerate(model.item_ids.tolist())}
    history = np.zeros((1, len(column_of)), dtype=np.float32)
    history[0, [column_of[1], column_of[2]]] = 1
    from scipy.sparse import csr_matrix

    ids, _ = model.recommend(csr_matrix(history), k=3)
    assert table["item_id"][:3] == model.item_ids[ids[0]].tolist()


def test_evaluate(limelight: Run, files: Path) -> None:
    ended = limelight("evaluate", files / "model", files / "split")
    assert ended.code == 0
    items = len(load_model(files / "model").item_ids)
    assert ended.out.startswith("nDCG@20 is 0.")
    assert re.search(rf"\nEvaluation over \d+ users' lists and {items} items\n", ended.out)
    command = ["evaluate", files / "model", files / "split", "--part", "validation"]
    record = json.loads(limelight(*command, "-k", 3, "-k", 10, "--threads", 1, "--json").out)
    model, split = load_model(files / "model"), Split.load(files / "split")
    expected = evaluate(model, split.validation, k=(3, 10)).to_dict()
    assert record == {"part": "validation", **expected}


def test_evaluate_matches_items_by_id(limelight: Run, files: Path, tmp_path: Path) -> None:
    # A model of the same interactions as a table: the items come in another order.
    limelight("data", "convert", files / "split", "-o", tmp_path / "train.parquet")
    settings = ["--factors", 8, "--epochs", 5, "--seed", 1]
    model = tmp_path / "model"
    limelight("fit", tmp_path / "train.parquet", *settings, "-o", model)
    assert load_model(model).item_ids.tolist() != load_model(files / "model").item_ids.tolist()
    one, other = (
        json.loads(limelight("evaluate", path, files / "split", "-k", 10, "--json").out)
        for path in (model, files / "model")
    )
    assert one["users"] == other["users"]
    assert one["recall@10"] == pytest.approx(other["recall@10"], abs=0.15)


def test_audit(limelight: Run, files: Path, tmp_path: Path) -> None:
    items = load_model(files / "model").item_ids
    rows = "".join(f"{item},{'even' if item % 2 == 0 else 'odd'}\n" for item in items.tolist())
    (tmp_path / "groups.csv").write_text(f"item_id,group\n{rows}")
    catalogue = files / "model" / "items.parquet"
    command = ["audit", files / "lists.parquet", "--catalogue", catalogue]
    command += ["--groups", tmp_path / "groups.csv"]
    ended = limelight(*command, "--top", 3)
    assert ended.code == 0
    over = f"150 users' lists and {len(items)} items"
    assert ended.out.startswith(f"Exposure audit over {over}, ranks 1 to ")
    record = json.loads(limelight(*command, "-k", 2, "--top", 3, "--json").out)
    assert record["items"] == len(items)
    assert len(record["most_exposed"]) == 3
    assert {group["group"] for group in record["groups"]} == {"even", "odd"}
    assert 0 < record["gini@2"] < 1
