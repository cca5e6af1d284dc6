"""The parts of a reproduction: data, fronts, cached results, the search, tables and figures."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight._base.errors import ConfigError, DataError, SolveError
from limelight.data.synthetic import marketplace
from limelight.lab.fronts import front, thin
from limelight.lab.paper.experiments import EXPERIMENTS, DataSize, find, make_up, prepare, size_of
from limelight.lab.paper.methods import PaperMethod, Range
from limelight.lab.paper.points import Sights
from limelight.lab.paper.report import distribution
from limelight.lab.paper.tuning import Allowance, Search
from limelight.lab.tables import statistics, weights
from limelight.models import IALS, ExADMM
from limelight.report.exhibit import ShownLists
from limelight.store.checkpoint import ResultCache

SPACE = {"regularization": Range(1e-3, 1e-1)}


@pytest.fixture(scope="module")
def split():
    return make_up(DataSize(400, 80, 6000), held_out=50)


class TestExperiments:
    def test_unknown_name(self) -> None:
        with pytest.raises(ConfigError, match="unknown experiment: 'netflix'"):
            find("netflix")

    def test_other_data_are_refused(self) -> None:
        data = marketplace(300, 100, 9000).interactions
        users = np.repeat(np.arange(300), np.diff(data.indptr))
        ratings = np.full(data.nnz, 5)
        table = pa.table({"user": users, "item": data.indices, "rating": ratings})
        experiment = EXPERIMENTS["epinions"]
        with pytest.raises(DataError, match="this is not Epinions as the paper has it"):
            prepare(replace(experiment, held_out=20), table, {})

    def test_made_up_data_have_the_size(self) -> None:
        size = DataSize(300, 100, 4000)
        assert size_of(make_up(size, held_out=20)) == size


points = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


class TestFront:
    @given(points)
    def test_nobody_beats_the_front(self, results) -> None:
        kept = front(results, lambda r: r[0], lambda r: r[1])
        assert all(
            not (other[0] >= one[0] and other[1] <= one[1] and other != one)
            for one in kept
            for other in results
        )

    @given(points)
    def test_everybody_else_is_beaten(self, results) -> None:
        kept = front(results, lambda r: r[0], lambda r: r[1])
        for one in results:
            assert any(other[0] >= one[0] and other[1] <= one[1] for other in kept)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(2, 12))
    def test_thinned_keeps_the_ends(self, places, most) -> None:
        places = sorted(places)
        kept = thin(places, most, float)
        assert len(kept) <= most
        assert {kept[0], kept[-1]} == {places[0], places[-1]}


class TestNotebook:
    def test_another_run_is_refused(self, tmp_path) -> None:
        ResultCache(tmp_path, {"epochs": 5}).once("a", lambda: 1)
        with pytest.raises(ConfigError, match="another run, with epochs 5 instead of 6"):
            ResultCache(tmp_path, {"epochs": 6})

    @pytest.mark.parametrize("text", ["{", "[" * 100_000])
    def test_a_damaged_one_is_refused(self, tmp_path, text) -> None:
        (tmp_path / "notebook.json").write_text(text)
        with pytest.raises(DataError, match="cannot read"):
            ResultCache(tmp_path, {})

    def test_is_written_after_each_result(self, tmp_path) -> None:
        cache = ResultCache(tmp_path, {})
        cache.once("a", lambda: [1.5])

        def stumble() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            cache.once("b", stumble)
        assert json.loads((tmp_path / "notebook.json").read_text())["results"] == {"a": [1.5]}


class TestSearch:
    def search(self, folder, **settings) -> Search:
        fixed = {"factors": 8, "epochs": 2}
        method = PaperMethod(kind=ExADMM, fixed=fixed, space=SPACE, controls=True, **settings)
        return Search("exADMM", method, folder, (5, 10))

    def test_without_time_only_the_first_settings_are_tried(self, split, tmp_path) -> None:
        search = self.search(tmp_path, first=[{"regularization": 0.01}, {"regularization": 9.0}])
        search.run(split, Allowance(), lambda _: None)
        assert [one.settings["regularization"] for one in search.tried] == [0.01, 0.1]

    def test_goes_on_where_it_stopped(self, split, tmp_path) -> None:
        first = self.search(tmp_path)
        first.run(split, Allowance(0.2), lambda _: None)
        before = first.tried
        again = self.search(tmp_path)
        assert again.tried == before
        again.run(split, Allowance(2 * sum(one.seconds for one in before) + 0.1), lambda _: None)
        drawn = [one.settings["regularization"] for one in again.tried]
        assert len(drawn) > len(before)
        assert len(set(drawn)) == len(drawn)

    def test_an_interrupted_trial_is_tried_again(self, split, tmp_path, monkeypatch) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        search = self.search(tmp_path, first=[{"regularization": 0.01}])
        monkeypatch.setattr(ExADMM, "fit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            search.run(split, Allowance(), lambda _: None)
        monkeypatch.undo()
        again = self.search(tmp_path, first=[{"regularization": 0.01}])
        again.run(split, Allowance(), lambda _: None)
        assert [one.settings["regularization"] for one in again.tried] == [0.01]

    def test_nothing_that_gave_lists(self, tmp_path) -> None:
        with pytest.raises(SolveError, match="no settings of exADMM gave lists"):
            self.search(tmp_path).chosen(5)

    def test_a_torn_line_is_dropped(self, split, tmp_path) -> None:
        self.search(tmp_path).run(split, Allowance(), lambda _: None)
        journal = tmp_path / "trials.journal"
        with journal.open("a") as file:
            file.write('{"op_code": 4, "wor')
        assert len(self.search(tmp_path).tried) == 1

    def test_a_damaged_journal_is_refused(self, tmp_path) -> None:
        (tmp_path / "trials.journal").write_text("what is this\n")
        with pytest.raises(DataError, match="cannot read"):
            self.search(tmp_path)

    def test_models_of_the_front_can_be_loaded(self, split, tmp_path) -> None:
        search = self.search(tmp_path)
        search.run(split, Allowance(0.5), lambda _: None)
        chosen = {one.number: one for k in (5, 10) for one in search.chosen(k)}
        for one in chosen.values():
            assert search.model(one, split).config.regularization == one.settings["regularization"]
        assert len(list(tmp_path.glob("model-*"))) == len(chosen)

    def test_a_fit_that_fails_does_not_end_the_search(self, split, tmp_path) -> None:
        method = PaperMethod(
            kind=ExADMM,
            fixed={"factors": 8, "epochs": 20, "exposure_weight": 1.0},
            space={"learning_rate": Range(1e-4, 1e4)},
            first=[{"learning_rate": 1e4}, {"learning_rate": 1e-3}],
            controls=True,
        )
        told: list[str] = []
        search = Search("exADMM", method, tmp_path, (5,))
        search.run(split, Allowance(), told.append)
        assert [one.settings["learning_rate"] for one in search.tried] == [1e-3]
        assert len(told) == 2

    def test_without_control_the_most_accurate_is_chosen(self, split, tmp_path) -> None:
        method = PaperMethod(kind=IALS, fixed={"factors": 8, "epochs": 2}, space=SPACE)
        search = Search("iALS", method, tmp_path, (5,))
        search.run(split, Allowance(0.3), lambda _: None)
        (one,) = search.chosen(5)
        assert one.metrics["ndcg@5"] == max(other.metrics["ndcg@5"] for other in search.tried)


def test_tables_for_programs() -> None:
    table = statistics(EXPERIMENTS["msd"], DataSize(1, 2, 3), made_up=True)
    assert table.csv().splitlines()[0] == "data,users,items,interactions"
    assert table.csv().splitlines()[2] == "made up like MSD,1,2,3"


def test_weights_in_numbers() -> None:
    table = weights({0.0: [3.0, 1.0, 0.0, 0.0], 1e-6: [1.0, 1.0, 1.0, 1.0]}, 20)
    assert table.rows == [["0", "0.6250", "0.5000"], ["1e-06", "0.0000", "1.0000"]]


def test_the_curve_of_ials_is_flat() -> None:
    ax = distribution({0.0: [3.0, 1.0, 0.0], 0.1: [2.0, 1.0, 1.0]}, "Figure")
    flat, risen = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_array_equal(flat, 0)
    assert risen[0] > 0


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/hostname", "a/b"])
def test_a_name_in_a_notebook_does_not_lead_out_of_its_folder(tmp_path, name) -> None:
    sights = Sights(tmp_path / "sights")
    with pytest.raises(DataError, match="names a file outside of its folder"):
        sights.shown_at({"sight": name})
    assert sights.shown_at({"sight": "nothing.safetensors"}) == ShownLists()
