"""The audit: numbers by hand, every kind of source, and a message for every mistake."""

import gzip
import json
import re
from math import log2

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.executors import Elsewhere

from limelight._base.errors import ConfigError, DataError
from limelight.audit.audit import audit
from limelight.audit.parts import NO_CATALOGUE
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.exposure import gini
from limelight.metrics.rarefaction import gini_at

LISTS = pa.table(
    {
        "user_id": [1, 1, 1, 2, 2, 3],
        "item_id": ["a", "b", "c", "a", "d", "b"],
        "rank": [1, 2, 3, 1, 2, 1],
        "score": [0.9, 0.8, 0.7, 0.9, 0.1, 0.4],
    }
)
CATALOGUE = ["a", "b", "c", "d", "e", "f"]
SECOND = 1 / log2(3)
EXPOSURE = [2, 1 + SECOND, 0.5, SECOND, 0, 0]


def lists_with(**columns):
    table = LISTS
    for name, values in columns.items():
        position = table.column_names.index(name)
        table = table.set_column(position, name, pa.array(values))
    return table


def test_numbers_by_hand():
    result = audit(LISTS, catalogue=CATALOGUE)
    assert (result.users, result.items, result.k) == (3, 6, 3)
    assert result.exposure == pytest.approx(EXPOSURE)
    assert result.item_ids.tolist() == CATALOGUE
    assert result.metrics["gini@3"] == pytest.approx(gini(EXPOSURE))
    assert result.metrics["gini_uniform@3"] == pytest.approx(gini([2, 2, 1, 1, 0, 0]))
    handed_out = [1, 1, 1, SECOND, SECOND, 0.5]
    assert result.metrics["gini_floor@3"] == pytest.approx(gini(handed_out))
    assert result.metrics["coverage@3"] == pytest.approx(4 / 6)
    assert result.metrics["top_share@3"] == pytest.approx(2 / sum(EXPOSURE))
    assert result.unexposed == 2
    assert [item.item_id for item in result.most_exposed] == ["a", "b", "d", "c"]
    assert [item.item_id for item in result.least_exposed][:3] == ["e", "f", "c"]
    assert (result.most_exposed[0].lists, result.least_exposed[0].lists) == (2, 0)
    assert result.notes == ()


def test_k_cuts_the_lists():
    result = audit(LISTS, k=1, catalogue=CATALOGUE)
    assert result.exposure.tolist() == [2, 1, 0, 0, 0, 0]
    assert set(result.metrics) == {
        f"{name}@1"
        for name in ("gini", "gini_uniform", "gini_floor", "coverage", "entropy", "top_share")
    }


def test_without_a_catalogue_the_result_says_so():
    result = audit(LISTS)
    assert not result.catalogue_given
    assert result.items == 4
    assert result.notes == (NO_CATALOGUE,)
    assert "Gini index is too low" in str(result)
    assert result.metrics["coverage@3"] == 1


def test_scores_rank_where_no_rank_is_given():
    ranked = audit(LISTS.drop_columns("score"), catalogue=CATALOGUE)
    scored = audit(LISTS.drop_columns("rank"), catalogue=CATALOGUE)
    assert scored == ranked
    ties = pa.table({"user_id": [1, 1, 1], "item_id": ["x", "y", "z"], "score": [1, 2, 1]})
    assert audit(ties).exposure == pytest.approx([SECOND, 1, 0.5])


def write_parquet(path):
    pq.write_table(LISTS, path / "lists.parquet")
    return path / "lists.parquet"


def write_csv(path):
    pa.csv.write_csv(LISTS, path / "lists.csv")
    return str(path / "lists.csv")


def write_tsv_gz(path):
    text = LISTS.to_pandas().to_csv(sep="\t", index=False)
    (path / "lists.tsv.gz").write_bytes(gzip.compress(text.encode()))
    return path / "lists.tsv.gz"


def write_parts(path):
    pq.write_table(LISTS[:2], path / "part-0.parquet")
    pq.write_table(LISTS[2:], path / "part-1.parquet")
    (path / "_SUCCESS").touch()
    return path


