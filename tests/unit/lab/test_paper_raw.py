"""Raw files as they are published, through the filters and the split that the paper has."""

import bz2
import gzip
from dataclasses import replace

import numpy as np
import pytest
from tests.support.published_script import keep_common, published

from limelight._base.errors import DataError
from limelight.data.read import read
from limelight.lab.paper.experiments import EXPERIMENTS, DataSize, prepare, size_of
from limelight.lab.paper.raw import RawLayout, as_published

SEED = 98765
HELD_OUT = 20


def pairs(n_users, n_items, n_pairs, seed=0):
    """Distinct pairs in an order of their own, some users and items with many more than others."""
    generator = np.random.default_rng(seed)
    users, items = (
        (n * generator.random(4 * n_pairs) ** power).astype(int)
        for n, power in ((n_users, 1.4), (n_items, 1.8))
    )
    return list(dict.fromkeys(zip(users.tolist(), items.tolist(), strict=True)))[:n_pairs]


def same_as_the_script(name, file, rows):
    """Check that a file becomes the training users, histories and targets of the script."""
    tables, item_ids = published(rows, HELD_OUT, HELD_OUT, SEED)
    size = DataSize(len({row[0] for row in rows}), len(item_ids), sum(map(len, tables)))
    experiment = replace(EXPERIMENTS[name], held_out=HELD_OUT, size=size)
    split = prepare(experiment, file, {})
    assert size_of(split) == size
    assert split.train.item_ids.tolist() == item_ids
    matrices = [
        split.train.matrix,
        *(getattr(part, side) for part in (split.validation, split.test) for side in SIDES),
    ]
    n_train = split.train.n_users
    firsts = [0, n_train, n_train, n_train + HELD_OUT, n_train + HELD_OUT]
    for matrix, first, table in zip(matrices, firsts, tables, strict=True):
        found = matrix.tocoo()
        users = (found.row + first).tolist()
        assert set(zip(users, found.col.tolist(), strict=True)) == set(table)


SIDES = ("history", "targets")


def test_movielens_has_a_header_and_half_stars(tmp_path):
    rated = [(u + 1, 3 * i + 1) for u, i in pairs(300, 120, 3000)]
    stars = np.random.default_rng(1).choice([0.5, 3.0, 3.5, 4.0, 4.5, 5.0], len(rated))
    lines = [f"{u},{i},{s},1112486027" for (u, i), s in zip(rated, stars, strict=True)]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["userId,movieId,rating,timestamp", *lines]) + "\n")
    liked = [row for row, s in zip(rated, stars, strict=True) if s > 3.5]
    kept = keep_common(liked, users=5, order="together")
    assert 4 in np.bincount([u for u, _ in liked])
    assert 5 in np.bincount([u for u, _ in kept])
    same_as_the_script("ml-20m", file, kept)


def msd_rows():
    """Songs and users of which some are on either side of the thresholds, and of their order."""
    rows = pairs(700, 90, 26_000, seed=2)
    rare = [(u, 90 + i) for i in range(3) for u in range(199)]  # 199 users a song
    just = [(u, 93) for u in range(200)]  # 200 of them
    few = [(800, i) for i in range(19)] + [(801, i) for i in range(20)]
    odd = [(802, i) for i in [*range(10), *range(94, 104)]]  # 20 songs, 10 of them rare
    names = [(f"u{u:04}", f"SO{i:03}") for u, i in dict.fromkeys(rows + rare + just + few + odd)]
    return [names[n] for n in np.random.default_rng(3).permutation(len(names))]


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_the_taste_profile_is_songs_first(tmp_path, ending):
    rows = msd_rows()
    text = "".join(f"{u}\t{i}\t{n % 7 + 1}\n" for n, (u, i) in enumerate(rows))
    file = tmp_path / f"train_triplets.{ending}"
    file.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    kept = keep_common(rows, users=20, items=200, order="items-first")
    same_as_the_script("msd", file, kept)


def test_those_songs_tell_every_filter_apart():
    """Neither the order of the filters nor a threshold can change without another outcome."""
    rows = msd_rows()
    kept = keep_common(rows, users=20, items=200, order="items-first")
    others = [
        keep_common(rows, users=20, items=200, order="together"),
        keep_common(rows, users=20, items=200, order="users-first"),
        *(
            keep_common(rows, users=users, items=items, order="items-first")
            for users, items in ((19, 200), (21, 200), (20, 199), (20, 201))
        ),
    ]
    assert all(set(other) != set(kept) for other in others)


def epinions_rows():
    rows = pairs(400, 300, 20_000, seed=4)
    ratings = np.random.default_rng(5).integers(1, 6, len(rows))
    return rows, ratings


@pytest.mark.parametrize("trailing", [" \n", "\n", "\r\n"])
def test_epinions_comes_out_of_an_archive(tmp_path, trailing):
    rows, ratings = epinions_rows()
    text = "".join(f"{u} {i} {r}{trailing}" for (u, i), r in zip(rows, ratings, strict=True))
    header = b"ratings_data.txt".ljust(100, b"\0") + b"0000644\0 user\0"
    file = tmp_path / "ratings_data.txt.bz2"
    file.write_bytes(bz2.compress(header + text.encode() + b"\0" * 700))
    liked = [row for row, r in zip(rows, ratings, strict=True) if r >= 4]
    kept = keep_common(liked, users=20, items=20, order="together")
    assert set(kept) != set(keep_common(liked, users=20, items=20, order="items-first"))
    same_as_the_script("epinions", file, kept)


def test_a_table_with_names_is_read_by_them(tmp_path):
    rows, ratings = epinions_rows()
    lines = [f"{r},{i},{u}" for (u, i), r in zip(rows, ratings, strict=True)]
    file = tmp_path / "table.csv"
    file.write_text("\n".join(["rating,item,user", *lines]))
    liked = [row for row, r in zip(rows, ratings, strict=True) if r >= 4]
    same_as_the_script("epinions", file, keep_common(liked, users=20, items=20, order="together"))


def test_ids_of_a_raw_file_are_numbers_where_they_are_written_so(tmp_path):
    file = tmp_path / "ratings_data.txt"
    file.write_bytes(b"ratings\0\0" + b"10 7 5\n9 7 4\n")
    data = read(as_published(file, EXPERIMENTS["epinions"].raw), rating="rating")
    assert data.user_ids.tolist() == [9, 10]


@pytest.mark.parametrize("line", ["3 4", "3 4 x", "3 4 5 6", "-3 4 5"])
def test_a_row_that_is_none(tmp_path, line):
    file = tmp_path / "ratings_data.txt"
    file.write_text(f"1 2 3\n{line}\n")
    with pytest.raises(DataError, match=f"is not user, item, rating: '{line}'"):
        as_published(file, EXPERIMENTS["epinions"].raw)


def test_other_sources_stay_as_they_are(tmp_path):
    layout, frame = RawLayout(("user", "item", "count"), "\t"), {"user": [1], "item": [2]}
    assert as_published(frame, layout) is frame
    assert as_published(tmp_path, layout) is tmp_path
    assert as_published("nothing.txt", None) == "nothing.txt"
