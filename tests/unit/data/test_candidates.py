"""Candidates from real files and frames, with little memory and much."""

import errno
import gc
import gzip
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight._base.errors import ConfigError, DataError
from limelight.data import files
from limelight.data.candidates import sorter as pair_sorter
from limelight.data.candidates.candidates import read_candidates

TABLE = pa.table(
    {
        "user_id": ["u", "v", "u", "w", "v", "u"],
        "item_id": [30, 10, 10, 30, 20, 20],
        "score": [0.5, -1.0, 0.5, 2.0, 7.0, 9.0],
    }
)
EXPECTED = {"u": [(20, 9.0), (30, 0.5), (10, 0.5)], "v": [(20, 7.0), (10, -1.0)], "w": [(30, 2.0)]}


@pytest.fixture
def little_memory(monkeypatch):
    """The least memory has room for three pairs only, and a batch for five."""
    monkeypatch.setattr(pair_sorter, "BUFFER_BYTES", (1 << 20) // 3)
    monkeypatch.setattr(files, "ROWS", 5)
    monkeypatch.setattr(pair_sorter, "PAIR_BYTES", 1 << 30)  # so what is on disk stays there
    return 1 << 20


def as_dict(candidates):
    """Return each user's items and scores, by id."""
    indptr, items, scores = candidates.block(0, candidates.n_users)
    ids = candidates.item_ids[items].tolist()
    pairs = list(zip(ids, scores.tolist(), strict=True))
    bounds = zip(candidates.user_ids.tolist(), indptr, indptr[1:], strict=False)
    return {user: pairs[start:stop] for user, start, stop in bounds}


def refused(message):
    """Every error ends with a hint."""
    return pytest.raises(DataError, match=f"(?s){message}.*\n\nhint: ")


def write(table, file):
    if file.suffix == ".parquet":
        pq.write_table(table, file)
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if ".tsv" in file.name else ",")
        with pa.output_stream(file, compression="gzip" if file.suffix == ".gz" else None) as out:
            pa.csv.write_csv(table, out, options)
    return file


@pytest.mark.parametrize("name", ["c.parquet", "c.csv", "c.tsv", "c.csv.gz", "c.tsv.gz"])
def test_files(tmp_path, name):
    with read_candidates(write(TABLE, tmp_path / name)) as candidates:
        assert as_dict(candidates) == EXPECTED
        assert candidates.item_ids.tolist() == [30, 10, 20]
        assert candidates.counts.tolist() == [3, 2, 1]
        assert (candidates.n_users, candidates.n_items, candidates.n_pairs) == (3, 3, 6)


def test_a_folder_of_parts(tmp_path):
    write(TABLE[:4], tmp_path / "part-0.parquet")
    write(TABLE[4:], tmp_path / "part-1.parquet")
    assert as_dict(read_candidates(tmp_path)) == EXPECTED


@pytest.mark.parametrize("convert", [pa.Table.to_pandas, pl.from_arrow, lambda table: table])
def test_frames(convert):
    assert as_dict(read_candidates(convert(TABLE))) == EXPECTED


def test_named_columns():
    table = TABLE.rename_columns(["who", "what", "how much"])
    found = read_candidates(table, user="who", item="what", score="how much")
    assert as_dict(found) == EXPECTED


def test_detected_columns():
    assert (
        as_dict(read_candidates(TABLE.rename_columns(["userId", "movieId", "score"]))) == EXPECTED
    )


@pytest.mark.parametrize("name", ["c.parquet", "c.csv"])
def test_scratch_files(tmp_path, little_memory, name):
    file, folder = write(TABLE, tmp_path / name), tmp_path / "scratch"
    folder.mkdir()
    with read_candidates(file, memory=little_memory, folder=folder) as candidates:
        assert as_dict(candidates) == EXPECTED
        assert (candidates.nbytes, candidates.nbytes_on_disk) == (4 * 8, 6 * 8)
        assert repr(candidates) == "Candidates(3 users x 3 items, 6 pairs, 0.0 GiB on disk)"
    assert not list(folder.iterdir())


def test_in_memory():
    candidates = read_candidates(TABLE)
    assert (candidates.nbytes, candidates.nbytes_on_disk) == (4 * 8 + 6 * 8, 0)
    assert repr(candidates) == "Candidates(3 users x 3 items, 6 pairs, in memory)"


PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e30, 1e-45]),
    min_size=1,
)


@given(PAIRS, st.integers(2, 60), st.booleans(), st.data())
def test_the_rows_of_a_naive_twin(pairs, capacity, has_catalogue, data):
    rows = data.draw(st.permutations(list(pairs.items())))
    users, items = [f"u{user}" for (user, _), _ in rows], [item for (_, item), _ in rows]
    table = pa.table({"user": users, "item": items, "score": [score for _, score in rows]})
    order = [6, 2, 4, 0, 5, 1, 3, 99] if has_catalogue else list(dict.fromkeys(items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sorter, "BUFFER_BYTES", (1 << 20) // capacity)
        patch.setattr(files, "ROWS", 7)
        catalogue = order if has_catalogue else None
        found = read_candidates(table, catalogue=catalogue, memory=1 << 20)
    expected = {}
    for (user, item), score in rows:
        expected.setdefault(f"u{user}", []).append((item, float(np.float32(score))))
    for row in expected.values():
        row.sort(key=lambda pair: (-pair[1], order.index(pair[0])))
    assert as_dict(found) == expected
    assert list(as_dict(found)) == list(expected)  # users as they first appear
    assert found.item_ids.tolist() == order


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("as_file", [True, False])
def test_a_catalogue_numbers_the_items(tmp_path, ending, kind, as_file):
    catalogue = [kind(item) for item in (10, 20, 25, 30)]
    if as_file:
        ids = pa.table({"item_id": catalogue, "price": [1, 2, 3, 4]})
        source = write(ids, tmp_path / "items.parquet")
    else:
        source = catalogue
    found = read_candidates(write(TABLE, tmp_path / f"c.{ending}"), catalogue=source)
    assert found.item_ids.tolist() == catalogue
    assert found.n_items == 4
    # Equal scores stand in the order of the catalogue now.
    assert found.block(0, 1).items.tolist() == [1, 0, 3]


def test_items_that_a_catalogue_does_not_have(tmp_path):
    with refused(r"not in the catalogue: 2 items of .*c\.csv, such as '30'"):
        read_candidates(write(TABLE, tmp_path / "c.csv"), catalogue=["20"])
    with refused("not in the catalogue: 1 item of the frame, such as 30"):
        read_candidates(TABLE, catalogue=[10, 20])
    with refused("the catalogue is empty"):
        read_candidates(TABLE, catalogue=[])


@pytest.fixture(params=["in memory", "on disk"])
def candidates(request):
    if request.param == "on disk":
        request.getfixturevalue("little_memory")
    with read_candidates(TABLE, memory=1 << 20) as found:
        assert (found.nbytes_on_disk > 0) == (request.param == "on disk")
        yield found


def test_blocks_of_users(candidates):
    indptr, items, scores = candidates.block(1, 3)
    assert indptr.tolist() == [0, 2, 3]
    assert candidates.item_ids[items].tolist() == [20, 10, 30]
    assert scores.tolist() == [7, -1, 2]
    assert (items.dtype, scores.dtype) == (np.int32, np.float32)
    assert candidates.block(1, 1).indptr.tolist() == [0]


@pytest.mark.parametrize("users", [[0, 1, 2], [2, 0], [1, 1], [2, 1, 0], [1, 2, 0, 1, 2], []])
def test_any_users(candidates, users):
    indptr, items, scores = candidates.take(np.array(users, dtype=np.int64))
    blocks = [candidates.block(user, user + 1) for user in users]
    assert items.tolist() == [item for block in blocks for item in block.items]
    assert scores.tolist() == [score for block in blocks for score in block.scores]
    assert np.diff(indptr).tolist() == [len(block.items) for block in blocks]


def test_closed_candidates(candidates):
    candidates.close()
    with refused("the candidates are closed"):
        candidates.block(0, 1)
    with refused("the candidates are closed"):
        candidates.take(np.array([0]))


def scratch_files(folder):
    """Count the open files of a folder that have no name any more, as scratch files have none.

    Files elsewhere do not count: what an earlier test left to the garbage collector may go at any
    moment.
    """
    links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
    found = 0
    for link in links:
        with suppress(OSError):
            target = str(link.readlink())
            found += target.startswith(f"{folder}/") and target.endswith(" (deleted)")
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")  # noqa: PTH112
def test_scratch_files_go_with_their_candidates(little_memory, tmp_path):
    candidates = read_candidates(TABLE, memory=little_memory, folder=tmp_path)
    assert scratch_files(tmp_path) == 2
    del candidates
    gc.collect()
    assert scratch_files(tmp_path) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")  # noqa: PTH112
def test_a_full_disk_leaves_nothing(little_memory, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "pwrite", full)
    with refused(f"cannot write '{tmp_path}': No space left on device") as caught:
        read_candidates(TABLE, memory=little_memory, folder=tmp_path)
    assert "free some space" in caught.value.hint
    assert scratch_files(tmp_path) == 0
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(little_memory, tmp_path):
    with refused("cannot write .*missing': No such file or directory"):
        read_candidates(TABLE, memory=little_memory, folder=tmp_path / "missing")


@pytest.mark.parametrize("memory", [0, 1 << 19, 1e9, True, "1 GiB"])
def test_memory_is_a_number_of_bytes(memory):
    with pytest.raises(ConfigError, match="memory must be a whole number of bytes, at least 1 MiB"):
        read_candidates(TABLE, memory=memory)


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ([1.0, float("nan")], "nan"),
        ([1.0, float("inf")], "inf"),
        ([1.0, -float("inf")], "-inf"),
        ([1.0, 1e39], "1e\\+39"),
        ([1.0, None], "null"),
    ],
)
def test_scores_that_are_no_numbers(scores, shown):
    table = pa.table({"user": [1, 2], "item": [1, 2], "score": scores})
    with refused(f"the frame, column 'score', row 2: a score must be a finite .*, got: {shown}"):
        read_candidates(table)


