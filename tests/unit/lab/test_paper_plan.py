"""What a run will take and how it is cut, and what two runs of one seed have in common."""

from dataclasses import replace

import numpy as np
import pytest

from limelight._base.errors import ConfigError
from limelight.lab.paper import run as running
from limelight.lab.paper.budget import Claim, MethodPlan, decide, decide_all, divide
from limelight.lab.paper.experiments import EXPERIMENTS, DataSize, make_up
from limelight.lab.paper.forecast import MethodForecast, forecast_method, forecast_reranker
from limelight.lab.paper.methods import methods_of
from limelight.lab.paper.paired import differences
from limelight.lab.paper.plan import ReproductionPlan
from limelight.lab.paper.run import Findings, Run
from limelight.lab.tables import accuracy, seconds
from limelight.metrics.intervals import bootstrap_interval

SIZE = DataSize(400, 80, 6000)
TINY = replace(
    EXPERIMENTS["epinions"], title="Tiny", size=SIZE, held_out=50, factors=8, cutoffs=(3, 10),
    timed=(3, 10),
)  # fmt: skip
FACTORS = ("iALS", "iALS+FairRec", "exADMM")


@pytest.fixture(scope="module")
def split():
    return make_up(SIZE, held_out=50)


class TestForecast:
    def test_epochs_of_all_users_are_scaled_up(self, split) -> None:
        methods = methods_of(TINY, factors=8, epochs=None, threads=1)
        one = forecast_method(methods["exADMM"], split, 10)
        assert one.epochs == 200
        assert one.seconds > one.epochs * one.epoch > 0
        assert one.n_bytes > 4 * (300 + 80) * 16

    def test_methods_without_epochs(self, split) -> None:
        methods = methods_of(TINY, factors=8, epochs=None, threads=1)
        for name in ("Random", "Popularity", "EASE"):
            one = forecast_method(methods[name], split, 10)
            assert one.epoch is None
            assert one.seconds > 0
        assert forecast_reranker("iALS+FairRec", methods["iALS"], split, 10).seconds > 0

    def test_large_data_are_timed_on_some_users(self, monkeypatch, split) -> None:
        """A tenth of the users, and about ten times their seconds."""
        asked = []
        method = methods_of(TINY, factors=8, epochs=None, threads=1)["Popularity"]
        monkeypatch.setattr("limelight.lab.paper.forecast._USERS", 30)
        fit = method.kind.fit
        monkeypatch.setattr(
            method.kind, "fit", lambda self, X: asked.append(X.n_users) or fit(self, X)
        )
        forecast_method(method, split, 10)
        assert asked == [30]


ONE = MethodForecast(seconds=10.0, n_bytes=2**30, epoch=0.2, epochs=50)


