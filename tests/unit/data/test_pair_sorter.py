"""Pairs in any order become the rows of a naive twin, however little memory there is."""

import errno
import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from limelight._base import arrays
from limelight._base.errors import DataError
from limelight.data.candidates import sorter as pair_sorter
from limelight.data.candidates import storage as pair_rows
from limelight.data.candidates.keys import decode, encode
from limelight.data.candidates.sorter import PairSorter
from limelight.data.candidates.storage import ScratchArray
from limelight.data.rows import Repeat

SCORES = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0])


def sort(users, items, scores, *, capacity, batch=5, memory=None):
    """Sort pairs with room for a few of them, which arrive in batches."""
    sorter = PairSorter(memory=capacity * pair_sorter.BUFFER_BYTES if memory is None else memory)
    for start in range(0, len(users), batch):
        sorter.add(*(column[start : start + batch] for column in (users, items, scores)))
    return sorter, *sorter.finish()


def naive(users, items, scores):
    """Return each user's items and scores, the highest first, ties by item."""
    rows = {}
    for user, item, score in zip(users.tolist(), items.tolist(), scores.tolist(), strict=True):
        rows.setdefault(user, []).append((-score, item))
    return [sorted(rows[user]) for user in range(len(rows))]


def as_lists(indptr, rows):
    items, scores = rows.read(0, int(indptr[-1]))
    bounds = pairwise(indptr)
    return [list(zip((-scores[a:b]).tolist(), items[a:b].tolist(), strict=True)) for a, b in bounds]


