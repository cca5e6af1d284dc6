"""Names of columns on the command line."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lists = {"member": [1, 1, 2, 2], "sku": ["a", "b", "a", "c"], "position": [1, 2, 1, 2]}
    pq.write_table(pa.table(lists), "lists.parquet")
    pq.write_table(pa.table(lists | {"points": [4.0, 3.0, 2.0, 1.0]}), "scores.parquet")
    items = {"sku": ["a", "b", "c", "d"], "shop": ["x", "y", None, "y"], "label": list("ABCD")}
    pq.write_table(pa.table(items), "items.parquet")
    other = {"item": ["a", "b", "c", "d"], "studio": ["x", "y", "x", "y"]}
    pq.write_table(pa.table(other), "other.parquet")


def test_audit_with_names_for_all_tables(tables, limelight):
    ended = limelight(
        *[
            "audit",
            "lists.parquet",
            "--user",
            "member",
            "--item",
            "sku",
            "--catalogue",
            "items.parquet",
        ],
        *["--groups", "items.parquet", "--group", "shop"],
    )
    assert ended.code == 0, ended.err
    assert "4 items" in ended.out
    assert "(no group)" in ended.out


def test_audit_with_names_for_one_table(tables, limelight):
    flags = "audit lists.parquet --user member --item sku --groups other.parquet"
    ended = limelight(*flags.split(), "--groups-group", "studio")
    assert ended.code == 0, ended.err
    ended = limelight(*flags.split(), "--group", "shop")
    assert ended.code == 1
    assert "column not found in other.parquet: 'shop'" in ended.err


def test_rerank_with_names(tables, limelight):
    names = "--user member --item sku --score points --of items.parquet --of-group shop"
    flags = "rerank scores.parquet --max-relevance-loss 50% -k 1 -o out.parquet"
    ended = limelight(*flags.split(), *names.split())
    assert ended.code == 0, ended.err
    ended = limelight(*flags.split())
    assert ended.code == 1
    assert "name it with --score '...'" in ended.err


def test_a_column_of_ratings_is_mentioned(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    table = {"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1, 5, 4]}
    pq.write_table(pa.table(table), "ratings.parquet")
    from limelight.cli.flags.reading import Reading

    Reading().table(tmp_path / "ratings.parquet")
    assert "--rating rating --min-rating 4" in capfd.readouterr().err
    Reading(rating="rating").table(tmp_path / "ratings.parquet")
    assert "--min-rating" not in capfd.readouterr().err


def test_a_file_without_a_header(tmp_path, monkeypatch, limelight):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.dat").write_text("1::10::5::978300760\n2::10::4::978300761\n")
    ended = limelight("data", "describe", "ratings.dat")
    assert ended.code == 1
    assert "--columns 'user,item,rating,timestamp'" in ended.err
    ended = limelight("data", "describe", "ratings.dat", "--columns", "user,item,rating,timestamp")
    assert ended.code == 0, ended.err


def test_names_are_for_one_machine(tables, limelight):
    ended = limelight(
        *[
            "rerank",
            "scores.parquet",
            "--user",
            "member",
            "--gini",
            "0.5",
            "--executor",
            "ray",
            "-o",
            "out",
        ]
    )
    assert ended.code != 0
    assert "it does not take: --user" in ended.err