class TestDecisions:
    def test_all_of_it_fits(self) -> None:
        assert decide(ONE, 4, 40.0, 2**30) == MethodPlan(4)
        assert decide(ONE, 4, None, None) == MethodPlan(4)

    def test_fewer_first_settings(self) -> None:
        assert decide(ONE, 4, 39.9, None) == MethodPlan(3, mark="3 of 4 first settings")

    def test_fewer_epochs(self) -> None:
        assert decide(ONE, 4, 9.9, None) == MethodPlan(1, 49, mark="at 49 of 50 epochs")
        assert decide(ONE, 4, 1.01, None) == MethodPlan(1, 5, mark="at 5 of 50 epochs")

    def test_lists_take_time_too(self) -> None:
        slow = ONE._replace(seconds=12.0)  # two seconds of lists
        assert decide(slow, 1, 4.0, None).at_most == 10

    def test_too_few_epochs_are_none(self) -> None:
        assert "one epoch takes about 200 ms" in decide(ONE, 4, 0.9, None).left_out

    def test_what_has_no_epochs_is_whole_or_left_out(self) -> None:
        one = ONE._replace(epoch=None, epochs=None)
        assert decide(one, 1, 9.0, None).left_out == (
            "one setting takes about 10 s, and its share of the budget is 9 s"
        )

    @pytest.mark.parametrize("seconds", [None, 1e9])
    def test_memory(self, seconds) -> None:
        left_out = decide(ONE, 1, seconds, 2**30 - 1).left_out
        assert left_out == "it needs about 1.0 GiB of memory, and there are 1024 MiB"

    def test_time_of_what_is_left_out_goes_to_the_others(self) -> None:
        claims = {"Multi-FR": Claim(3.0, 1), "iALS": Claim(1.0, 1)}
        forecasts = {"Multi-FR": ONE._replace(epoch=1e3), "iALS": ONE._replace(seconds=6.0)}
        assert divide(claims, list(claims), 6.0)["iALS"] == 1.5
        decided = decide_all(forecasts, claims, 6.0, None)
        assert decided["Multi-FR"].left_out
        assert decided["iALS"] == MethodPlan(1)

    def test_the_slowest_is_left_out_first(self) -> None:
        """With a third of the time none fits; with half of it the others do."""
        claims = {name: Claim(1.0, 1) for name in ("Multi-FR", "Mult-VAE", "iALS")}
        forecasts = {
            "Multi-FR": MethodForecast(100.0, 1),
            "Mult-VAE": MethodForecast(3.0, 1),
            "iALS": MethodForecast(2.5, 1),
        }
        decided = decide_all(forecasts, claims, 6.0, None)
        assert [name for name, one in decided.items() if one.left_out] == ["Multi-FR"]
        assert "share of the budget is 2 s" in decided["Multi-FR"].left_out

    def test_what_searches_nothing_needs_no_share(self) -> None:
        claims = {"Random": Claim(0.0, 1), "iALS": Claim(1.0, 1)}
        forecasts = {"Random": MethodForecast(9.0, 1), "iALS": MethodForecast(2.5, 1)}
        decided = decide_all(forecasts, claims, 6.0, None)
        assert decided == {"Random": MethodPlan(1), "iALS": MethodPlan(1)}

    def test_re_rankers_go_with_the_model_that_they_start_from(self) -> None:
        claims = {"iALS": Claim(1.0, 1), "iALS+FairRec": Claim(1.0, 1, 3)}
        forecasts = {"iALS": ONE, "iALS+FairRec": MethodForecast(0.0, 0)}
        decided = decide_all(forecasts, claims, None, 2**20)
        assert decided["iALS+FairRec"].left_out == "it starts from iALS, which is left out"

    def test_marks_and_reasons_are_told(self) -> None:
        found = Findings(SIZE)
        found.decisions = {
            "iALS": MethodPlan(1, 12, mark="at 12 of 50 epochs"),
            "iALS+FairRec": MethodPlan(6),
            "EASE": MethodPlan(0, left_out="too large"),
        }
        assert found.left_out == {"EASE": "too large"}
        assert found.marks == {
            "iALS": "at 12 of 50 epochs",
            "iALS+FairRec": "over iALS at 12 of 50 epochs",
        }
        point = {"ndcg@3": 0.1, "ndcg@3_low": 0.0, "ndcg@3_high": 0.2, "settings": {}}
        point |= {"gini@3": 0.5, "coverage@3": 0.5}
        table = accuracy({"iALS": [point]}, 3, found.marks)
        assert table.rows[0][0] == "iALS (at 12 of 50 epochs)"


def reproduce(folder, split, told=None, *, methods=("iALS",), **settings):
    plan = ReproductionPlan(experiment=TINY, methods=methods, **settings)
    run = Run(plan, split, folder, (told if told is not None else []).append)
    found = run.findings()
    return run, found


@pytest.fixture
def untimed(monkeypatch):
    monkeypatch.setattr(running, "TIMED_METHODS", ())


