"""``limelight report`` and ``--report``: the page of every command that has one."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.page_data import page_data

SMALL = ("--users", 300, "--items", 60, "--interactions", 4000)


def test_the_figures_of_the_page_are_those_of_the_run(demo_run):
    found = json.loads((demo_run / "results.json").read_text())["target"]["test"]
    page = page_data(demo_run / "report.html")
    shown = page["points"][page["chosen"]]["figures"]
    for name, (value, low, high) in shown.items():
        assert value == found[f"{name}@20"]
        assert low == found.get(f"{name}@20_low")
        assert high == found.get(f"{name}@20_high")
    assert set(shown) == {"ndcg", "recall", "gini", "coverage", "top_share"}


def test_the_report_of_a_run_is_the_one_that_it_wrote(limelight, demo_run, tmp_path):
    ended = limelight("report", demo_run, "-o", tmp_path / "page.html")
    assert ended.code == 0
    assert page_data(tmp_path / "page.html") == page_data(demo_run / "report.html")


def test_titles_and_other_groups(limelight, demo_run, tmp_path):
    ids = pq.read_table(demo_run / "model/items.parquet")["item_id"]
    pq.write_table(
        pa.table({"item_id": ids, "title": [f"Item {n}" for n in ids.to_pylist()]}),
        tmp_path / "titles.parquet",
    )
    groups = pa.table({"item_id": ids, "group": ["all of them"] * len(ids)})
    pq.write_table(groups, tmp_path / "groups.parquet")
    page = tmp_path / "page.html"
    flags = ("--catalogue", tmp_path / "titles.parquet", "--groups", tmp_path / "groups.parquet")
    assert limelight("report", demo_run, "-o", page, *flags).code == 0
    found = page_data(page)
    assert found["items"]["label"][0] == f"Item {ids[0].as_py()}"
    assert found["groups"]["label"] == ["all of them"]
    assert found["points"][0]["groups"] == [1.0]


def test_what_is_no_run_is_refused(limelight, files, tmp_path):
    ended = limelight("report", files / "model")
    assert ended.code == 1
    assert "nothing to show" in ended.err
    assert "limelight frontier" in ended.err
    assert limelight("report", tmp_path / "missing").code == 1


def test_a_catalogue_without_titles_is_refused(limelight, demo_run):
    ended = limelight("report", demo_run, "--catalogue", demo_run / "model/items.parquet")
    assert ended.code == 1
    assert "neither 'title' nor 'name'" in ended.err


def test_a_front_has_a_page(limelight, demo_run, tmp_path):
    page, front = tmp_path / "page.html", tmp_path / "front"
    flags = ("--points", 3, "--factors", 4, "--epochs", 4, "--report", page)
    ended = limelight("frontier", demo_run / "split", "-o", front, *flags, "--json")
    assert ended.code == 0, ended.err
    found, points = page_data(page), json.loads(ended.out)["points"]
    assert found["points"][0]["label"] == "No control"
    assert len(found["points"]) == len(points) - 1, "the plain model is shown once"
    assert found["points"][0]["figures"]["ndcg"][0] == points[0]["test"]["ndcg@20"]
    assert found["points"][1]["trace"], "how the fit went"
    assert found["points"][1]["lorenz"][-1] == 1
    assert limelight("report", front).code == 0
    assert page_data(front / "report.html") == found


def test_an_interrupted_front_shows_the_same(limelight, demo_run, tmp_path):
    flags = ("--points", 3, "--factors", 4, "--epochs", 4, "--method", "best-response")
    front = tmp_path / "front"
    limelight("frontier", demo_run / "split", "-o", front, *flags)
    limelight("report", front, "-o", tmp_path / "one.html")
    limelight("frontier", demo_run / "split", "-o", front, *flags)
    limelight("report", front, "-o", tmp_path / "two.html")
    one, two = (page_data(tmp_path / name) for name in ("one.html", "two.html"))
    assert one["points"] == two["points"]


def test_a_front_of_an_older_version_shows_its_figures(limelight, demo_run, tmp_path):
    flags = ("--points", 3, "--factors", 4, "--epochs", 4, "--method", "best-response")
    front = tmp_path / "front"
    limelight("frontier", demo_run / "split", "-o", front, *flags)
    for file in (front / "state/sights").iterdir():
        file.unlink()
    limelight(
        "frontier", demo_run / "split", "-o", front, *flags, "--report", tmp_path / "page.html"
    )
    found = page_data(tmp_path / "page.html")
    assert found["points"][0]["lorenz"] is None
    assert found["points"][0]["figures"]["gini"][0] > 0


def refuse_other_figures(page, points, k, names):
    """Compare every point of a page with JSON; there are several, for a slider and a front."""
    assert len(page["points"]) == len(points) > 3
    for shown, told in zip(page["points"], points, strict=True):
        assert shown["strength"] == told["strength"]
        for name in names:
            assert shown["figures"][name][0] == told[f"{name}@{k}"]
        assert shown["lorenz"] is not None
        assert shown["lists"]


def test_lists_that_were_re_ranked_have_a_page(limelight, demo_run, tmp_path):
    page = tmp_path / "page.html"
    flags = ("--gini", 0.3, "-k", 10, "--groups", demo_run / "providers.parquet", "--report", page)
    ended = limelight(
        "rerank", demo_run / "model", "-o", tmp_path / "lists.parquet", *flags, "--json"
    )
    assert ended.code == 0, ended.err
    found, record = page_data(page), json.loads(ended.out)
    refuse_other_figures(
        found, record["points"], 10, ("gini", "coverage", "top_share", "relevance")
    )
    own, now = found["points"][0], found["points"][found["chosen"]]
    assert own["figures"]["gini"][0] == record["gini@10_before"]
    assert now["figures"]["gini"][0] == record["gini@10"]
    assert now["figures"]["relevance"][0] == 1 - record["relevance_loss"]
    assert sum(now["groups"]) == pytest.approx(1, abs=1e-3)
    lists = pq.read_table(tmp_path / "lists.parquet").to_pylist()
    user = found["users"][0]["label"]
    expected = [str(row["item_id"]) for row in lists if str(row["user_id"]) == user]
    assert [found["items"]["id"][item] for item in now["lists"][0]] == expected
    assert own["lists"][0] != now["lists"][0] or own["lists"][-1] != now["lists"][-1]


@pytest.fixture
def two_lists(tmp_path):
    rng = np.random.default_rng(0)
    for name, last in (("before", 10), ("after", 20)):
        rows = [
            {"user_id": f"u{user}", "item_id": int(item), "rank": rank + 1}
            for user in range(30)
            for rank, item in enumerate(rng.permutation(last)[:5])
        ]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    pq.write_table(pa.table({"item_id": list(range(25))}), tmp_path / "items.parquet")
    return tmp_path


def test_an_audit_has_a_page(limelight, two_lists):
    page = two_lists / "page.html"
    flags = ("--catalogue", two_lists / "items.parquet", "--report", page, "--json")
    record = json.loads(limelight("audit", two_lists / "after.parquet", *flags).out)
    found = page_data(page)
    assert found["base"] is None
    assert found["points"][0]["figures"]["gini"] == [
        record["gini@5"], record["gini@5_low"], record["gini@5_high"]
    ]  # fmt: skip
    rows = pq.read_table(two_lists / "after.parquet").to_pylist()
    user = found["users"][3]["label"]
    expected = [str(row["item_id"]) for row in rows if row["user_id"] == user]
    assert [found["items"]["id"][item] for item in found["points"][0]["lists"][3]] == expected


def test_an_audit_against_other_lists_shows_both(limelight, two_lists):
    page = two_lists / "page.html"
    flags = ("--against", two_lists / "before.parquet", "--report", page, "--json")
    ended = limelight("audit", two_lists / "after.parquet", *flags)
    record, found = json.loads(ended.out), page_data(page)
    before, after = found["points"]
    assert before["figures"]["gini"][0] == record["gini@5_before"]
    assert after["figures"]["gini"][0] == record["gini@5"]
    rows = pq.read_table(two_lists / "before.parquet").to_pylist()
    user = found["users"][0]["label"]
    expected = [str(row["item_id"]) for row in rows if row["user_id"] == user]
    assert [found["items"]["id"][item] for item in before["lists"][0]] == expected


def test_a_model_for_a_target_has_a_page(limelight, demo_run, tmp_path):
    page = tmp_path / "page.html"
    flags = ("--gini", 0.2, "--factors", 4, "--epochs", 4, "--report", page, "--json")
    ended = limelight("fit", demo_run / "split", "-o", tmp_path / "model", *flags)
    assert ended.code == 0, ended.err
    found, record = page_data(page), json.loads(ended.out)
    refuse_other_figures(found, record["points"], 20, ("gini", "coverage", "top_share", "ndcg"))
    assert {point["method"] for point in found["points"]} > {"No control", "exADMM"}
    ends = found["points"][0], found["points"][found["chosen"]]
    own, now = (point["figures"]["gini"][0] for point in ends)
    assert own == record["test"]["gini@20_before"]
    assert now == record["test"]["gini@20"]


def test_a_fit_without_a_target_has_no_page(limelight, demo_run, tmp_path):
    flags = ("-o", tmp_path / "model", "--report", tmp_path / "page.html")
    ended = limelight("fit", demo_run / "split", *flags)
    assert ended.code == 2
    assert "--report" in ended.err
    assert not list(tmp_path.iterdir())


def test_a_page_that_cannot_be_written_leaves_the_old_one(limelight, demo_run, tmp_path):
    (tmp_path / "file").write_text("a file, not a folder")
    ended = limelight("report", demo_run, "-o", tmp_path / "file" / "page.html")
    assert ended.code == 1
    assert "hint:" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