@st.composite
def tables(draw):
    """Distinct pairs; users are numbered as they first appear."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, unique=True))
    if draw(st.booleans()):
        pairs.sort()
    numbers = {}
    users = [numbers.setdefault(user, len(numbers)) for user, _ in pairs]
    scores = draw(st.lists(SCORES, min_size=len(pairs), max_size=len(pairs)))
    return (
        np.array(users, dtype=np.int32),
        np.array([item for _, item in pairs], dtype=np.int32),
        np.array(scores, dtype=np.float32),
    )


@given(tables(), st.integers(2, 40), st.booleans())
@examples(300)
def test_rows_of_a_naive_twin(table, capacity, in_memory):
    memory = None if in_memory else 8  # too little for the result
    sorter, indptr, rows = sort(*table, capacity=capacity, memory=memory)
    assert as_lists(indptr, rows) == naive(*table)
    assert rows.repeats is None
    sorter.close()


def grouped(n_users, n_each):
    generator = np.random.default_rng(0)
    users = np.repeat(np.arange(n_users, dtype=np.int32), n_each)
    items = np.concatenate([generator.permutation(50)[:n_each] for _ in range(n_users)])
    scores = generator.integers(0, 9, len(users)).astype(np.float32)
    return users, items.astype(np.int32), scores


@pytest.fixture
def runs(monkeypatch):
    """Count the runs that are written."""
    written = []
    write = pair_sorter._Run.write
    monkeypatch.setattr(
        pair_sorter._Run,
        "write",
        lambda run, users, keys: (written.append(len(users)), write(run, users, keys)),
    )
    return written


@pytest.mark.parametrize("batch", [3, 17, 1000])
def test_grouped_pairs_are_written_once(runs, batch):
    table = grouped(40, 7)
    _, indptr, rows = sort(*table, capacity=50, batch=batch)
    assert as_lists(indptr, rows) == naive(*table)
    assert rows.nbytes_on_disk == 40 * 7 * 8
    assert rows.nbytes == 0
    assert not runs
    rows.close()


def test_a_user_who_comes_back_late(runs):
    users, items, scores = grouped(40, 7)
    table = (
        np.append(users, users[:1]),
        np.append(items, np.int32(50)),
        np.append(scores, scores[:1]),
    )
    _, indptr, rows = sort(*table, capacity=50)
    assert as_lists(indptr, rows) == naive(*table)
    assert len(runs) == 1
    rows.close()


def test_a_user_with_more_pairs_than_the_buffer_has_room_for():
    table = grouped(3, 40)
    _, indptr, rows = sort(*table, capacity=10)
    assert as_lists(indptr, rows) == naive(*table)
    rows.close()


@pytest.mark.parametrize("chunk", [1, 64])
def test_chunks_of_any_size(monkeypatch, chunk):
    monkeypatch.setattr(pair_rows, "_CHUNK", chunk)
    monkeypatch.setattr(pair_sorter, "_PIECE", chunk)
    monkeypatch.setattr(arrays, "BLOCK_ROWS", chunk)
    users, items, scores = grouped(30, 9)
    order = np.random.default_rng(1).permutation(len(users))
    order = np.concatenate([np.sort(order[:100]), order[100:]])
    numbers = np.empty(30, dtype=np.int32)
    numbers[list(dict.fromkeys(users[order].tolist()))] = np.arange(30)
    table = numbers[users[order]], items[order], scores[order]
    for capacity in (20, 1000):
        sorter, indptr, rows = sort(*table, capacity=capacity)
        assert as_lists(indptr, rows) == naive(*table)
        sorter.close()


def test_what_fits_in_the_end_is_moved_to_memory():
    table = grouped(40, 7)
    _, indptr, rows = sort(*table, capacity=70)
    assert indptr[-1] == 280
    assert (rows.nbytes, rows.nbytes_on_disk) == (280 * 8, 0)
    assert as_lists(indptr, rows) == naive(*table)


@pytest.mark.parametrize("capacity", [4, 1000])
def test_repeats_are_counted(capacity):
    users = np.array([0, 1, 0, 2, 1, 0, 1], dtype=np.int32)
    items = np.array([5, 6, 7, 8, 6, 5, 6], dtype=np.int32)
    sorter, _, rows = sort(users, items, np.arange(7, dtype=np.float32), capacity=capacity)
    assert rows.repeats in {Repeat(0, 5, rows=3), Repeat(1, 6, rows=3)}
    sorter.close()


def test_a_run_gives_its_place_back():
    run = pair_sorter._Run(None)
    users = np.array([3, 0, 1, 3, 2], dtype=np.int32)
    run.write(users, users * np.int64(10))
    taken, keys = run.take(2)
    assert (taken.tolist(), keys.tolist()) == ([2, 3, 3], [20, 30, 30])
    assert len(run) == 2
    assert os.fstat(run._pairs._handle).st_size == 2 * 12
    run.close()


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), SCORES)))
def test_keys_sort_and_come_back(pairs):
    items = np.array([item for item, _ in pairs], dtype=np.int32)
    scores = np.array([score for _, score in pairs], dtype=np.float32)
    keys = np.sort(encode(items, scores))
    expected = sorted(zip((-scores).tolist(), items.tolist(), strict=True))
    found_items, found_scores = decode(keys)
    assert list(zip((-found_scores).tolist(), found_items.tolist(), strict=True)) == expected
    assert not np.signbit(found_scores[found_scores == 0]).any()


class FullDisk:
    """Writes some bytes, and then there is no space left."""

    def __init__(self, monkeypatch, n_bytes):
        self.left, self.write = n_bytes, os.pwrite
        monkeypatch.setattr(os, "pwrite", self)

    def __call__(self, handle, data, place):
        if not self.left:
            raise OSError(errno.ENOSPC, "")
        written = self.write(handle, data[: self.left], place)
        self.left -= written
        return written


def test_short_writes_and_reads_go_on(monkeypatch):
    array, values = ScratchArray(None, np.int32), np.arange(100, dtype=np.int32)
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda handle, data, place: write(handle, data[:7], place))
    monkeypatch.setattr(os, "preadv", lambda h, data, place: read(h, [data[0][:5]], place))
    array.write(0, values)
    out = np.empty(90, dtype=np.int32)
    array.read_into(10, out)
    assert (out == values[10:]).all()
    with pytest.raises(DataError, match=r"a scratch file in .* ends at byte 400"):
        array.read_into(11, out)
    array.close()


@pytest.mark.parametrize("n_bytes", [0, 1, 500])
def test_a_full_disk(monkeypatch, tmp_path, n_bytes):
    FullDisk(monkeypatch, n_bytes)
    sorter = PairSorter(memory=50 * pair_sorter.BUFFER_BYTES, folder=tmp_path)
    with pytest.raises(DataError, match=f"cannot write '{tmp_path}': No space left on device"):
        sorter.add(*grouped(400, 7))
    sorter.close()
    assert not list(tmp_path.iterdir())