def test_scores_that_are_text(tmp_path):
    table = pa.table({"user": [1, 2], "item": [1, 2], "score": ["1.5", "high"]})
    with refused("column 'score': a score must be a finite number .*, got type: string"):
        read_candidates(table)
    with refused(r"c\.csv, column 'score', row 2: a score must be .*, got: 'high'"):
        read_candidates(write(table, tmp_path / "c.csv"))


@pytest.mark.parametrize("name", ["user_id", "item_id"])
def test_ids_that_are_null(name):
    column = pa.array([None, *TABLE[name].to_pylist()[1:]], TABLE[name].type)
    with refused(f"column '{name}', row 1: an id is an integer or a string, got: null"):
        read_candidates(TABLE.set_column(TABLE.column_names.index(name), name, column))


def test_missing_columns():
    with refused("column not found in the frame: 'score'"):
        read_candidates(TABLE.rename_columns(["user_id", "item_id", "points"]))
    with refused("no user column in the frame: a, item_id, score"):
        read_candidates(TABLE.rename_columns(["a", "item_id", "score"]))
    with refused("column not found in the frame: 'scores'"):
        read_candidates(TABLE, score="scores")
    with pytest.raises(ConfigError, match="score must be the name of a column, in text: 3"):
        read_candidates(TABLE, score=3)


def test_empty_files(tmp_path):
    (tmp_path / "c.csv").write_text("user_id,item_id,score\n")
    with refused(r"no rows in .*c\.csv"):
        read_candidates(tmp_path / "c.csv")
    (tmp_path / "c.parquet").touch()
    with refused("the file is empty"):
        read_candidates(tmp_path / "c.parquet")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"user_id,item_id,score\n"))
    with refused(r"no rows in .*c\.csv\.gz"):
        read_candidates(tmp_path / "c.csv.gz")


@pytest.mark.parametrize("repeats", [1, 2])
def test_pairs_that_stand_twice(little_memory, repeats):
    table = pa.concat_tables([TABLE, *[TABLE[1:2]] * repeats])
    for memory in (little_memory, 1 << 30):
        with refused(rf"user 'v' has item 10 twice \({repeats} such rows\)"):
            read_candidates(table, memory=memory)


def test_progress_counts_the_parts(tmp_path, capsys):
    for number in range(3):
        write(TABLE[2 * number : 2 * number + 2], tmp_path / f"part-{number}.csv")
    read_candidates(tmp_path, show_progress=True)
    assert "3/3" in capsys.readouterr().err


def test_categories_are_ids():
    frame = pd.DataFrame(TABLE.to_pandas()).astype({"user_id": "category"})
    assert as_dict(read_candidates(frame)) == EXPECTED