@pytest.mark.usefixtures("untimed")
class TestTrials:
    def test_two_runs_of_a_seed_are_the_same(self, split, tmp_path) -> None:
        """Points, settings and figures; only seconds and the names of files differ."""
        results = [
            reproduce(tmp_path / name, split, methods=FACTORS, trials=6, epochs=4)
            for name in ("first", "second")
        ]
        for first, second in zip(*(run.searches() for run, _ in results), strict=True):
            assert len(first.tried) == 6
            assert [one._replace(seconds=0) for one in first.tried] == [
                one._replace(seconds=0) for one in second.tried
            ]
        points = [
            [
                {key: value for key, value in one.items() if key != "sight"}
                for methods in found.points.values()
                for series in methods.values()
                for one in series
            ]
            for _, found in results
        ]
        assert points[0] == points[1]
        assert results[0][1].trials == {"iALS": 6, "iALS+FairRec": 12, "exADMM": 6}
        assert list(results[0][1].exposures) == [0.0, 1e-6, 1e-5, 2e-4, 3e-3, 9e-2]

    def test_an_interrupted_run_tries_what_it_would_have(self, split, tmp_path) -> None:
        reproduce(tmp_path / "parts", split, trials=2, epochs=2)
        parts, _ = reproduce(tmp_path / "parts", split, trials=4, epochs=2)
        whole, _ = reproduce(tmp_path / "whole", split, trials=4, epochs=2)
        for first, second in zip(parts.searches(), whole.searches(), strict=True):
            assert [one.settings for one in first.tried] == [one.settings for one in second.tried]

    def test_another_seed_is_another_run(self, split, tmp_path) -> None:
        one, two = (
            reproduce(tmp_path / str(seed), split, trials=3, epochs=2, seed=seed)[0].searches()[0]
            for seed in (0, 1)
        )
        assert one.tried[0].settings == two.tried[0].settings  # the published ones
        assert one.tried[0].metrics != two.tried[0].metrics
        assert one.tried[-1].settings != two.tried[-1].settings

    def test_no_clock_shortens_it(self, split, tmp_path, monkeypatch) -> None:
        slow = MethodForecast(seconds=1e6, n_bytes=1, epoch=1e4, epochs=100)
        monkeypatch.setattr(running, "forecast_method", lambda *_: slow)
        told: list[str] = []
        _, found = reproduce(tmp_path, split, told, trials=1, epochs=2, budget=0.01)
        assert not found.marks
        assert "iALS: about 1e+06 s a setting (1e+04 s an epoch), 0 MiB" in told

    def test_a_budget_does(self, split, tmp_path, monkeypatch) -> None:
        """Models end where they were told to, and tables say so."""
        slow = MethodForecast(seconds=1.0, n_bytes=1, epoch=0.01, epochs=100)
        monkeypatch.setattr(running, "forecast_method", lambda *_: slow)
        _, found = reproduce(tmp_path, split, budget=0.005)
        epochs = {name: one.at_most for name, one in found.decisions.items()}
        assert epochs["iALS"] == 21  # 0.005 minutes, 0.7 of them for tuning
        assert found.marks["iALS"] == f"at {epochs['iALS']} of 100 epochs"
        assert found.points[3]["iALS"][0]["epochs"] == epochs["iALS"]

    def test_left_out_by_name(self, split, tmp_path, monkeypatch) -> None:
        huge = MethodForecast(seconds=0.1, n_bytes=2**60, epoch=0.1, epochs=1)
        forecast = running.forecast_method
        monkeypatch.setattr(
            running,
            "forecast_method",
            lambda method, *rest: huge if method.controls else forecast(method, *rest),
        )
        told: list[str] = []
        _, found = reproduce(tmp_path, split, told, methods=FACTORS, trials=1, epochs=2)
        assert list(found.points[3]) == ["iALS", "iALS+FairRec"]
        assert "exADMM" not in found.trials
        assert any("exADMM: " in line and "left out: it needs about" in line for line in told)


class TestPaired:
    def point(self, ndcg, gini, number):
        own = {"ndcg": ndcg, "gini": gini}
        return {"validation": own, "ndcg@3": ndcg, "gini@3": gini, "number": number}

    def test_differences_are_of_the_same_users(self) -> None:
        generator = np.random.default_rng(0)
        users = [generator.random(200), generator.random(200)]
        points = {"exADMM": [self.point(0.2, 0.5, 0)], "EASE": [self.point(0.3, 0.6, 1)]}
        found = list(differences(points, 3, lambda one: users[one["number"]]))
        assert [one.level for one in found] == [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6]
        apart = users[1] - users[0]
        low, high = bootstrap_interval(apart[:, None])
        assert (found[0].difference, found[0].low, found[0].high) == (apart.mean(), low[0], high[0])

    def test_a_level_that_exadmm_does_not_reach_is_left_out(self) -> None:
        points = {"exADMM": [self.point(0.2, 0.97, 0)], "EASE": [self.point(0.3, 0.1, 1)]}
        assert not list(differences(points, 3, lambda _: np.zeros(2)))


def test_times_are_compared_for_one_length_of_vectors() -> None:
    time = {"seconds": 2.0, "epochs": 5, "inference": {"3": 1.0, "10": 2.0}}
    times = {
        "iALS": {**time, "d": 8}, "Mult-VAE": {**time, "d": 200}, "exADMM-exact": {**time, "d": 8},
        "exADMM": {**time, "seconds": 4.0, "d": 8},
    }  # fmt: skip
    table = seconds(TINY, times)
    assert [row[5] for row in table.rows] == ["0.50", None, "0.50", "1.00"]
    assert [row[8] for row in table.rows] == [0.7, 72.6, "not timed", 1.7]
    ours = seconds(
        EXPERIMENTS["gowalla"], {"iALS": {**times["iALS"], "inference": {"5": 1, "20": 1}}}
    )
    assert not any("the paper" in name for name in ours.head)


def test_re_rankers_need_ials() -> None:
    with pytest.raises(ConfigError, match="iALS\\+BestResponse starts from iALS"):
        ReproductionPlan(experiment=TINY, methods=("iALS+BestResponse",))
