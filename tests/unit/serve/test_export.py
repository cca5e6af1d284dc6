"""Exports: what other programs find in the files, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support.models import MODELS

import limelight as ll
from limelight.rerank.relevance import Relevance, ScoreRelevance
from limelight.serve.export import index as export_index
from limelight.serve.export.export import IndexOptions, export_model, holds_export
from limelight.serve.export.index import VoyagerBackend, as_distances
from limelight.serve.export.prices import prices_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import Run

USERS, ITEMS, K = 400, 300, 20
CONTROLS = ("plain", "one", "several", "law", "groups")
INDEXES = ("voyager", "faiss")


@pytest.fixture(scope="module")
def model() -> Any:
    pairs = ll.marketplace(USERS, ITEMS, 9000, seed=3).interactions
    items = np.array([f"item-{number}" for number in range(ITEMS)], dtype=object)
    data = ll.Interactions(pairs.indptr, pairs.indices, 1000 + np.arange(USERS), items)
    return ll.IALS(factors=12, epochs=6, num_threads=1).fit(data)


@pytest.fixture(scope="module")
def controlled(model: Any) -> dict[str, Any]:
    ranking = model.ranking(filter_seen=False)
    by_score = {"relevance": ScoreRelevance(), "num_threads": 1, "strength": 0.2}
    shares = ll.GroupShares(at_most=0.2, relevance=ScoreRelevance(), num_threads=1)
    found = {
        "one": ll.FrankWolfe(steps=1, **by_score).fit(ranking, k=K),
        "several": ll.FrankWolfe(steps=6, **by_score).fit(ranking, k=K),
        "law": ll.FrankWolfe(steps=4, strength=0.2, num_threads=1).fit(ranking, k=K),
        "groups": shares.fit(ranking, K, groups=np.arange(ITEMS) % 8),
    }
    return {"plain": model, **{name: prices.over(model) for name, prices in found.items()}}


def own_lists(controlled: Any, k: int = K) -> Any:
    """What limelight shows, of all items."""
    return controlled.recommend(users=np.arange(USERS), k=k, filter_seen=False).ids


def run_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run what the text beside the files shows."""
    monkeypatch.chdir(folder)
    [code] = re.findall(r"^```python\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code.replace("open(", "_open("), "README", "exec"), {"_open": _open})
    return json.loads(printed.getvalue().replace("'", '"'))


def _open(name: str) -> io.StringIO:
    with open(name, encoding="utf-8") as file:  # noqa: PTH123
        return io.StringIO(file.read())


def test_tables_hold_ids_and_factors(model: Any, tmp_path: Path) -> None:
    record = export_model(model, tmp_path / "out")
    items, users = (pq.read_table(tmp_path / "out" / f"{n}.parquet") for n in ("items", "users"))
    assert items["item_id"].to_pylist() == model.item_ids.tolist()
    assert users["user_id"].to_pylist() == model.user_ids.tolist()
    np.testing.assert_array_equal(np.stack(items["factors"].to_numpy()), model.item_factors)
    np.testing.assert_array_equal(np.stack(users["factors"].to_numpy()), model.user_factors)
    assert record == json.loads((tmp_path / "out" / "export.json").read_text())
    assert record["control"] is record["index"] is None
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"export.json", "README.md", "items.parquet", "users.parquet"}


def test_arrays_hold_factors(model: Any, tmp_path: Path) -> None:
    export_model(model, tmp_path / "out", to="npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out/item_factors.npy"), model.item_factors)
    np.testing.assert_array_equal(np.load(tmp_path / "out/user_factors.npy"), model.user_factors)
    assert pq.read_table(tmp_path / "out/users.parquet").column_names == ["user_id"]


def test_prices_by_item(controlled: dict[str, Any], tmp_path: Path) -> None:
    export_model(controlled["groups"], tmp_path / "out")
    table = pq.read_table(tmp_path / "out/prices.parquet")
    assert table.column_names == ["item_id", "price"]
    own = controlled["groups"].reranker.item_prices
    assert own.any()
    np.testing.assert_array_equal(table["price"].to_numpy(), -own)  # added, not taken off


def test_sets_of_prices_and_who_draws_which(controlled: dict[str, Any], tmp_path: Path) -> None:
    record = export_model(controlled["several"], tmp_path / "out", to="npy")
    table = pq.read_table(tmp_path / "out/prices.parquet")
    assert table.column_names == ["set", "item_id", "price"]
    sets = table["price"].to_numpy().reshape(6, ITEMS)
    np.testing.assert_array_equal(sets, controlled["several"].reranker.mixture.subsidies)
    np.testing.assert_array_equal(sets, np.load(tmp_path / "out/prices.npy"))
    ends = np.cumsum(record["control"]["chances"])
    salt = record["control"]["seed"].to_bytes(8, "little")
    users = pq.read_table(tmp_path / "out/users.parquet")
    for user, drawn in zip(
        users["user_id"].to_pylist()[:50], users["set"].to_pylist(), strict=False
    ):
        digest = hashlib.blake2b(str(user).encode(), digest_size=8, salt=salt).digest()
        assert drawn == np.searchsorted(ends, int.from_bytes(digest, "little") / 2**64, "right")


@pytest.mark.parametrize("to", ["parquet", "npy"])
@pytest.mark.parametrize("control", CONTROLS)
def test_the_example_lists_what_limelight_does(
    controlled: dict[str, Any], control: str, to: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    export_model(controlled[control], tmp_path / "out", to=to)
    found = run_example(tmp_path / "out", monkeypatch)
    expected = controlled[control].item_ids[own_lists(controlled[control])[0]]
    assert set(found) == set(expected)


@pytest.mark.parametrize("to", INDEXES)
@pytest.mark.parametrize("control", CONTROLS)
def test_an_index_finds_the_lists(
    controlled: dict[str, Any], control: str, to: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    record = export_model(controlled[control], tmp_path / "out", to=to)["index"]
    assert record["recall"] >= record["asked"] == 0.99
    assert (record["k"], record["queries"], record["items"][:8]) == (K, USERS, "numbered")
    assert record["has_price_dimension"] == (control in {"one", "several", "groups"})
    assert (record["fetch"] > K) == (control in {"several", "law"})
    assert record["tried"][-1]["recall"] == record["recall"]
    assert record["library_version"]
    found = run_example(tmp_path / "out", monkeypatch)
    expected = controlled[control].item_ids[own_lists(controlled[control])[0]]
    assert len(set(found) & set(expected)) >= K - 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 3))
def test_the_nearest_item_has_the_largest_product(seed: int, width: int, empty: int) -> None:
    generator = np.random.default_rng(seed)
    users = generator.normal(size=(30, width)).astype(np.float32) * generator.lognormal(size=width)
    items = generator.normal(size=(20, width)) * generator.lognormal(sigma=2, size=(20, 1))
    items[:empty] = 0
    points, transform = as_distances(items.astype(np.float32), users.astype(np.float32))
    distances = ((users @ transform)[:, None] - points).astype(np.float64)
    products = users @ items.T
    found = np.take_along_axis(products, (distances**2).sum(2).argmin(1)[:, None], axis=1)[:, 0]
    tolerance = 1e-3 * np.abs(products).max()
    assert (found >= products.max(axis=1) - tolerance).all()


def test_users_without_factors_shape_nothing() -> None:
    users = np.zeros((3, 4), dtype=np.float32)
    points, transform = as_distances(np.eye(4, dtype=np.float32), users)
    assert np.isfinite(points).all()
    assert np.isfinite(transform).all()


@pytest.mark.parametrize("name", ["ials", "exact"])
def test_users_are_folded_in_by_the_formula(name: str, tmp_path: Path) -> None:
    data = ll.marketplace(USERS, ITEMS, 9000, seed=3).interactions
    model = MODELS[name].fit(data)
    rule = export_model(model, tmp_path / "out", to="npy")["fold_in"]
    V = np.load(tmp_path / "out/item_factors.npy").astype(np.float64)
    history = np.array([3, 7, 50])
    own, a0 = V[history], rule["unobserved_weight"]
    scale = (len(history) + a0 * len(V)) ** rule["regularization_exponent"]
    A = own.T @ own + a0 * V.T @ V + rule["regularization"] * scale * np.eye(V.shape[1])
    b = own.sum(axis=0) - (0 if rule["price"] is None else np.array(rule["price"]))
    row = np.zeros((1, ITEMS))
    row[0, history] = 1
    expected = model.fold_in(sparse.csr_matrix(row))[0]
    np.testing.assert_allclose(np.linalg.solve(A, b), expected, rtol=1e-3, atol=1e-5)
    assert (rule["price"] is None) == (name == "ials")


def test_joint_fold_in_has_no_formula(tmp_path: Path) -> None:
    data = ll.marketplace(100, 50, 900).interactions
    model = ll.ExADMM(factors=4, epochs=2, exposure_strength=0.1, fold_in="joint").fit(data)
    assert export_model(model, tmp_path / "out")["fold_in"] is None


def test_a_law_of_each_item_goes_with_it(model: Any, tmp_path: Path) -> None:
    law = Relevance(items=tuple(np.linspace(-1, 1, ITEMS)))
    prices = ll.FrankWolfe(steps=2, strength=0.1, relevance=law).fit(model.ranking(), k=K)
    record = export_model(prices.over(model), tmp_path / "out")
    items = pq.read_table(tmp_path / "out/items.parquet")
    np.testing.assert_allclose(items["log_factor"].to_numpy(), law.items, rtol=1e-6)
    assert "items" not in record["control"]["law"]


def test_an_older_export_is_replaced_and_nothing_else(model: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_model(model, out, to="npy")
    export_model(model, out, to="parquet")
    assert not (out / "item_factors.npy").exists()
    assert holds_export(out)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("all of it")
    with pytest.raises(ll.DataError, match="will not replace what limelight did not write"):
        export_model(model, strange)
    model.save(tmp_path / "model")
    with pytest.raises(ll.DataError, match="will not replace"):
        export_model(model, tmp_path / "model")
    (tmp_path / "out/export.json").write_text("[" * 10**5)
    assert not holds_export(out)


def test_a_failure_leaves_the_older_export(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_model(model, tmp_path / "out", to="npy")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(VoyagerBackend, "save", fail)
    with pytest.raises(ll.DataError, match="No space left"):
        export_model(model, tmp_path / "out", to="voyager")
    assert json.loads((tmp_path / "out/export.json").read_text())["to"] == "npy"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", [ll.EASE, ll.Popularity, ll.Random])
def test_models_without_factors_are_refused(kind: Any, tmp_path: Path) -> None:
    model = kind().fit(ll.marketplace(60, 40, 500).interactions)
    with pytest.raises(ll.ConfigError, match="has no factors of users and items") as refused:
        export_model(model, tmp_path / "out")
    assert "limelight recommend" in str(refused.value.hint)
    assert not (tmp_path / "out").exists()


def test_control_that_is_no_price_is_refused_unless_left_out(model: Any, tmp_path: Path) -> None:
    fair = ll.BestResponse(strength=0.3).over(model)
    with pytest.raises(ll.ConfigError, match="BestResponse has no prices by item") as refused:
        export_model(fair, tmp_path / "out")
    assert "--plain" in str(refused.value.hint)
    record = export_model(fair, tmp_path / "out", plain=True)
    assert record["control"] is None
    assert record["control_left_out"]


def test_a_law_of_somebody_else_is_refused(model: Any) -> None:
    prices = ll.FrankWolfe(steps=2, relevance=lambda block: block.scores).fit(model.ranking(), k=K)
    with pytest.raises(ll.ConfigError, match="this law of relevance cannot be exported"):
        prices_of(prices.over(model))


@pytest.mark.parametrize("to", INDEXES)
def test_a_missing_library_is_named(model: Any, to: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, to, None)
    with pytest.raises(ll.ConfigError, match=f"needs {to}, which is not installed") as refused:
        export_model(model, tmp_path / "out", to=to)
    assert refused.value.hint == "pip install 'limelight[export]'"


def test_an_index_that_finds_too_little_is_not_written(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_index, "_BUILDS", ((24, 200),))

    def lose(backend: Any, queries: Any, k: int, depth: int) -> Any:
        return np.full((len(queries), k), -1, dtype=np.int32)

    monkeypatch.setattr(VoyagerBackend, "search", lose)
    with pytest.raises(ll.SolveError, match=r"no index of voyager reached a recall of 0.99: 0.0"):
        export_model(model, tmp_path / "out", to="voyager")
    assert not any(tmp_path.iterdir())


def test_prices_that_are_too_strong_for_an_index(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_index, "_FETCHES", (1,))
    prices = ll.FrankWolfe(steps=4, strength=5.0).fit(model.ranking(), k=K)
    with pytest.raises(ll.SolveError, match="20 best by score do not have the 20 best by value"):
        export_model(prices.over(model), tmp_path / "out", to="faiss")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"queries": 0}, "queries must be"),
        ({"recall": 0.0}, "recall must be"),
        ({"recall": 1.01}, "recall must be at most 1"),
        ({"recall": float("nan")}, "recall must be"),
    ],
)
def test_what_cannot_be_asked_of_an_index(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ll.ConfigError, match=message):
        IndexOptions(**asked)


