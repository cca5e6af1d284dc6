"""Fronts: where points go, what they are, and that an interrupted front goes on."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.errors import DataError
from limelight.control.controls import Located, nearest, next_strength
from limelight.control.frontier_result import FrontierPoint, PointFigures, mark_front
from limelight.report.figures import style as figures

FIRST = (0.0, 0.1, 10.0)
MODEL = {"factors": 16, "epochs": 80}
SETTINGS = MODEL | {"at": 10}
ALL = ("exadmm", "best-response", "online", "prices")
TIMES = ("seconds", "wall_seconds")


@pytest.fixture(scope="module")
def split():
    data = ll.marketplace(3000, 300, 90_000).interactions
    return ll.split_users(data, validation=300, test=300)


@pytest.fixture(scope="module")
def front(split):
    """As published: test users are served alone."""
    return ll.frontier(split, methods=ALL, points=5, population="held-out", **SETTINGS)


@pytest.fixture(scope="module")
def everybody(split):
    return ll.frontier(split, methods=["best-response", "online"], points=3, **SETTINGS)


def point(strength, ndcg, gini):
    found = PointFigures(ndcg, ndcg, ndcg, gini, 0.5)
    return FrontierPoint("exadmm", 0, strength, found, found, 1.0, 2.0, 3)


def without_times(front):
    """Return the columns that must not depend on the machine."""
    return front.to_table().drop_columns(TIMES).to_pydict()


class TestPlacing:
    def test_the_first_points_are_given(self):
        tried = [Located(0, 1, 0.9), Located(0.1, 0.9, 0.8)]
        assert [next_strength(tried[:n], FIRST) for n in range(3)] == list(FIRST)

    def test_the_widest_gap_is_split_in_proportion(self):
        tried = [Located(10, 0.5, 0.3), Located(0, 1, 0.9), Located(0.1, 0.98, 0.88)]
        assert next_strength(tried, FIRST) == pytest.approx(1.0)
        tried.append(Located(1.0, 0.52, 0.31))
        assert next_strength(tried, FIRST) == pytest.approx(math.sqrt(0.1))

    def test_a_gap_at_nought_is_approached_by_eighths(self):
        tried = [Located(0, 1, 0.9), Located(0.1, 0.6, 0.4), Located(10, 0.58, 0.39)]
        assert next_strength(tried, FIRST) == pytest.approx(0.0125)

    def test_both_axes_count(self):
        level = [Located(0, 1, 0.9), Located(0.1, 1, 0.8), Located(10, 0.8, 0.8)]
        steep = [Located(0, 1, 0.9), Located(0.1, 1, 0.6), Located(10, 0.8, 0.6)]
        assert next_strength(level, FIRST) == pytest.approx(1.0)
        assert next_strength(steep, FIRST) == pytest.approx(0.0125)

    def test_gaps_of_a_curve_become_even(self):
        def curve(strength):
            return Located(strength, math.exp(-strength), 0.3 + 0.6 / (1 + 5 * strength))

        tried = []
        while len(tried) < 24:
            tried.append(curve(next_strength(tried, FIRST)))
        tried.sort()
        assert len({one.strength for one in tried}) == 24
        places = np.array([(one.accuracy, one.gini) for one in tried])
        gaps = np.hypot(*np.diff(places, axis=0).T)
        assert gaps.max() < 3 * gaps.mean()

    def test_the_nearest_is_so_in_proportion(self):
        assert nearest([0, 0.1, 10], 2.0) == 10
        assert nearest([0, 0.1, 10], 0.0125) == 0.1
        assert nearest([0], 0.1) == 0


class TestFront:
    def test_points_and_strengths(self, front):
        assert front.methods == list(ALL)
        for method in ALL:
            own = [p for p in front.points if p.method == method]
            strengths = [p.strength for p in own]
            assert len(own) == 5
            assert strengths == sorted(set(strengths))
            assert sorted(p.number for p in own) == list(range(5))
            assert {0.0, 0.1} < set(strengths)

    def test_exposure_gets_more_even(self, front):
        for method in ALL:
            ginis = [p.test.gini for p in front.points if p.method == method]
            assert ginis[-1] == min(ginis) < ginis[0] - 0.1

    def test_nought_is_the_plain_model(self, split, front):
        model = ll.ExADMM(**MODEL).fit(split.train)
        found = ll.evaluate(model, split.test, k=10)
        firsts = [p for p in front.points if p.strength == 0]
        assert len({(p.validation, p.test, p.seconds) for p in firsts}) == 1
        assert firsts[0].test.to_dict(10).items() <= found.to_dict().items()
        assert firsts[0].epochs == model.trace_[-1].epoch

    def test_nought_is_as_good_as_ials(self, split, front):
        found = ll.evaluate(ll.IALS(**MODEL).fit(split.train), split.test, k=10)
        assert front.points[0].test.ndcg == pytest.approx(found["ndcg@10"], rel=0.03)
        assert front.points[0].test.gini == pytest.approx(found["gini@10"], abs=0.01)

    def test_warm_points_are_near_fits_from_nothing(self, split, front):
        for warm in [p for p in front.points if p.method == "exadmm" and p.strength]:
            assert 2 <= warm.epochs <= 10  # an eighth of the 80 at most
            model = ll.ExADMM(**MODEL, exposure_strength=warm.strength).fit(split.train)
            cold = ll.evaluate(model, split.validation, k=10)
            assert warm.validation.ndcg == pytest.approx(cold["ndcg@10"], rel=0.05)
            assert warm.validation.gini == pytest.approx(cold["gini@10"], abs=0.02)

    def test_best_response_is_what_it_says(self, split, front):
        model = ll.ExADMM(**MODEL).fit(split.train)
        part = split.validation
        popularity = split.train.matrix.getnnz(axis=0)
        law = ll.calibrate(model.ranking(part.history), part.targets, 10, popularity=popularity)
        own = next(p for p in front.points if (p.method, p.number) == ("best-response", 1))
        lists = ll.BestResponse(strength=own.strength, relevance=law).over(model)
        found = ll.evaluate(lists, split.test, k=10)
        # Users choose in another order, and once more: some items change hands.
        for name, figure in own.test.to_dict(10).items():
            assert figure == pytest.approx(found[name], abs=0.015)

    def test_cost(self, front):
        own = [p for p in front.points if p.method == "exadmm"]
        training = sum(p.seconds for p in own) / own[0].seconds
        assert front.cost.training == pytest.approx(training)
        assert front.cost.wall_clock > 1
        assert all(0 < p.seconds <= p.wall_seconds for p in front.points)

    def test_best_is_the_most_even_within_the_loss(self, front):
        plain = front.points[0].validation.ndcg
        assert front.best("best-response", max_ndcg_loss=0).validation.ndcg >= plain
        best = front.best(max_ndcg_loss=0.2)
        least = 0.8 * front.points[0].validation.ndcg
        assert best.validation.ndcg >= least
        allowed = [p for p in front.points if p.validation.ndcg >= least]
        assert best.validation.gini == min(p.validation.gini for p in allowed)
        assert front.best("prices", max_ndcg_loss=0.2).method == "prices"
        with pytest.raises(ll.ConfigError, match="method is not a known choice: 'fairrec'"):
            front.best("fairrec")

    def test_a_table_and_a_dictionary(self, front):
        rows = front.to_table().to_pylist()
        assert len(rows) == 20
        assert rows[0]["test_ndcg@10"] == front.points[0].test.ndcg
        found = json.loads(json.dumps(front.to_dict()))
        assert found["at"] == 10
        assert found["points"][3]["validation"]["gini@10"] == front.points[3].validation.gini
        assert FrontierPoint.from_dict(asdict(front.points[3])) == front.points[3]

    def test_it_reads_as_a_table(self, front):
        lines = repr(front).splitlines()
        assert lines[0].startswith("The best of 20 points is ")
        lines = lines[2:]
        assert lines[0] == (
            "Frontier of exadmm and best-response and online and prices, lists of 10; exposure "
            "over 300 held-out users' lists"
        )
        assert lines[1].split()[:3] == ["point", "strength", "front"]
        assert len(lines) == 2 + 20 + 1
        assert "the training of one fit" in lines[-1]

    def test_without_exadmm_there_is_no_cost(self, split):
        found = ll.frontier(split, methods="best-response", points=3, **SETTINGS)
        assert found.cost is None
        assert found.methods == ["best-response"]


class TestPopulation:
    """Exposure is that of everybody's lists, accuracy that of held-out users among them."""

    def test_the_plain_model_over_everybody(self, split, everybody, front):
        first, alone = everybody.points[0], front.points[0]
        assert first.test.ndcg == alone.test.ndcg
        assert first.test.gini == first.validation.gini
        assert first.test.gini < alone.test.gini - 0.02
        model = ll.ExADMM(**MODEL).fit(split.train)
        parts = split.validation, split.test
        ids = [model.recommend(k=10).ids, *(model.recommend(p.history, k=10).ids for p in parts)]
        figures = ll.metrics.exposure.exposure(np.concatenate(ids), split.train.n_items)
        # Training users take part as if a fifth of what they did were unknown.
        found = ll.metrics.exposure.gini(figures)
        assert first.test.gini == pytest.approx(found, abs=0.03)

    def test_the_same_evenness_costs_less(self, everybody, front):
        for method in ("best-response", "online"):
            own, alone = (
                [p for p in some.points if p.method == method][-1] for some in (everybody, front)
            )
            assert own.strength == alone.strength == 3.0
            assert own.test.gini < alone.test.gini + 0.01
            assert own.test.ndcg > alone.test.ndcg - 0.01

    def test_it_says_whose_lists(self, everybody):
        assert "exposure over 3,000 users' lists" in repr(everybody).splitlines()[2]
        found = everybody.to_dict()
        assert (found["population"], found["users"]) == ("3,000 users' lists", 3000)

    def test_another_population_is_another_front(self, split, tmp_path):
        call = {"methods": "best-response", "points": 3, "folder": tmp_path, **SETTINGS}
        small = call | {"epochs": 4}
        first = ll.frontier(split, **small, population=1000)
        assert (first.population, first.users) == ("1,000 users' lists", 1000)
        for other in ("everyone", 999, "held-out", split.test.user_ids.tolist()):
            with pytest.raises((ll.ConfigError, ll.DataError)):
                ll.frontier(split, **small, population=other)


