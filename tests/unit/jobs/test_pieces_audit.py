"""An audit of a folder in pieces is that of one machine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError

N_ITEMS = 30


def lists(users, seed=0, k=6):
    draw = np.random.default_rng(seed)
    popular = 1 / np.arange(1, N_ITEMS + 1)
    rows = []
    for user in users:
        length = int(draw.integers(1, k + 1))
        shown = draw.choice(N_ITEMS, length, replace=False, p=popular / popular.sum())
        rows += [(user, f"i{item}", rank + 1) for rank, item in enumerate(shown)]
    return pa.table(dict(zip(("user_id", "item_id", "rank"), zip(*rows, strict=True), strict=True)))


@pytest.fixture(params=["ordered", "mixed", "text"])
def folder(request, tmp_path):
    users = np.arange(200)
    if request.param == "mixed":
        users = np.random.default_rng(1).permutation(users)
    names = [f"u{user}" for user in users] if request.param == "text" else users.tolist()
    for number, part in enumerate(np.array_split(np.arange(200), 7)):
        table = lists([names[at] for at in part], seed=number)
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    return tmp_path


def same(found, wanted):
    ours, theirs = found.to_dict(), wanted.to_dict()
    for name in wanted.bounds:
        assert ours.pop(name) == pytest.approx(theirs.pop(name), rel=1e-10)
    # Pieces add up the same sums in another order.
    for mine, other in zip(ours.pop("groups"), theirs.pop("groups"), strict=True):
        assert mine == pytest.approx(other, rel=1e-10)
    assert ours == theirs
    np.testing.assert_array_equal(found.exposure, wanted.exposure)
    assert found.item_ids.tolist() == wanted.item_ids.tolist()


def test_every_figure(pieces, folder):
    same(ll.audit(folder, executor=pieces), ll.audit(folder))


def test_with_a_catalogue_groups_merit_and_k(pieces, folder):
    catalogue = [f"i{item}" for item in range(N_ITEMS + 5)]
    given = {
        "k": 4,
        "catalogue": catalogue,
        "top": 3,
        "groups": pa.table({"item_id": catalogue, "group": [i % 4 for i in range(len(catalogue))]}),
        "merit": pa.table({"user_id": range(300), "item_id": [f"i{u % 25}" for u in range(300)]}),
    }
    same(ll.audit(folder, **given, executor=pieces), ll.audit(folder, **given))


def test_one_file_is_one_piece(pieces, tmp_path):
    pq.write_table(lists(range(9)), tmp_path / "lists.parquet")
    same(
        ll.audit(tmp_path / "lists.parquet", executor=pieces), ll.audit(tmp_path / "lists.parquet")
    )


def test_one_user_has_no_interval(pieces, tmp_path):
    pq.write_table(lists([1]), tmp_path / "lists.parquet")
    assert ll.audit(tmp_path / "lists.parquet", executor=pieces).bounds == {}


def test_a_file_without_a_row_within_k(pieces, tmp_path):
    pq.write_table(lists(range(9)), tmp_path / "a.parquet")
    late = pa.table({"user_id": [100], "item_id": ["i0"], "rank": [6]})
    pq.write_table(late, tmp_path / "b.parquet")
    same(ll.audit(tmp_path, k=3, executor=pieces), ll.audit(tmp_path, k=3))


def test_a_user_in_two_files_is_refused(pieces, tmp_path):
    for name, rank in (("a", 1), ("b", 2)):
        table = pa.table({"user_id": [7], "item_id": [f"i{rank}"], "rank": [rank]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="more than one file: 1 of them"):
        ll.audit(tmp_path, executor=pieces)


def test_a_k_beyond_all_lists_is_refused(pieces, tmp_path):
    pq.write_table(lists(range(9)), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match="k is larger than the lists are long: 9 > 6"):
        ll.audit(tmp_path, k=9, executor=pieces)


def test_files_with_and_without_ranks_are_refused(pieces, tmp_path):
    pq.write_table(lists(range(9)), tmp_path / "a.parquet")
    scored = pa.table({"user_id": [70], "item_id": ["i0"], "score": [0.5]})
    pq.write_table(scored, tmp_path / "b.parquet")
    with pytest.raises(DataError, match="rank"):
        ll.audit(tmp_path, executor=pieces)


def test_what_files_one_by_one_do_not_tell_is_refused(pieces, folder):
    with pytest.raises(ConfigError, match="one list for each user"):
        ll.audit(folder, against=folder, executor=pieces)
    with pytest.raises(ConfigError, match="reads files, not a Table"):
        ll.audit(lists([1]), executor=pieces)