@pytest.mark.parametrize(
    "source",
    [
        write_parquet,
        write_csv,
        write_tsv_gz,
        write_parts,
        lambda _: LISTS.to_pandas(),
        lambda _: pl.from_arrow(LISTS),
        lambda _: pl.from_arrow(LISTS).with_columns(pl.col("item_id").cast(pl.Categorical)),
        lambda _: LISTS,
    ],
    ids=["parquet", "csv", "tsv.gz", "folder", "pandas", "polars", "categories", "arrow"],
)
def test_every_kind_of_source_gives_the_same_audit(source, tmp_path):
    assert audit(source(tmp_path), catalogue=CATALOGUE) == audit(LISTS, catalogue=CATALOGUE)


@pytest.mark.parametrize(
    "catalogue",
    [
        tuple(CATALOGUE),
        np.array(CATALOGUE),
        np.array(CATALOGUE, dtype=object),
        pd.Series(CATALOGUE),
        pl.Series(CATALOGUE),
        pd.DataFrame({"item_id": CATALOGUE, "price": 1.5}),
    ],
    ids=["tuple", "text", "objects", "pandas", "polars", "frame"],
)
def test_every_kind_of_catalogue(catalogue):
    assert audit(LISTS, catalogue=catalogue) == audit(LISTS, catalogue=CATALOGUE)


def test_integers_in_one_file_meet_text_in_another(tmp_path):
    lists = lists_with(item_id=["7", "8", "9", "7", "10", "8"])
    file = tmp_path / "items.csv"
    file.write_text("item_id\n7\n8\n9\n10\n11\n")
    assert audit(lists, catalogue=file).unexposed == 1


def test_leading_zeros_make_another_item(tmp_path):
    file = tmp_path / "lists.csv"
    file.write_text("user_id,item_id,rank\n1,007,1\n1,7,2\n")
    assert [item.item_id for item in audit(file).most_exposed] == ["007", "7"]
    file.write_text("user_id,item_id,rank\n1,70,1\n1,7,2\n")
    assert [item.item_id for item in audit(file).most_exposed] == [70, 7]


def test_repeated_catalogue_rows_count_once():
    result = audit(LISTS, catalogue=[*CATALOGUE, "a"])
    assert result.items == 6
    assert result.notes == ("Repeated rows of the catalogue, counted once: 1.",)


def test_groups_by_hand():
    groups = pa.table(
        {
            "item_id": ["a", "b", "b", "c", "e", "zzz"],
            "group": ["x", "x", "y", "y", "y", "y"],
            "weight": [5.0, 1.0, 3.0, 1.0, 1.0, 1.0],
        }
    )
    result = audit(LISTS, catalogue=CATALOGUE, groups=groups)
    total = sum(EXPOSURE)
    shares = {group.group: group for group in result.groups}
    assert [group.group for group in result.groups] == ["x", "y"]
    assert shares["x"].exposure_share == pytest.approx((2 + 0.25 * (1 + SECOND)) / total)
    assert shares["x"].catalogue_share == pytest.approx(1.25 / 6)
    assert shares["y"].exposure_share == pytest.approx((0.75 * (1 + SECOND) + 0.5) / total)
    assert shares["y"].ratio == pytest.approx(
        shares["y"].exposure_share / shares["y"].catalogue_share
    )
    assert result.ungrouped.exposure_share == pytest.approx(SECOND / total)
    assert result.ungrouped.catalogue_share == pytest.approx(2 / 6)
    assert result.notes == ("Group rows of items outside the catalogue, ignored: 1.",)
    assert re.search(r"\(no group\) +13.25 % +33.33 % +0.40", str(result))


def test_groups_without_weight_share_an_item_equally():
    groups = pa.table({"item_id": [*CATALOGUE, "a"], "group": [1, 1, 1, 2, 2, 2, 2]})
    result = audit(LISTS, catalogue=CATALOGUE, groups=groups)
    assert sum(group.exposure_share for group in result.groups) == pytest.approx(1)
    assert {group.group: group.catalogue_share for group in result.groups} == {
        1: pytest.approx(2.5 / 6),
        2: pytest.approx(3.5 / 6),
    }
    assert result.ungrouped.exposure_share == 0
    assert "(no group)" not in str(result)


