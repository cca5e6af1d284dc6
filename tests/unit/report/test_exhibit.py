"""Exhibits: what they measure, and that nothing is lost on the way to the disk and back."""

import json

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.report.exhibit import (
    ExampleUsers,
    Exhibit,
    ExhibitPoint,
    ShownLists,
    example_rows,
    held_out_rows,
    measure_lists,
    trace_columns,
)
from limelight.report.exhibit_folder import FOLDER, load_exhibit, save_exhibit
from limelight.store.arrays import load_arrays, save_arrays

K = 5


@pytest.fixture(scope="module")
def split():
    data = ll.marketplace(300, 60, 4000, seed=1).interactions
    return ll.split_users(data, validation=40, test=40)


@pytest.fixture(scope="module")
def exhibit(split):
    model = ll.IALS(factors=4, epochs=4, trace_every=1).fit(split.train)
    lists = model.recommend(split.test.history, K).ids
    shown, figures = measure_lists(lists, split.test, K, model.trace_)
    item_ids = split.train.item_ids
    table = pa.table({"item_id": item_ids, "group": [f"g{n % 3}" for n in range(len(item_ids))]})
    return Exhibit(
        kind="frontier",
        title="A front",
        k=K,
        points=(
            ExhibitPoint("iALS", "iALS", figures, 0.0, {"factors": 4}, shown=shown),
            ExhibitPoint("other", "other", {"gini@5": 0.5}, on_front=False),
        ),
        item_ids=item_ids,
        chosen=1,
        titles=tuple(f"title {n}" for n in range(len(item_ids))),
        interactions=np.asarray(split.train.matrix.sum(axis=0), np.int64).ravel(),
        groups=read_groups(table, ids_to_arrow(item_ids)),
        examples=ExampleUsers.of(held_out_rows(split.test), split.test),
        data={"Users": "300"},
        made={"Seed": "0"},
        notes=("a note",),
    )


def test_figures_and_exposure_are_those_of_evaluate(split):
    model = ll.IALS(factors=4, epochs=4).fit(split.train)
    shown, figures = measure_lists(model.recommend(split.test.history, K).ids, split.test, K)
    assert figures == ll.evaluate(model, split.test, k=K).to_dict()
    assert ll.gini(shown.exposure) == pytest.approx(figures["gini@5"], abs=1e-12)


def test_example_users_have_something_to_find_and_differ_in_history(split):
    rows = held_out_rows(split.test)
    assert len(set(rows.tolist())) == len(rows) == 12
    assert np.diff(split.test.targets.indptr)[rows].min() > 0
    lengths = np.diff(split.test.history.indptr)[rows]
    assert (np.diff(lengths) >= 0).all()


def test_examples_are_there_even_if_nobody_is_known():
    assert example_rows(np.zeros(3, dtype=int)).tolist() == [0, 1, 2]
    assert len(example_rows([])) == 0


def test_traces_become_columns(split):
    model = ll.ExADMM(factors=4, epochs=3, exposure_strength=0.1, trace_every=1).fit(split.train)
    columns = trace_columns(model.trace_)
    assert columns["epoch"] == [1.0, 2.0, 3.0]
    assert columns["objective"] == [record.objective for record in model.trace_]
    assert trace_columns([]) == {}