def test_a_point_is_on_the_front_unless_one_beats_it_in_both():
    points = [point(0, 0.5, 0.9), point(1, 0.4, 0.8), point(2, 0.45, 0.7), point(3, 0.45, 0.6)]
    assert [p.on_front for p in mark_front(points)] == [True, False, True, True]


class TestFolder:
    def test_what_is_written(self, split, tmp_path):
        found = ll.frontier(split, methods="exadmm", points=4, folder=tmp_path, **SETTINGS)
        names = {"frontier.parquet", "frontier.json", "frontier.png", "models", "state", "exhibit"}
        assert {path.name for path in tmp_path.iterdir()} == names
        assert pq.read_table(tmp_path / "frontier.parquet").equals(found.to_table())
        assert json.loads((tmp_path / "frontier.json").read_text()) == found.to_dict()
        kept = {path.name for path in (tmp_path / "models").iterdir()}
        assert kept == {"plain"} | {
            f"exadmm-{p.number}" for p in found.points if p.on_front and p.number
        }
        last = found.points[-1]
        model = ll.load(tmp_path / "models" / f"exadmm-{last.number}")
        again = ll.evaluate(model, split.test, k=10)
        assert last.test.ndcg == again["ndcg@10"]  # served among all others, but each alone
        assert last.test.gini < again["gini@10"]
        assert (found.population, found.users) == ("3,000 users' lists", 3000)

    def test_a_second_call_repeats_nothing(self, split, tmp_path, monkeypatch):
        call = {"methods": "exadmm", "points": 3, "folder": tmp_path, **SETTINGS}
        found = ll.frontier(split, **call)
        monkeypatch.setattr(ll.ExADMM, "fit", None)
        again = ll.frontier(split, **call, num_threads=1)
        assert again.to_dict() == found.to_dict()

    def test_another_front_is_refused(self, split, tmp_path):
        call = {"methods": "exadmm", "points": 3, "folder": tmp_path, **SETTINGS}
        ll.frontier(split, **call)
        for changed in ({"points": 4}, {"at": 5}, {"factors": 4}, {"random_state": 1}):
            (name,) = changed
            with pytest.raises(ll.ConfigError, match=f"holds another run, with {name} "):
                ll.frontier(split, **call | changed)
        other = ll.split_users(split.train, validation=300, test=300)
        with pytest.raises(ll.ConfigError, match="holds another run, with data "):
            ll.frontier(other, **call)

    def test_other_test_users_are_other_data(self, split, tmp_path):
        call = {"methods": "exadmm", "points": 3, "folder": tmp_path, **SETTINGS}
        ll.frontier(split, **call)
        swapped = ll.Split(split.train, split.test, split.validation)
        with pytest.raises(ll.ConfigError, match="holds another run, with data "):
            ll.frontier(swapped, **call)

    def test_a_folder_of_something_else_is_left_alone(self, split, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        with pytest.raises(ll.DataError, match="will not replace what limelight did not write"):
            ll.frontier(split, methods="exadmm", points=3, folder=tmp_path, **SETTINGS)
        with pytest.raises(ll.DataError, match="the output is not a folder"):
            ll.frontier(
                split, methods="exadmm", points=3, folder=tmp_path / "thesis.tex", **SETTINGS
            )

    def test_without_matplotlib_a_note_names_the_extra(self, split, tmp_path, monkeypatch):
        def missing():
            raise ll.ConfigError("no matplotlib", hint="pip install 'limelight[plot]'")

        monkeypatch.setattr(figures, "load_matplotlib", missing)
        found = ll.frontier(split, methods="exadmm", points=3, folder=tmp_path, **SETTINGS)
        assert found.notes == ("No figure: pip install 'limelight[plot]'",)
        assert not (tmp_path / "frontier.png").exists()
        assert "limelight[plot]" in repr(found)


class TestMistakes:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"methods": ["fairrec"]}, "method is not a known choice: 'fairrec'"),
            ({"methods": []}, "methods must be one or several different names"),
            ({"methods": ["exadmm", "exadmm"]}, "methods must be one or several different names"),
            ({"points": 2}, "points must be at least 3: 2"),
            ({"at": 0}, "at must be at least 1: 0"),
            ({"exposure_weight": 1e-3}, "the front sets exposure_weight by itself"),
            ({"solver": "admm"}, "the front sets solver by itself"),
            ({"factor": 3}, "unknown hyper-parameter: 'factor'"),
            ({"factors": 0}, "factors must be at least 1"),
        ],
    )
    def test_settings(self, split, settings, message):
        with pytest.raises(ll.ConfigError, match=message):
            ll.frontier(split, **settings)

    def test_users_without_targets(self):
        data = ll.marketplace(9, 30, 60).interactions
        with pytest.raises(ll.DataError, match="have no held-out items to find"):
            ll.frontier(data)


def test_what_others_wrote_is_left_alone(tmp_path):
    data = ll.marketplace(600, 60, 9000).interactions
    mine = tmp_path / "models" / "mine" / "weights.bin"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    (tmp_path / "state").mkdir()
    ask = {"methods": ["best-response"], "points": 3, "at": 5, "factors": 8, "epochs": 4}
    with pytest.raises(DataError, match="will not replace"):
        ll.frontier(data, folder=tmp_path, **ask)
    assert mine.read_text() == "mine"
    ll.frontier(data, folder=tmp_path / "front", **ask)
    (tmp_path / "front" / "models" / "mine").mkdir()
    ll.frontier(data, folder=tmp_path / "front", **ask)
    assert (tmp_path / "front" / "models" / "mine").is_dir()
