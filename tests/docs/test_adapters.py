"""The code of docs/guide/adapters.md, run with the libraries that are installed."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from tests.support.places import ROOT

import limelight as ll
from limelight.data import read_candidates
from limelight.recommend.ranking import CandidateRanking

PAGE = ROOT / "docs" / "guide" / "adapters.md"
LAST = "What to do with it"

# What other libraries warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")


def sections():
    """Return the code of the page by heading."""
    parts = re.split(r"^#+ (.+)\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    code = {}
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        code[heading] = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
    return code


def run(*headings, **names):
    """Run the code of some sections, one after the other, and return what it names."""
    code = sections()
    for heading in headings:
        exec(compile(code[heading], f"{PAGE.name}, {heading}", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nested():
    """A folder as Spark 4.3 writes it: one row a user, three users a file."""
    generator = np.random.default_rng(0)
    schema = pa.schema({"user": pa.int32(), "recommendations": spark_lists("item")})
    Path("nested").mkdir()
    Path("nested/_SUCCESS").touch()
    for part in range(100):
        rows = [
            {"user": user, "recommendations": recommendations(generator)}
            for user in range(3 * part, 3 * part + 3)
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema), f"nested/part-{part:05}.snappy.parquet")
    return pa.dataset.dataset("nested").to_table().to_pylist()


def spark_lists(item):
    """Return the type of the lists that Spark 4.3 writes; `test_spark` looks whether it is."""
    pair = pa.struct({item: pa.int32(), "rating": pa.float32()})
    return pa.list_(pa.field("element", pair))


def recommendations(generator):
    items = generator.permutation(200)[: generator.integers(40, 101)]
    ratings = -np.sort(-generator.random(len(items), dtype=np.float32))
    return [{"item": i, "rating": r} for i, r in zip(items.tolist(), ratings.tolist(), strict=True)]


def check_candidates(made):
    """Compare what was read with the table's own ranks, and with what users have seen."""
    data = made["data"]
    with read_candidates(made["table"], catalogue=data.item_ids) as candidates:
        ids, scores = CandidateRanking(candidates).top(np.arange(candidates.n_users), 100)
        users = candidates.user_ids
    listed = ids >= 0
    assert np.array_equal(np.sort(users), np.arange(data.n_users))
    assert (listed.sum(axis=1) >= 20).all()
    assert not data.matrix.toarray()[users[:, None], ids][listed].any()
    return dict(zip(users.tolist(), zip(ids, scores, strict=True), strict=True))


def check_ranks(table, read):
    """The ranks of the table are the order in which its scores rank, ties aside."""
    ranks = np.asarray(table["rank"])
    for user in (0, 17, 499):
        own = np.flatnonzero(np.asarray(table["user_id"]) == user)
        own = own[np.argsort(ranks[own])]
        assert ranks[own].tolist() == list(range(1, len(own) + 1))
        _, scores = read[user]
        np.testing.assert_array_equal(np.asarray(table["score"])[own], scores[: len(own)])


def check_lists(made):
    """The lists that were written are full, and share exposure more evenly than the library's."""
    catalogue = made["data"].item_ids
    change = ll.audit("fair.parquet", against=made["table"], k=20, catalogue=catalogue).to_dict()
    assert change["users"] == change["users_in_both"] == 500
    assert change["gini@20_change_high"] < 0 < change["coverage@20_change_low"]
    assert pq.read_metadata("fair.parquet").num_rows == 500 * 20


@pytest.mark.parametrize(
    ("heading", "module"),
    [("implicit", "implicit"), ("RecTools", "rectools"), ("LensKit", "lenskit")],
)
def test_a_library(heading, module):
    pytest.importorskip(module, reason=f"{heading} is not installed")
    made = run("From other libraries", heading, LAST)
    check_ranks(made["table"], check_candidates(made))
    check_lists(made)


def test_implicit_with_fewer_items_than_asked_for():
    pytest.importorskip("implicit", reason="implicit is not installed")
    data = ll.marketplace(200, 60, 4000).interactions
    table = run("implicit", data=data)["table"]
    assert table.num_rows == 200 * 60 - data.nnz
    assert not data.matrix.toarray()[table["user_id"], table["item_id"]].any()


def test_spark(monkeypatch):
    pytest.importorskip("pyspark", reason="Spark is not installed")
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS",
        "--master local[1] --conf spark.ui.enabled=false --conf spark.driver.host=localhost "
        "--conf spark.sql.shuffle.partitions=2 pyspark-shell",
    )
    made = run("From other libraries", "Spark", LAST)
    try:
        renamed = made["nested"].withColumnRenamed("user_id", "user")
        renamed.write.parquet("by_spark")
    finally:
        made["spark"].stop()
    check_candidates(made)
    check_lists(made)
    written = pa.dataset.dataset("by_spark").schema
    assert written.types == [pa.int32(), spark_lists("item_id")]


def test_nested_lists(nested):
    table = run("Files with nested lists")["table"]
    assert table.to_pylist() == [
        {"user_id": row["user"], "item_id": pair["item"], "score": pair["rating"]}
        for row in nested
        for pair in row["recommendations"]
    ]
    run(LAST, ll=ll, table=table, data=ll.marketplace(500, 200, 10_000).interactions)
    assert ll.audit("fair.parquet").users == 300


def test_every_heading_with_code_is_tested():
    tested = {"From other libraries", "implicit", "RecTools", "LensKit", "Spark"}
    tested |= {"Files with nested lists", LAST}
    assert {heading for heading, code in sections().items() if code} == tested
