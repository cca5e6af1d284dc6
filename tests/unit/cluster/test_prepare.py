import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight import ConfigError, DataError
from limelight.cluster.collectives import LocalCommunicator, deal, run_locally
from limelight.cluster.ingest import routing
from limelight.cluster.ingest.prepare import about_source, prepare
from limelight.cluster.ingest.routing import shard_bounds
from limelight.cluster.ingest.shards import has_shards, load_shards
from limelight.store.arrays import read_ids

SIZES = [(1, 1), (1, 5), (2, 2), (3, 8), (7, 7)]


def prepared(source, folder, size, n_shards, *, deterministic=False, **reading):
    return run_locally(
        lambda comm: prepare(source, folder, comm, **reading),
        size,
        n_shards,
        deterministic=deterministic,
    )


def ids_of(rank):
    """Read the ids of all users, and of all items."""
    return [read_ids(rank.folder / f"{side}s.parquet", f"{side}_id") for side in ("user", "item")]


def fresh(source, size, n_shards, **options):
    with tempfile.TemporaryDirectory() as folder:
        ranks = prepared(source, folder, size, n_shards, **options)
        return ranks, *ids_of(ranks[0])


def assert_same(ranks, user_ids, item_ids, data, n_shards):
    shards = [shard for rank in ranks for shard in rank.shards]
    assert len(shards) == n_shards
    lengths = np.concatenate([np.diff(indptr) for indptr, _ in shards])
    np.testing.assert_array_equal(lengths, np.diff(data.indptr))
    np.testing.assert_array_equal(np.concatenate([items for _, items in shards]), data.indices)
    for found, wanted in ((user_ids, data.user_ids), (item_ids, data.item_ids)):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted.tolist()
    for rank in ranks:
        assert all(a.dtype == np.int64 and b.dtype == np.int32 for a, b in rank.shards)
        assert all(indptr[0] == 0 for indptr, _ in rank.shards)
        counts = np.bincount(data.indices, minlength=data.n_items)
        np.testing.assert_array_equal(rank.cut.item_counts, counts)
        np.testing.assert_array_equal(rank.cut.item_bounds, shard_bounds(counts, n_shards))
        bounds = shard_bounds(np.diff(data.indptr), n_shards)
        np.testing.assert_array_equal(rank.cut.user_bounds, bounds)
        assert (rank.cut.n_users, rank.cut.n_items, rank.cut.n_entries) == (*data.shape, data.nnz)
        assert (rank.fingerprint, rank.duplicates) == (data.fingerprint(), data.duplicates)
    assert [shard for rank in ranks for shard in rank.numbers] == list(range(n_shards))


def either(read):
    """What reading gives: a result, or the words of an error."""
    try:
        return read()
    except (DataError, ConfigError) as error:
        return type(error), error.message, error.hint


def write(folder, tables, kind="parquet", rows=3):
    folder.mkdir()
    for number, table in enumerate(tables):
        file = folder / f"part-{number}.{kind}"
        if kind == "parquet":
            pa.parquet.write_table(table, file, row_group_size=rows)
        else:
            pa.csv.write_csv(table, file)
    return folder


ids = st.one_of(
    st.tuples(st.just(pa.int64()), st.just(st.integers(-3, 12))),
    st.tuples(st.just(pa.int32()), st.just(st.sampled_from([7, 70, 700]))),
    st.tuples(st.just(pa.string()), st.just(st.text("ab0é😀", min_size=1, max_size=3))),
    st.tuples(st.just(pa.string()), st.just(st.sampled_from(["7", "10", "9", "-1"]))),
)


@st.composite
def tables(draw):
    (user_type, users), (item_type, items) = draw(ids), draw(ids)
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=5))
    return [
        pa.table(
            {
                "user": pa.array([draw(users) for _ in range(size)], user_type),
                "item": pa.array([draw(items) for _ in range(size)], item_type),
                "rating": pa.array([draw(st.sampled_from([0.0, 1, 4, 5])) for _ in range(size)]),
            }
        )
        for size in sizes
    ]


readings = st.sampled_from(
    [
        {},
        {"rating": "rating"},
        {"rating": "rating", "min_rating": 4},
        {"min_user": 2},
        {"min_item": 2, "rating": "rating"},
        {"min_user": 2, "min_item": 2, "filter_order": "items-first"},
        {"min_user": 2, "min_item": 2, "filter_order": "users-first"},
        {"core": 2},
        {"timestamp": "rating"},
    ]
)


@given(
    parts=tables(),
    kind=st.sampled_from(["parquet", "csv"]),
    reading=readings,
    shape=st.sampled_from(SIZES),
    deterministic=st.booleans(),
)
def test_any_number_of_ranks_reads_what_one_machine_reads(
    parts, kind, reading, shape, deterministic
):
    size, n_shards = shape
    with tempfile.TemporaryDirectory() as place:
        folder = write(Path(place) / "in", parts, kind)
        wanted = either(lambda: ll.read(folder, **reading))
        found = either(
            lambda: fresh(folder, size, n_shards, deterministic=deterministic, **reading)
        )
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            assert_same(*found, wanted, n_shards)


