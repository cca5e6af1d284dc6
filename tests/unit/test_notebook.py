"""What objects show in a console and in a notebook: short, true, and nothing but escaped text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import limelight as ll
from limelight._base.documents import Document, Table, pairs
from limelight._base.text import percent
from limelight.control.frontier_result import FrontierPoint, PointFigures
from limelight.control.target_result import TargetResult, TriedMethod
from limelight.rerank.methods.group_shares import GroupShare

EVIL = "<script>alert('1')</script>&amp;\"$x$"
MARKUP = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
STYLES = {
    ("class", "tex2jax_ignore mathjax_ignore"),
    ("style", "text-align:left"),
    ("style", "text-align:right"),
}


class Reader(HTMLParser):
    """Read rows of cells and all text; refuse any markup that is not ours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert tag in MARKUP
        assert set(attrs) <= STYLES
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self._open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)

    def row(self, name):
        [found] = [row for row in self.rows if row[0] == name]
        return found[1:]


def read(shown):
    return Reader(shown._repr_html_())


@pytest.fixture(scope="module")
def market():
    return ll.marketplace(300, 60, 4500, n_providers=6)


@pytest.fixture(scope="module")
def split(market):
    return ll.split_users(market.interactions, validation=40, test=50)


@pytest.fixture(scope="module")
def model(split):
    return ll.ExADMM(factors=4, exposure_weight=1e-3, epochs=4, trace_every=2).fit(split.train)


@pytest.fixture(scope="module")
def result(model):
    return ll.rerank(model, gini=0.25, k=5)


class TestMarkup:
    def test_everything_is_escaped_and_long_cells_are_cut(self):
        shown = Document(EVIL, [Table((EVIL, "x" * 100), [(EVIL, EVIL)])], [EVIL]).html()
        found = Reader(shown)
        assert found.rows == [[EVIL, "x" * 79 + "…"], [EVIL, EVIL]]
        assert found.texts.count(EVIL) == 5

    def test_tables_without_rows_are_left_out(self):
        assert "table" not in Document("nothing", [pairs([]), Table(("a", "b"), [])]).html()


class TestData:
    def test_interactions(self):
        data = ll.Interactions.from_matrix(
            sparse.coo_array(([1, 1, 1], ([0, 0, 1], [2, 2, 0])), shape=(2000, 4))
        )
        found = read(data)
        assert found.row("users") + found.row("items") == ["2,000", "4"]
        assert found.row("interactions") + found.row("duplicates merged") == ["2", "1"]
        assert repr(data) == (
            "Interactions(2,000 users x 4 items, 2 interactions, 1 duplicate merged)"
        )

    def test_nothing_at_all(self):
        nothing = sparse.csr_matrix((0, 0))
        empty = ll.Interactions.from_matrix(nothing)
        assert read(empty).row("interactions") == ["0"]
        part = ll.HeldOut(nothing, nothing, np.empty(0, dtype=np.int64))
        assert read(part).row("targets") == ["0"]
        split = ll.Split(empty, part, part)
        assert repr(split).splitlines()[1:3] == [f"  train: {empty!r}", f"  validation: {part!r}"]
        assert read(split).row("test") == ["0", "0", "0"]

    def test_held_out(self, split):
        part, found = split.test, read(split.test)
        assert found.row("users") == [f"{part.n_users:,}"]
        assert found.row("interactions of history") == [f"{part.history.nnz:,}"]
        assert found.row("targets") == [f"{part.targets.nnz:,}"]

    def test_split(self, split):
        found = read(split)
        assert found.row("train") == ["210", f"{split.train.nnz:,}", ""]
        part = split.validation
        assert found.row("validation") == ["40", f"{part.history.nnz:,}", f"{part.targets.nnz:,}"]
        assert "dropped" not in repr(split)
        less = ll.Split(split.train, split.validation, split.test, 3, 1)
        note = "dropped: 1 item that no training user has, 3 interactions with them"
        assert repr(less).splitlines()[-1] == f"  {note}"
        assert note in read(less).texts

    def test_marketplace(self, market):
        found = read(market)
        assert found.row("interactions") == [f"{market.interactions.nnz:,}"]
        assert found.row("providers") == ["6"]