def test_json():
    groups = pa.table({"item_id": CATALOGUE, "group": list("xxyyzz")})
    result = audit(LISTS, catalogue=CATALOGUE, groups=groups).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["gini@3"] == pytest.approx(gini(EXPOSURE))
    assert list(result["groups"][0]) == [
        *("group", "exposure_share", "catalogue_share", "ratio", "share_low", "share_high"),
        *("reach", "reach_low", "reach_high", "impact_ratio", "selection_rate", "selection_ratio"),
    ]
    assert "exposure" not in result


def test_report_with_many_groups():
    lists = pa.table({"user_id": np.zeros(30, int), "item_id": range(30), "rank": range(1, 31)})
    groups = pa.table(
        {"item_id": range(30), "group": [f"studio {i}" for i in range(29)] + ["last"]}
    )
    text = str(audit(lists, groups=groups, top=0))
    assert "(10 smaller groups left out)" in text
    assert "studio 0" in text
    assert "Most exposed" not in text


@examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_audit_agrees_with_the_accumulator(seed, k):
    generator = np.random.default_rng(seed)
    ids = np.stack([generator.permutation(15)[:6] for _ in range(8)])
    table = pa.table(
        {
            "user_id": np.repeat(np.arange(8), 6),
            "item_id": ids.ravel(),
            "rank": np.tile(np.arange(1, 7), 8),
        }
    )
    shuffled = table.take(generator.permutation(len(table)))
    accumulator = ListAccumulator(15, k)
    accumulator.update(ids)
    expected = accumulator.result()
    for key, value in audit(shuffled, k=k, catalogue=range(15)).metrics.items():
        assert value == pytest.approx(expected[key], rel=1e-12)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            lists_with(rank=[1, 2, 0, 1, 2, 1]),
            "row 3: a rank must be .* 1 to .*, got: 0",
        ),
        (lists_with(rank=[1, 2, -4, 1, 2, 1]), "row 3: a rank must be .*, got: -4"),
        (lists_with(rank=[1, 2, None, 1, 2, None]), "row 3: a rank must be .*, got: null"),
        (lists_with(rank=[1, 2, np.nan, 1, 2, 1]), "row 3: a rank must be .*, got: nan"),
        (lists_with(rank=[1, 2, 2.5, 1, 2, 1]), "row 3: a rank must be .*, got: 2.5"),
        (lists_with(rank=[1, 2, 1e12, 1, 2, 1]), "row 3: a rank must be .*, got: 1000000000000"),
        (lists_with(rank=list("abcdef")), "column 'rank': a rank must be .*, got type: string"),
        (lists_with(rank=[1, 2, 2, 1, 2, 1]), r"user 1 has rank 2 twice \(1 such rows\)"),
        (lists_with(item_id=list("abaadb")), "user 1 has item 'a' twice"),
        (lists_with(item_id=["a", "b", None, "a", "d", "b"]), "'item_id', row 3: an id is .* null"),
        (
            lists_with(user_id=[1.5] * 6),
            "row 1: an id that is .* whole, got: 1.5",
        ),
        (LISTS.drop_columns(["rank", "score"]), "neither 'rank' nor 'score' in the frame"),
        (LISTS.drop_columns("user_id"), "column not found in the frame: 'user_id'"),
        (LISTS[:0], "no rows in the frame"),
        (
            lists_with(score=[1, np.nan, 1, 1, 1, 1]).drop_columns("rank"),
            "the frame, column 'score', row 2: a score must be a number, got: nan",
        ),
    ],
)
def test_lists_that_cannot_be_a_ranking(lists, message):
    with pytest.raises(DataError, match=message):
        audit(lists)