def test_an_unknown_format(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ll.ConfigError, match="to "):
        export_model(model, tmp_path / "out", to="csv")  # type: ignore[arg-type]


def test_short_catalogues_and_few_users(tmp_path: Path) -> None:
    model = ll.IALS(factors=2, epochs=2).fit(ll.marketplace(6, 5, 30).interactions)
    for to in INDEXES:
        record = export_model(model, tmp_path / to, to=to)["index"]  # type: ignore[arg-type]
        assert record["k"] == record["fetch"] == 5


def test_the_verb(limelight: Run, controlled: dict[str, Any], tmp_path: Path) -> None:
    controlled["several"].save(tmp_path / "model")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "model").iterdir()}
    command = ["export", tmp_path / "model", "-o", tmp_path / "out", "--threads", 1]
    ended = limelight(*command, "--to", "voyager", "--queries", 100)
    assert ended.code == 0, ended.err
    assert "IALS with 12 factors: 400 users, 300 items, prices of Prices in 6 sets" in ended.out
    assert "over 100 users (M 24, ef " in ended.out
    ended = limelight(*command, "--json", "--plain")
    record = json.loads(ended.out)
    assert record["output"] == str(tmp_path / "out")
    assert record["control_left_out"]
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "model").iterdir()}


@pytest.mark.parametrize("inside", ["", "export"])
def test_the_verb_does_not_write_into_a_model(
    limelight: Run, model: Any, tmp_path: Path, inside: str
) -> None:
    model.save(tmp_path / "model")
    ended = limelight("export", tmp_path / "model", "-o", tmp_path / "model" / inside)
    assert ended.code == 2
    assert "an export does not go into a model folder" in ended.err
    assert not (tmp_path / "model/export").exists()