class TestModels:
    def test_not_fitted(self):
        assert repr(ll.IALS(factors=8)) == "IALS(factors=8)"
        found = read(ll.IALS(factors=8))
        assert found.rows == [["factors", "8"], ["fitted", "no"]]

    def test_fitted(self, model):
        found, last = read(model), model.trace_[-1]
        assert found.row("exposure_weight") == ["0.001"]
        assert found.row("fitted to") == ["210 users x 60 items"]
        assert found.row("ended") == ["finished"]
        assert found.row("last traced epoch") == ["4"]
        assert float(found.row("objective")[0]) == pytest.approx(last.objective, rel=1e-5)
        assert float(found.row("seconds")[0]) == pytest.approx(last.seconds, abs=0.01)

    def test_a_model_without_epochs(self, split):
        found = read(ll.Popularity().fit(split.train))
        assert found.rows == [["fitted to", "210 users x 60 items"]]

    def test_rerankers(self, model):
        assert read(ll.BestResponse(strength=0.25)).rows == [["strength", "0.25"]]
        assert "All settings are the defaults." in read(ll.FairRec()).texts
        found = read(ll.BestResponse(strength=0.25).over(model))
        assert found.texts[0] == "BestResponse over ExADMM"
        assert found.row("strength") == ["0.25"]
        assert found.row("fitted to") == ["210 users x 60 items"]

    def test_wishes_for_many_groups_of_any_name_stay_short(self):
        wishes = {f"{EVIL}{n}": 0.5 for n in range(5000)}
        shown = ll.GroupShares(at_most=wishes)
        assert len(repr(shown)) < 400
        [[name, value]] = read(shown).rows
        assert name == "at_most"
        assert value.startswith(('{"<script>', "{'<script>"))


class TestMeasures:
    def test_evaluation(self, model, split):
        evaluation = ll.evaluate(model, split.test, k=(5, 10))
        found = read(evaluation)
        assert found.rows[0] == ["", "@5", "@10"]
        assert found.row("gini") == [f"{evaluation[f'gini@{k}']:.4f}" for k in (5, 10)]
        value, low, high = (evaluation[f"ndcg@5{bound}"] for bound in ("", "_low", "_high"))
        assert found.row("ndcg")[0] == f"{value:.4f} [{low:.4f}, {high:.4f}]"

    def test_evaluations_of_little_or_nothing(self):
        assert repr(ll.Evaluation({})) == "Evaluation"
        assert read(ll.Evaluation({})).rows == []
        uneven = ll.Evaluation({"users": 3, "ndcg@5": 0.5, f"{EVIL}@20": 1.0})
        assert read(uneven).row(EVIL) == ["", "1.0000"]
        assert repr(uneven).splitlines()[0] == "Evaluation over 3 users' lists"

    def test_audit(self):
        lists = pa.table({"user_id": [1, 1, 2], "item_id": [EVIL, "b", EVIL], "rank": [1, 2, 1]})
        groups = pa.table({"item_id": [EVIL], "group": [f"{EVIL}!"]})
        audit = ll.audit(lists, groups=groups)
        found = read(audit)
        for key in ("gini@2", "gini_floor@2"):
            assert found.row(key)[0] == f"{audit.metrics[key]:.4f}"
        assert found.row("coverage@2")[0] == percent(audit.metrics["coverage@2"], 2)
        assert found.row("gini@2")[1] == (
            f"{audit.bounds['gini@2_low']:.4f} to {audit.bounds['gini@2_high']:.4f}"
        )
        assert found.row(EVIL) == [percent(audit.most_exposed[0].share, 2), "2"]
        assert found.row(f"{EVIL}!")[-3] == f"{audit.groups[0].ratio:.2f}"
        assert set(audit.notes) <= set(found.texts)
        assert f"gini@2 {audit.metrics['gini@2']:.4f}, " in repr(audit)
        assert repr(audit).count("\n") == 1

    def test_a_comparison_shows_changes(self):
        lists = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]})
        old = pa.table({"user_id": [1, 2], "item_id": ["a", "a"], "rank": [1, 1]})
        audit = ll.audit(lists, against=old, catalogue=["a", "b"])
        before, after, change, _ = read(audit).row("coverage@1")
        assert (before, after, change) == ("50.00 %", "100.00 %", "+50.00 points")

    def test_frontier(self):
        measured = PointFigures(0.25, 0.2, 0.3, 0.7, 0.5)
        point = FrontierPoint(EVIL, 1, 0.1, measured, measured, 1.0, 2.0, 3, on_front=True)
        front = ll.Frontier((point,), at=10, notes=(EVIL,))
        found = read(front)
        assert found.rows[1] == [
            f"{EVIL}-1", "0.1", "yes", "0.2500", "0.7000", "50.0 %",
            "0.2500", "0.2000-0.3000", "0.7000", "50.0 %", "1.0",
        ]  # fmt: skip
        assert EVIL in found.texts

    def test_an_empty_frontier(self):
        front = ll.Frontier((), at=10)
        assert repr(front) == "Frontier of no method, lists of 10"
        assert read(front).rows == []