@pytest.fixture
def market(tmp_path):
    data = ll.marketplace(400, 90, 6000).interactions
    rows = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    mixed = np.random.default_rng(0).permutation(np.r_[np.arange(data.nnz), :500])
    table = pa.table({"user": rows[mixed], "item": data.indices[mixed]})
    pa.parquet.write_table(table, tmp_path / "pairs.parquet", row_group_size=700)
    return tmp_path / "pairs.parquet"


@pytest.mark.parametrize(("size", "n_shards"), SIZES)
def test_one_file_is_cut_by_row_groups(market, monkeypatch, size, n_shards):
    monkeypatch.setattr(routing, "_BLOCK", 1000)
    assert_same(*fresh(market, size, n_shards), ll.read(market), n_shards)


def test_nobody_has_the_pairs_of_others(market):
    ranks, *_ = fresh(market, 4, 8)
    held = [sum(len(items) for _, items in rank.shards) for rank in ranks]
    assert max(held) < 1.2 * sum(held) / 4


@pytest.mark.parametrize(("size", "n_shards"), SIZES)
def test_interactions_in_memory(size, n_shards):
    data = ll.marketplace(60, 40, 500).interactions
    assert_same(*fresh(data, size, n_shards), data, n_shards)


@pytest.mark.parametrize(("size", "n_shards"), SIZES)
def test_the_training_part_of_a_split(tmp_path, size, n_shards):
    data = ll.marketplace(200, 40, 3000).interactions
    split = ll.split_users(data, validation=20, test=20, seed=1)
    split.save(tmp_path / "split")
    found = fresh(tmp_path / "split", size, n_shards)
    assert_same(*found, ll.data.Split.load(tmp_path / "split").train, n_shards)


def test_a_split_takes_no_filters(tmp_path):
    (tmp_path / "train.csv").write_text("uid,sid\n0,0\n")
    with pytest.raises(ConfigError, match="does not take: min_user"):
        fresh(tmp_path, 2, 2, min_user=3)


def test_what_others_send_may_be_read_only(market, monkeypatch):
    def locked(payload):
        parts = [np.array(part) for part in payload] if isinstance(payload, tuple) else payload
        for part in parts if isinstance(parts, list) else [parts]:
            part.flags.writeable = False
        return tuple(parts) if isinstance(parts, list) else parts

    all_to_all = LocalCommunicator.all_to_all

    def received(self, outgoing):
        for shard, payload in all_to_all(self, outgoing):
            yield shard, locked(payload)

    monkeypatch.setattr(LocalCommunicator, "all_to_all", received)
    assert_same(*fresh(market, 3, 7, min_user=2), ll.read(market, min_user=2), 7)


def test_more_shards_than_users(tmp_path):
    table = pa.table({"user": [3, 3, 1], "item": ["a", "b", "a"]})
    source = write(tmp_path / "in", [table])
    assert_same(*fresh(source, 3, 16), ll.read(source), 16)


def refused_alike(source, **reading):
    wanted = either(lambda: ll.read(source, **reading))
    assert isinstance(wanted, tuple)
    for size, n_shards in SIZES:
        assert either(lambda: fresh(source, size, n_shards, **reading)) == wanted  # noqa: B023
    return wanted[1]


def parts_with(tmp_path, *bad, kind="parquet", **columns):
    """Nine good rows in front of what is bad, three in a file."""
    good = pa.table({"user": [1, 2, 3], "item": [4, 5, 6], "rating": [1.0, 2.0, 3.0]})
    return write(tmp_path / "in", [good] * 3 + [*bad], kind, rows=2)


def test_missing_column(tmp_path):
    bad = pa.table({"user": [1], "thing": [2]})
    assert "column not found in" in refused_alike(parts_with(tmp_path, bad))