def test_an_exhibit_comes_back_from_the_disk(exhibit, tmp_path):
    save_exhibit(tmp_path, exhibit)
    found = load_exhibit(tmp_path)
    for name in ("kind", "title", "k", "base", "chosen", "titles", "data", "made", "notes"):
        assert getattr(found, name) == getattr(exhibit, name)
    np.testing.assert_array_equal(found.item_ids, exhibit.item_ids)
    np.testing.assert_array_equal(found.interactions, exhibit.interactions)
    for name in ("items", "groups", "weights", "group_ids"):
        np.testing.assert_array_equal(getattr(found.groups, name), getattr(exhibit.groups, name))
    for name in ("user_ids", "history", "liked"):
        pairs = zip(getattr(found.examples, name), getattr(exhibit.examples, name), strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    first, second = found.points
    assert first.figures == exhibit.points[0].figures
    assert first.settings == {"factors": 4}
    np.testing.assert_array_equal(first.shown.exposure, exhibit.points[0].shown.exposure)
    np.testing.assert_array_equal(first.shown.lists, exhibit.points[0].shown.lists)
    assert {name: list(values) for name, values in first.shown.trace.items()} == dict(
        exhibit.points[0].shown.trace
    )
    assert second.shown == ShownLists()
    assert not second.on_front


def test_an_exhibit_without_extras_comes_back_too(tmp_path):
    plain = Exhibit(
        "audit", "Lists", 2, (ExhibitPoint("a", "a", {}),), np.array(["x", "y"]), base=None
    )
    save_exhibit(tmp_path, plain)
    found = load_exhibit(tmp_path)
    assert found.base is None
    assert found.examples is None
    assert found.groups is None
    assert found.titles is None


def test_a_second_run_replaces_the_exhibit(exhibit, tmp_path):
    save_exhibit(tmp_path, exhibit)
    save_exhibit(tmp_path, exhibit)
    assert [path.name for path in tmp_path.iterdir()] == [FOLDER]


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(ll.DataError, match="nothing to show") as error:
        load_exhibit(tmp_path)
    assert "limelight demo" in error.value.hint


def change_record(folder, **changes):
    file = folder / FOLDER / "exhibit.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_newer_exhibit_is_refused(exhibit, tmp_path):
    save_exhibit(tmp_path, exhibit)
    change_record(tmp_path, schema_version=99)
    with pytest.raises(ll.DataError, match="newer limelight"):
        load_exhibit(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"chosen": 7},
        {"base": -1},
        {"points": []},
        {"titles": ["only one"]},
        {"groups": ["g0"]},
        {"schema_version": "1"},
        {"points": 3},
    ],
)
def test_a_damaged_exhibit_is_refused(exhibit, tmp_path, changes):
    save_exhibit(tmp_path, exhibit)
    change_record(tmp_path, **changes)
    with pytest.raises(ll.DataError, match="cannot read"):
        load_exhibit(tmp_path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("data",), 3),
        (("data", "Users"), float("nan")),
        (("made",), []),
        (("k",), 0),
        (("k",), "5"),
        (("base",), 0.5),
        (("title",), None),
        (("notes",), [1]),
        (("points", 0, "figures"), 1.5),
        (("points", 0, "figures", "gini@5"), "much"),
        (("points", 0, "strength"), float("inf")),
        (("points", 0, "settings"), "none"),
    ],
)
def test_words_that_cannot_be_shown_are_refused(tmp_path, exhibit, place, value):
    save_exhibit(tmp_path, exhibit)
    file = tmp_path / FOLDER / "exhibit.json"
    record = json.loads(file.read_text())
    *path, last = place
    where = record
    for key in path:
        where = where[key]
    where[last] = value
    file.write_text(json.dumps(record))
    with pytest.raises(ll.DataError, match="cannot read"):
        load_exhibit(tmp_path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("0/exposure", np.full(60, np.inf)),
        ("0/exposure", np.full(60, -1.0)),
        ("0/exposure", np.ones((60, 2))),
        ("0/lists", np.full((12, 5), -2)),
        ("0/lists", np.zeros(12, dtype=np.int32)),
        ("0/lists", np.zeros((12, 5))),
        ("0/trace/epoch", np.zeros(1)),
        ("interactions", np.full(60, np.nan)),
        ("member_items", np.full(60, -1)),
    ],
)
def test_arrays_that_cannot_be_shown_are_refused(tmp_path, exhibit, name, array):
    save_exhibit(tmp_path, exhibit)
    file = tmp_path / FOLDER / "arrays.safetensors"
    arrays = load_arrays(file)
    assert name in arrays
    save_arrays(file, arrays | {name: array})
    with pytest.raises(ll.DataError, match="cannot read"):
        load_exhibit(tmp_path)


def test_a_record_nested_too_deeply_is_refused(tmp_path, exhibit):
    save_exhibit(tmp_path, exhibit)
    (tmp_path / FOLDER / "exhibit.json").write_text("[" * 100_000)
    with pytest.raises(ll.DataError, match="cannot read"):
        load_exhibit(tmp_path)