class TestResults:
    def test_rerank_result(self, result):
        found = read(result)
        expected = [f"{result.metrics[f'gini@5{when}']:.3f}" for when in ("_before", "")]
        assert found.row("Gini of exposure") == expected
        assert found.row("relevance given up") == ["", f"{100 * result.relevance_loss:.2f} %"]
        [gained, _] = result.changes(1)
        assert found.row(str(gained[0].id)) == [
            f"{100 * share:.3f} %" for share in (gained[0].before, gained[0].after)
        ]
        assert f"Gini of exposure {expected[0]} -> {expected[1]}" in repr(result)
        assert len(repr(result)) < 300
        assert f"exposure over {result.lengths.users} users' lists and 60 items" in found.texts[0]
        assert "array" not in repr(result)

    def test_hostile_ids_and_groups_of_a_rerank_result(self, result):
        names = np.array([f"{EVIL}{n}" for n in range(60)], dtype=object)
        groups = tuple(GroupShare(f"{EVIL}g{n}", 0.5 - n / 200, 0.1, 0, 1) for n in range(99))
        found = read(replace(result, item_ids=names, groups=groups, notes=(EVIL,)))
        assert found.row(f"{EVIL}g0") == ["50.000 %", "10.000 %"]
        assert sum(row[0].startswith(f"{EVIL}g") for row in found.rows) == 12
        assert EVIL in found.texts

    def test_a_rerank_result_without_any_exposure(self, result):
        nothing = np.zeros(60)
        found = read(replace(result, exposure=nothing, exposure_before=nothing))
        assert found.row("items shown")

    def test_target_result(self, model):
        test = {"gini@5": 0.61, "coverage@5": 0.9, "ndcg@5": 0.2, "ndcg_loss@5": 0.02}
        bounds = {"gini@5_low": 0.6, "gini@5_high": 0.62, "gini@5_before": 0.8}
        bounds |= {"users": 12, "scored_users": 3, "ndcg@5_before": 0.25}
        bounds |= {"ndcg_loss@5_low": 0.01, "ndcg_loss@5_high": 0.03}
        served = {"users": 12, "items": 9, "gini@5": 0.6, "coverage@5": 1.0}
        served |= {"gini@5_before": 0.8, "coverage@5_before": 0.5}
        result = TargetResult(
            model=model,
            plain=model,
            method=EVIL,
            strength=0.5,
            met=False,
            goal={"group_cap": {f"{EVIL}{n}": 0.1 for n in range(5000)}, "gini": 0.6},
            at=5,
            validation=test,
            test=test | bounds,
            served=served,
            population="12 users' lists",
            seconds=1.0,
            tried=(TriedMethod(f"{EVIL}t", 0.5, 0.61, 0.9, 0.02, met=False),),
            groups=(GroupShare(f"{EVIL}g", 0.5, 0.25, 0, 1),),
            notes=(EVIL,),
        )
        found = read(result)
        assert found.row("gini") == ["0.8000", "0.6100", "0.6000 to 0.6200", "0.6100"]
        assert found.row(f"{EVIL}t")[-1] == "out of reach"
        assert found.row(f"{EVIL}g") == ["50.00 %", "25.00 %"]
        assert EVIL in found.texts
        assert f"nearest by: {EVIL}, strength 0.5" in found.texts
        assert repr(result).splitlines()[:2] == [
            "The target is not met: over 12 users' lists and 9 items, the Gini@5 of exposure falls "
            "from 0.800 to 0.600, and the share of the items shown rises from 50.0 % to 100.0 %; "
            "every group has what was asked, as before.",
            "It costs 2.0 % of nDCG@5 (1.0 % to 3.0 %), 0.2500 -> 0.2000 for 3 test users served "
            "among them.",
        ]
        assert len(repr(result)) < 700