def test_missing_folder_and_empty_folder(tmp_path):
    assert "no such file" in refused_alike(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "holds no parts" in refused_alike(tmp_path / "empty")


def test_empty_file(tmp_path):
    folder = parts_with(tmp_path)
    (folder / "part-1.parquet").write_bytes(b"")
    assert "the file is empty" in refused_alike(folder)


def test_damaged_file(tmp_path):
    folder = parts_with(tmp_path)
    (folder / "part-1.parquet").write_bytes(b"PAR1 and nothing else")
    assert "cannot read" in refused_alike(folder)


def test_no_rows_at_all(tmp_path):
    nothing = pa.table({"user": pa.array([], pa.int64()), "item": pa.array([], pa.int64())})
    assert "no rows in the 3 parts" in refused_alike(write(tmp_path / "in", [nothing] * 3))


def test_the_first_bad_rating_is_told_with_its_row(tmp_path):
    bad = pa.table({"user": [1, 2, 3], "item": [4, 5, 6], "rating": [1.0, 1.0, float("nan")]})
    folder = parts_with(tmp_path, bad, bad)
    said = refused_alike(folder, rating="rating")
    assert "part-3.parquet" in said
    assert "row 3: a rating must be a finite number from 0 up, got: nan" in said


def test_ids_of_two_types(tmp_path):
    bad = pa.table({"user": ["1", "2", ""], "item": [4, 5, 6], "rating": [1.0, 1, 1]})
    said = refused_alike(parts_with(tmp_path, bad, bad))
    assert "part-3.parquet, column 'user': ids are integers in one part" in said


def test_times_of_two_kinds(tmp_path):
    bad = pa.table({"user": [1], "item": [4], "rating": ["2024-01-02"]})
    said = refused_alike(parts_with(tmp_path, bad, kind="csv"), timestamp="rating")
    assert "timestamps are written in two ways" in said


def test_null_id_in_a_text_file(tmp_path):
    bad = pa.table({"user": ["7", None], "item": [4, 5], "rating": [1.0, 1]})
    assert "row 2: an id" in refused_alike(parts_with(tmp_path, bad, kind="csv"))


def test_no_row_is_rated_high_enough(tmp_path):
    said = refused_alike(parts_with(tmp_path), rating="rating", min_rating=9)
    assert said == "no row is rated high enough: the highest rating is 3"


def test_everybody_is_rare(tmp_path):
    assert "no interaction is left of 3" in refused_alike(parts_with(tmp_path), core=9)


def test_settings_that_make_no_sense(tmp_path):
    assert "needs a rating column" in refused_alike(parts_with(tmp_path), min_rating=9)


def test_names_that_are_not_there(tmp_path):
    assert "column not found" in refused_alike(parts_with(tmp_path), user="who")


def test_ids_that_are_not_text(tmp_path):
    strings = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    folder = write(tmp_path / "in", [pa.table({"user": strings, "item": [1]})])
    assert "holds ids that are not UTF-8 text" in refused_alike(folder)


def test_a_replacement_needs_nobody(market, tmp_path):
    ranks = prepared(market, tmp_path / "shards", 3, 8)
    mine = deal(8, 3)[1]

    class Alone:
        rank, size, n_shards = 1, 3, 8

    for again in (
        prepare("the source may be gone", tmp_path / "shards", Alone()),
        load_shards(tmp_path / "shards", mine),
    ):
        assert again.numbers == ranks[1].numbers
        for one, other in zip(again.shards, ranks[1].shards, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])


def test_another_number_of_ranks_finds_the_same_shards(market, tmp_path):
    prepared(market, tmp_path / "shards", 3, 8)
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "shards").iterdir()}
    ranks = prepared(market, tmp_path / "shards", 5, 8)
    assert_same(ranks, *ids_of(ranks[0]), ll.read(market), 8)
    assert before == {
        file.name: file.stat().st_mtime_ns for file in (tmp_path / "shards").iterdir()
    }


def test_the_files_do_not_depend_on_the_number_of_ranks(market, tmp_path):
    folders = []
    for size in (1, 2, 7):
        prepared(market, tmp_path / str(size), size, 8, min_user=3)
        folders.append({file.name: file.read_bytes() for file in (tmp_path / str(size)).iterdir()})
    assert folders[0] == folders[1] == folders[2]


def test_a_source_is_known_by_size_and_time(market):
    before = about_source(market, 4)
    assert before == about_source(market, 4) != about_source(market, 5)
    market.touch()
    assert before != about_source(market, 4)


def test_shards_that_are_not_complete_are_none(market, tmp_path, monkeypatch):
    def full(*_, **__):
        raise DataError("no space left", hint="free some")

    monkeypatch.setattr("limelight.cluster.ingest.prepare.save_rest", full)
    with pytest.raises(DataError, match="no space left"):
        prepared(market, tmp_path / "shards", 3, 3)
    assert not has_shards(tmp_path / "shards")
    with pytest.raises(DataError, match="no prepared shards"):
        load_shards(tmp_path / "shards", range(1))
    monkeypatch.undo()
    ranks = prepared(market, tmp_path / "shards", 2, 3)
    assert_same(ranks, *ids_of(ranks[0]), ll.read(market), 3)


def test_damaged_shards(market, tmp_path):
    prepared(market, tmp_path, 1, 2)
    (tmp_path / "shard-00001.safetensors").replace(tmp_path / "shard-00000.safetensors")
    with pytest.raises(DataError, match=r"shard 0 of .* does not have"):
        load_shards(tmp_path, range(1))
    with pytest.raises(DataError, match="file not found"):
        load_shards(tmp_path, range(1, 2))
    (tmp_path / "shards.json").write_text("{}")
    with pytest.raises(DataError, match="cannot read shards"):
        load_shards(tmp_path, range(1))


def test_weights_are_refused_before_anything_is_read(tmp_path):
    data = ll.marketplace(50, 20, 400).interactions
    weighted = replace(data, weights=np.ones(data.nnz, np.float32))
    ll.split_users(weighted, validation=5, test=5).save(tmp_path / "split")
    for source, reading in (
        (weighted, {}),
        ("no/such/file", {"weight": "plays"}),
        ("no/such/file", {"timestamp": "t", "half_life": "9d"}),
        (tmp_path / "split", {}),
    ):
        with pytest.raises(ConfigError, match=r"a cluster fits .* without weights only"):
            prepared(source, tmp_path / "shards", 2, 2, **reading)
