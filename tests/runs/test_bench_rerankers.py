"""The bench of re-rankers: scores of fronts, both protocols, tables of candidates, and the verb."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.lab.bench import rerankers
from limelight.lab.bench.arenas import Protocol, bench_split, fitted_arena, table_arena
from limelight.lab.bench.reranked import (
    FRACTIONAL,
    WHOLE,
    BenchRecord,
    Fronts,
    RerankedPoint,
    front_score,
    front_table,
    read_records,
    score_table,
    write_records,
)
from limelight.lab.bench.rerankers import METHODS, choose_methods, measure_fronts

SETTINGS = {"factors": 8, "epochs": 4}
SMALL = ["--validation", "40", "--test", "50", "--seeds", "1", "-d", "8", "--epochs", "3"]


@pytest.fixture
def few_strengths(monkeypatch):
    monkeypatch.setattr(rerankers, "STRENGTHS", (0.1, 1.0))
    monkeypatch.setattr(rerankers, "_FIRST", (0.01, 1.0))
    monkeypatch.setattr(rerankers, "_MOST", 3)
    monkeypatch.setattr(rerankers, "_GUARANTEES", 3)
    monkeypatch.setattr(rerankers, "_SHARES", (0.5,))


@pytest.fixture(scope="module")
def market():
    return ll.marketplace(500, 60, 9000).interactions


@pytest.fixture(scope="module")
def files(market, tmp_path_factory):
    """Write interactions, candidates with scores, their providers, and what users took."""
    folder = tmp_path_factory.mktemp("tables")
    rows, items = market.matrix.nonzero()
    pq.write_table(pa.table({"user_id": rows, "item_id": items}), folder / "data.parquet")
    split = ll.split_users(market, validation=100, test=0)
    model = ll.IALS(factors=8, epochs=4).fit(split.train)
    ids, scores = model.ranking(split.validation.history).top(np.arange(100), 30)
    users = np.repeat(np.arange(100), 30)
    table = {"user_id": users, "item_id": ids.ravel(), "score": np.exp(scores.ravel())}
    pq.write_table(pa.table(table), folder / "scores.parquet")
    known = np.unique(ids)
    groups = {"item_id": known, "group": known % 5}
    pq.write_table(pa.table(groups), folder / "groups.parquet")
    found = split.validation.targets.nonzero()
    taken = {"user_id": found[0], "item_id": found[1]}
    pq.write_table(pa.table(taken), folder / "taken.parquet")
    return folder


def test_only_points_that_no_other_beats_count():
    base, good, beaten = (
        RerankedPoint(0, 1.0, 0.9),
        RerankedPoint(1, 0.9, 0.5),
        RerankedPoint(2, 0.88, 0.7),
    )
    assert front_score([base, good, beaten], 1.0) == front_score([base, good], 1.0)
    assert front_score([base, good], 1.0) > front_score([base, beaten], 1.0)


def test_beyond_the_last_point_a_front_stays_where_it_is():
    assert front_score([RerankedPoint(0, 1.0, 0.9)], 1.0) == pytest.approx(0.1)


def test_what_a_front_says_at_an_accuracy_and_at_a_gini():
    fronts = Fronts(RerankedPoint(0, 0.5, 0.9), {"a": [RerankedPoint(1, 0.4, 0.5)]})
    assert fronts.gini_at("a", 0.9) == pytest.approx(0.7)
    assert fronts.accuracy_at("a", 0.7) == pytest.approx(0.9)
    assert np.isnan(fronts.accuracy_at("a", 0.4))
    assert fronts.lowest("a") == 0.5


def test_tables_compare_with_both_kinds_of_fairrec(tmp_path):
    points = {
        WHOLE: [RerankedPoint(1, 0.45, 0.7)],
        FRACTIONAL: [RerankedPoint(0.5, 0.48, 0.75), RerankedPoint(1, 0.45, 0.7)],
        "ours": [RerankedPoint(1, 0.47, 0.6)],
    }
    record = BenchRecord("made-up", 10, 5, {}, [Fronts(RerankedPoint(0, 0.5, 0.9), points)])
    write_records([record], tmp_path / "points.json")
    [again] = read_records(tmp_path / "points.json")
    assert again.to_dict() == record.to_dict()
    table = score_table(again)
    assert table.head[:4] == ("method", "score", "/ FairRec", "/ FairRec, whole")
    assert [row[0] for row in table.rows] == list(points)
    assert float(table.rows[1][2]) == 1 < float(table.rows[2][2])
    below = front_table(again)
    assert below.head[1:] == ("0.750", "0.700")
    assert below.rows[1][1:] == ("0.960", "0.900")


@pytest.mark.parametrize("points", [{}, {FRACTIONAL: [RerankedPoint(1, 0.4, 0.95)]}])
def test_without_a_front_of_fairrec_there_is_nothing_to_compare_with(points):
    points = {"ours": [RerankedPoint(1, 0.4, 0.5)], **points}
    runs = [Fronts(RerankedPoint(0, 0.5, 0.9), points)]
    assert front_table(BenchRecord("made-up", 10, 5, {}, runs)) is None


def test_providers_are_compared_with_manifold_rank():
    runs = [Fronts(RerankedPoint(0, 1.0, 0.9), {"ManifoldRank": [RerankedPoint(1, 0.9, 0.5)]})]
    record = BenchRecord("made-up", 10, 5, {}, runs)
    assert front_table(record).rows == [("ManifoldRank", "0.900")]


@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize("kind", ["paper", "served"])
def test_all_methods_on_a_small_market(market, kind):
    protocol = Protocol(kind, k=10)
    split = bench_split(market, 60, 80, protocol)
    with fitted_arena(split, SETTINGS, 0, protocol) as arena:
        assert arena.served.n_users == (80 if kind == "paper" else 440)
        names = choose_methods([], of_providers=False)
        measured = list(measure_fronts(arena, names))
    assert [name for name, _ in measured] == names
    assert set(METHODS) - set(names) == {"GroupShares"}
    result = measured[-1][1]
    assert all(0 < result.score(name) < 1 for name in names)
    assert result.score(FRACTIONAL) >= result.score(WHOLE) - 0.02
    assert all(result.lowest(name) < result.base.gini for name in names)


def test_validation_users_are_measured_without_those_of_the_test(market):
    test = bench_split(market, 60, 80, Protocol())
    own = bench_split(market, 60, 80, Protocol(part="validation"))
    assert own.test.user_ids.tolist() == test.validation.user_ids.tolist()
    seen = {*own.train.user_ids, *own.validation.user_ids, *own.test.user_ids}
    assert not seen & set(test.test.user_ids.tolist())


def test_few_users_are_enough_to_measure_validation_users(market):
    split = bench_split(market, 200, 200, Protocol(part="validation"))
    assert (split.train.n_users, split.validation.n_users, split.test.n_users) == (75, 25, 200)


@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize("kind", ["paper", "served"])
def test_candidates_with_held_out_pairs(files, kind):
    protocol = Protocol(kind, k=5)
    with table_arena(files / "scores.parquet", None, files / "taken.parquet", protocol) as arena:
        assert arena.served.n_users == (50 if kind == "paper" else 100)
        assert arena.known.n_users == 50
        [(_, fronts)] = measure_fronts(arena, ["Online"])
    assert 0 < fronts.score("Online") < 1


@pytest.mark.usefixtures("few_strengths")
def test_providers_of_candidates(files):
    groups = files / "groups.parquet"
    with table_arena(files / "scores.parquet", groups, None, Protocol(k=5)) as arena:
        names = choose_methods([], of_providers=True)
        fronts = list(measure_fronts(arena, names))[-1][1]
    assert "GroupShares" in names
    assert "ManifoldRank" in names
    assert fronts.base.ndcg == 1
    assert set(fronts.base.more) == {"minmax", "mmf", "entropy", "ef"}
    record = BenchRecord("made-up", 100, 60, {}, [fronts])
    assert "mmf" in score_table(record, 0.99).head
    assert "/ ManifoldRank" in score_table(record, 0.99).head


def test_strengths_of_an_unknown_scale_are_tried_where_the_front_is_steep():
    base = RerankedPoint(0, 1.0, 0.9)
    points = [RerankedPoint(0.01, 1.0, 0.9), RerankedPoint(1, 0.99, 0.85), RerankedPoint(100, 0, 0)]
    assert rerankers._next_strength(points, base) == pytest.approx(10)
    assert rerankers._next_strength(points[:1] * 2, base) is None


@pytest.mark.parametrize(
    ("names", "of_providers", "message"),
    [
        (["nonsense"], False, "no such method: 'nonsense'"),
        (["GroupShares"], False, "GroupShares needs groups"),
        (["FairRec"], True, "FairRec takes no groups"),
    ],
)
def test_methods_that_cannot_run(names, of_providers, message):
    with pytest.raises(ConfigError, match=message) as caught:
        choose_methods(names, of_providers=of_providers)
    assert caught.value.hint


def test_fewer_candidates_than_places(files):
    message = "a user has 30 candidates, fewer than the 31 places of a list"
    with (
        pytest.raises(DataError, match=message),
        table_arena(files / "scores.parquet", None, None, Protocol(k=31)),
    ):
        pass


def test_the_verb_in_a_process_of_its_own(files, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    points, picture = tmp_path / "points.json", tmp_path / "fronts.png"
    verb = [sys.executable, "-m", "limelight", "bench", "rerankers"]
    data = [
        f"made-up={files / 'data.parquet'}",
        *SMALL,
        "--methods",
        WHOLE,
        "--methods",
        FRACTIONAL,
    ]
    done = subprocess.run([*verb, *data, "-o", points], capture_output=True, text=True, check=True)
    assert "/ FairRec" in done.stdout
    assert "the best so far is" in done.stderr
    record = json.loads(points.read_text())["rerankers"][0]
    assert (record["users"], record["kind"], record["part"]) == (50, "paper", "test")
    assert set(record["runs"][0]["points"]) == {WHOLE, FRACTIONAL}
    drawn = [*verb, "--from", points, "--figure", picture]
    done = subprocess.run(drawn, capture_output=True, text=True, check=True)
    assert "nDCG at a Gini of" in done.stdout
    assert picture.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "give data sets, --candidates or --from: none given"),
        (["a=b.csv", "--candidates", "c.csv"], "data sets and --candidates given"),
        (["a=b.csv", "--groups", "c.csv"], "only candidates take: --groups"),
        (["a=b.csv", "--methods", "GroupShares"], "GroupShares needs groups"),
        (["a=b.csv", "--methods", "nonsense"], "no such method: 'nonsense'"),
        (["a=b.csv", "--seeds", "0"], "--seeds must be at least 1: 0"),
        (["a=b.csv", "-k", "0"], "-k must be at least 1: 0"),
        (["b.csv"], "--data must be NAME=FILE: 'b.csv'"),
        (["--from", "missing.json"], "No such file"),
    ],
)
def test_wrong_use(limelight, flags, message):
    done = limelight("bench", "rerankers", *flags)
    assert done.code != 0
    assert message in done.err
    assert "hint: " in done.err


def test_a_file_without_points(limelight, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    done = limelight("bench", "rerankers", "--from", tmp_path / "x.json")
    assert done.code == 1
    assert "no points of re-rankers" in done.err
