"""Re-rankers over the best iALS: FairRec's longer lists, and best response."""

import numpy as np
import pytest

from limelight.lab.paper import points
from limelight.lab.paper.experiments import DataSize, make_up
from limelight.lab.paper.points import chosen_trials
from limelight.lab.paper.rerankers import RerankedLists, best_response_lists, reranking_method
from limelight.lab.paper.tuning import Allowance, Search
from limelight.models import IALS
from limelight.rerank.methods.best_response import BestResponse
from limelight.rerank.methods.fairrec import FairRec

K = 5


@pytest.fixture(scope="module")
def split():
    return make_up(DataSize(400, 80, 6000), held_out=50)


@pytest.fixture(scope="module")
def model(split):
    return IALS(factors=8, epochs=10).fit(split.train)


def fair(model, split, k=K, **settings):
    method = reranking_method("iALS+FairRec", model, k)
    given = {"length": k, "scale": 1.0, "forced": 0, **settings}
    return method.fit(given, split).recommend(split.test.history, k)


def test_lists_of_their_own_length_are_those_of_fairrec(model, split) -> None:
    lists = fair(model, split, scale=0.5)
    guarantee = 0.5 * 50 * K / 80
    assert guarantee % 1
    expected = FairRec(guarantee=guarantee).over(model).recommend(split.test.history, k=K)
    np.testing.assert_array_equal(lists.ids, expected.ids)


@pytest.mark.parametrize(("forced", "order"), [(0, "relevance"), (1, "forced")])
def test_longer_lists_are_cut(model, split, forced, order) -> None:
    lists = fair(model, split, length=15, scale=0.4, forced=forced)
    longer = FairRec(guarantee=0.4 * 50 * 15 / 80, order=order).over(model)
    expected = longer.recommend(split.test.history, k=15).ids[:, :K]
    np.testing.assert_array_equal(lists.ids, expected)
    assert lists.ids.shape == lists.scores.shape == (50, K)


def test_a_list_is_never_shorter_than_asked_nor_longer_than_the_catalogue(model, split) -> None:
    np.testing.assert_array_equal(fair(model, split, length=2).ids, fair(model, split).ids)
    assert fair(model, split, length=900, scale=0.1).ids.shape == (50, K)
    assert reranking_method("iALS+FairRec", model, 40).space["length"].high == 80


def test_the_guarantee_is_that_of_the_users_who_ask(model, split) -> None:
    """The same scale on other users is another count, so that it can be chosen on validation."""
    method = reranking_method("iALS+FairRec", model, K)
    settings = {"length": K, "scale": 1.0, "forced": 0}
    for n_users in (16, 32):
        lists = method.fit(settings, split).recommend(split.test.history[:n_users], K)
        shown = np.bincount(lists.ids.ravel(), minlength=80)
        # Everybody's places are shared evenly: 1 list for each item, and then 2.
        assert np.count_nonzero(shown < n_users * K // 80) <= K - 1


def test_best_response(model, split) -> None:
    lists = best_response_lists(model, split.test.history, {"strength": 0.3}, K)
    expected = BestResponse(strength=0.3).over(model).recommend(split.test.history, k=K)
    np.testing.assert_array_equal(lists.ids, expected.ids)


def test_a_search_has_a_front_and_makes_lists_again(model, split, tmp_path, monkeypatch) -> None:
    search = Search("iALS+FairRec", reranking_method("iALS+FairRec", model, K), tmp_path, (K,))
    search.run(split, Allowance(trials=8), lambda _: None)
    assert len(search.tried) == 8
    chosen = search.chosen(K)
    assert len(chosen) > 2
    ginis = [one.metrics["gini@5"] for one in chosen]
    assert ginis == sorted(ginis)
    assert chosen_trials(search, split, K) == chosen
    monkeypatch.setattr(points, "MANY_ITEMS", 79)
    monkeypatch.setattr(points, "FEW_POINTS", 2)
    assert chosen_trials(search, split, K) == [chosen[0], chosen[-1]]
    lists = search.model(chosen[0], split)
    assert isinstance(lists, RerankedLists)
    assert lists.settings == chosen[0].settings
    assert not list(tmp_path.glob("model-*"))