def test_a_name_that_is_nearly_right():
    with pytest.raises(DataError, match="did you mean 'item_idx'") as error:
        audit(LISTS.rename_columns(["user_id", "item_idx", "rank", "score"]))
    assert error.value.message == "column not found in the frame: 'item_id'"


def test_items_outside_the_catalogue():
    message = r"items of the lists are not in the catalogue: 2, e\.g\. 'c'"
    with pytest.raises(DataError, match=message):
        audit(LISTS, catalogue=["a", "b"])


def test_empty_catalogue():
    with pytest.raises(DataError, match="the catalogue is empty"):
        audit(LISTS, catalogue=[])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"item_id": ["a"], "group": [None]}, "no row of the frame names a group: column 'group'"),
        ({"item_id": ["a", "a"], "group": ["x", "x"]}, "item 'a' is in group 'x' twice"),
        ({"item_id": ["q"], "group": ["x"]}, "no item of the frame is in the catalogue, e.g. 'q'"),
        (
            {"item_id": ["a"], "group": ["x"], "weight": [-1.0]},
            "row 1: a weight .* 0, got: -1",
        ),
        ({"item_id": ["a"], "group": ["x"], "weight": [np.inf]}, "row 1: a weight .* 0, got: inf"),
        ({"item_id": ["a"], "kind": ["x"]}, "column not found in the frame: 'group'"),
    ],
)
def test_groups_that_cannot_be_used(groups, message):
    table = pa.table(
        {n: pa.array(v, pa.string() if n == "group" else None) for n, v in groups.items()}
    )
    with pytest.raises(DataError, match=message):
        audit(LISTS, groups=table)


@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_parts_with_and_without_weights(tmp_path, name):
    for part in ("a.csv", "b.csv"):
        rows = "item_id,group\na,x\n" if part == name else "item_id,group,weight\nb,x,2\n"
        (tmp_path / part).write_text(rows)
    with pytest.raises(DataError, match=f"column not found in .*{name}: 'weight'"):
        audit(LISTS, groups=tmp_path)


def test_no_rank_within_k():
    with pytest.raises(DataError, match="no item at rank 2 or better: the best rank is 3"):
        audit(lists_with(rank=[3, 4, 5, 3, 4, 3]), k=2)


def test_wrong_settings():
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got 0"):
        audit(LISTS, k=0)
    with pytest.raises(ConfigError, match="top must be 0 or more, got -1"):
        audit(LISTS, top=-1)


def test_the_gini_of_another_number_of_users():
    result = audit(LISTS, catalogue=CATALOGUE, at_users=2)
    ids = [[0, 1, 2], [0, 3, -1], [1, -1, -1]]
    assert result.at_users == gini_at(ids, 2, n_items=6)
    assert result.notes == (f"{result.at_users}.",)
    assert f"Note: {result.at_users}." in str(result)
    assert json.loads(json.dumps(result.to_dict()))["at_users"]["users"] == 2
    plain = audit(LISTS, catalogue=CATALOGUE)
    assert plain.at_users is None
    assert "at_users" not in plain.to_dict()


def test_the_gini_of_another_number_needs_one_list_a_user():
    with pytest.raises(ConfigError, match="at_users must be a whole number of at least 1"):
        audit(LISTS, at_users=0)
    with pytest.raises(ConfigError, match="at_users is for lists of one time"):
        audit(LISTS, at_users=5, timestamp="shown_at")
    with pytest.raises(ConfigError, match="a parallel executor audits one list"):
        audit(LISTS, at_users=5, executor=Elsewhere())


def test_an_audit_reads_like_an_evaluation():
    lists = pa.table({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "rank": [1, 2, 1]})
    found = audit(lists, catalogue=["a", "b", "c"])
    assert found["gini@2"] == found.metrics["gini@2"]
    assert "coverage@2" in found
    assert "ndcg@2" not in found
    assert list(found)[:2] == ["users", "items"]
    assert len(found) == len(found.keys()) == 2 + len(found.metrics) + len(found.bounds)
    assert dict(found)["gini@2_low"] == found.bounds["gini@2_low"]
    with pytest.raises(KeyError, match="gini@3"):
        found["gini@3"]
