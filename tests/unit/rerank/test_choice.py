"""Which variant of best response is chosen on a sample of the users."""

import sys

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight.data import read_candidates
from limelight.data.candidates.candidates import Candidates
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import ScoreRelevance
from limelight.rerank.targets import choice
from limelight.rerank.targets.choice import Variant, WholePopulation, choose_variant
from limelight.rerank.targets.controls import BestResponseControl, SearchContext
from limelight.rerank.targets.search import Goal, JointGoal, Measure, OutOfReachError, meet

K = 5


def candidates(n_users=400, n_items=60, seed=0) -> Candidates:
    """Make candidates of items that differ in how popular they are."""
    generator = np.random.default_rng(seed)
    scores = np.exp(generator.normal(size=(n_users, n_items)) + np.linspace(2, -2, n_items))
    users, items = np.indices(scores.shape).reshape(2, -1)
    return read_candidates(
        pa.table({"user_id": users, "item_id": items, "score": scores.ravel()}),
    )


@pytest.fixture(scope="module")
def context():
    pool = Pool(candidates(), ScoreRelevance())
    return SearchContext(pool, K, threads=1, seed=0)


class Losses:
    """Stands for the trials on a sample: what each variant loses is given."""

    def __init__(self, losses):
        self.losses = losses
        self.tried = []

    def __call__(self, variant, near):
        self.tried.append((variant, near))
        return choice._Cost(self.losses.get(str(variant), 1.0), 0.25)


def chosen(monkeypatch, context, losses, **settings):
    found = Losses(losses)
    monkeypatch.setattr(choice._Trials, "_meet", lambda _, *given: found(*given))
    best = choose_variant(context, Goal("gini", 0.4), ScoreRelevance(), **settings)
    return str(best.variant), found.tried


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ({}, "log"),
        ({"power 2": 0.9}, "power 2"),
        ({"power 2": 0.9, "gini": 0.8}, "gini"),
        ({"power 2": 0.995, "gini": 0.995}, "log"),
        ({"log, subsidised order": 0.98}, "log"),
        ({"log, subsidised order": 0.9}, "log, subsidised order"),
        ({"log, thorough": 0.985}, "log"),
        ({"log, thorough": 0.9}, "log, thorough"),
        ({"log": np.inf, "power 2": 0.1}, "log"),
        (
            {
                "power 2": 0.9,
                "power 2, subsidised order": 0.8,
                "power 2, subsidised order, thorough": 0.7,
            },
            "power 2, subsidised order, thorough",
        ),
    ],
)
def test_another_variant_is_taken_where_it_loses_less_by_more_than_the_doubt(
    monkeypatch, context, losses, best
):
    assert chosen(monkeypatch, context, losses)[0] == best


def test_a_thorough_variant_is_not_tried_where_it_cannot_be_used(monkeypatch, context):
    best, tried = chosen(monkeypatch, context, {"log, thorough": 0.1}, thorough=False)
    assert best == "log"
    assert not any(variant.thorough for variant, _ in tried)


def test_items_are_not_compared_where_they_are_too_many(monkeypatch, context):
    monkeypatch.setattr(choice, "_COMPARED", 59)
    _, tried = chosen(monkeypatch, context, {})
    assert {variant.welfare for variant, _ in tried} == {"log", "power"}


def test_later_variants_are_searched_from_where_the_best_ended(monkeypatch, context):
    _, tried = chosen(monkeypatch, context, {})
    assert [near for _, near in tried] == [None, 0.25, 0.25, 0.25, 0.25]
    assert len({variant for variant, _ in tried}) == len(tried)


def test_the_choice_is_among_the_best_over_everybody(context):
    goal, pool = Goal("gini", 0.3), context.pool
    found = choose_variant(context, goal, ScoreRelevance())
    assert found.strength > 0

    def loss(variant):
        return meet(BestResponseControl(context, **vars(variant)), goal).measure.loss

    least = min(loss(Variant(welfare)) for welfare in ("log", "power", "gini"))
    assert loss(found.variant) <= 1.05 * least
    assert pool.n_users == 400


def test_a_sample_is_asked_for_as_much_of_what_so_many_lists_allow(context):
    own = Measure(gini=0.8, coverage=0.5, loss=0.0)
    everybody = WholePopulation(400, own)
    assert choice._on_sample(Goal("gini", 0.4), everybody, own, context).value == pytest.approx(0.4)
    many = WholePopulation(10**6, own)
    assert choice._on_sample(Goal("gini", 0.4), many, own, context).value > 0.4
    fewer = Measure(gini=0.9, coverage=0.3, loss=0.0)
    asked = choice._on_sample(Goal("min_coverage", 0.75), many, fewer, context)
    assert (asked.kind, asked.value) == ("min_coverage", pytest.approx(0.65))
    loss = choice._on_sample(Goal("max_relevance_loss", 0.1), many, fewer, context)
    assert (loss.kind, loss.value) == ("max_relevance_loss", 0.1)
    both = JointGoal.of([Goal("max_ndcg_loss", 0.1), Goal("gini", 0.4)])
    assert choice._on_sample(both, everybody, own, context).kind == "gini"
    met = Goal("gini", 0.9)
    assert choice._on_sample(met, everybody, own, context).value == pytest.approx(0.8)


def test_a_sample_holds_a_share_of_the_candidates(monkeypatch):
    monkeypatch.setattr(choice, "_FEWEST", 600)
    with candidates() as many:
        assert choice._sample_size(many) == 400 // choice._SHARE
        monkeypatch.setattr(choice, "_MOST", 600)
        assert choice._sample_size(many) == 10
        monkeypatch.setattr(choice, "_WIDTH", 20)
        assert choice._sample_size(many) == 30


def test_a_goal_out_of_reach_of_the_sample_leaves_the_usual_variant(context, monkeypatch):
    def refuse(*_, **__):
        message = "out of reach"
        raise OutOfReachError(message)

    monkeypatch.setattr(choice, "meet", refuse)
    found = choose_variant(context, Goal("gini", 0.4), ScoreRelevance())
    assert found.variant == Variant()


def test_the_name_of_the_method_says_what_was_chosen(monkeypatch):
    variant = Variant("power", order="subsidised", thorough=True)
    # The package has a function of the module's name.
    module = sys.modules["limelight.rerank.rerank"]
    monkeypatch.setattr(module, "choose_variant", lambda *_: choice.VariantChoice(variant, 0.2))
    with candidates() as found:
        result = ll.rerank(found, k=K, gini=0.4, relevance="score", show_progress=False)
        assert result.method == "best-response (power 2, subsidised order, thorough)"
        assert result.metrics["gini@5"] == pytest.approx(0.4, abs=0.01)
        same = ll.BestResponse(strength=result.strength, **variant.settings())
        assert same.get_params()["order"] == "subsidised"
