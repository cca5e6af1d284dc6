"""A model card says what is known, has no ids, and its head is metadata that others read."""

import json

import numpy as np
import pytest
import yaml
from scipy import sparse

import limelight as ll
from limelight._base.errors import DataError
from limelight.control.card import model_card, model_terms

PROMISE = {
    "target": {"gini": 0.6, "group_cap": {"acme": 0.1}, "at": 5},
    "population": "300 users' lists",
    "method": "best response (log) of scores",
    "strength": 0.25,
    "met": True,
    "served": {
        "users": 300,
        "items": 60,
        "gini@5": 0.6,
        "gini@5_before": 0.8,
        "coverage@5": 0.9,
        "coverage@5_before": 0.5,
    },
    "test": {
        "users": 300,
        "items": 60,
        "scored_users": 30,
        "ndcg@5": 0.2,
        "ndcg@5_low": 0.15,
        "ndcg@5_high": 0.25,
        "ndcg@5_before": 0.21,
        "gini@5": 0.61,
        "ndcg_loss@5": 0.05,
        "ndcg_loss@5_low": 0.01,
        "ndcg_loss@5_high": 0.09,
    },
}


@pytest.fixture(scope="module")
def model():
    data = ll.marketplace(300, 60, 6000, seed=1).interactions
    return ll.IALS(factors=8, epochs=2).fit(data)


@pytest.fixture
def promised(model):
    found = ll.BestResponse(strength=0.25).over(model)
    found.promise = PROMISE
    return found


def head_of(card):
    assert card.startswith("---\n")
    return yaml.safe_load(card.split("---\n")[1])


def test_the_head_is_read_by_others(promised):
    head = head_of(model_card(promised, 'films: "best" of\n2026'))
    assert head["library_name"] == "limelight"
    assert head["tags"] == ["recommender-system", "implicit-feedback", "ials", "exposure-control"]
    assert "license" not in head
    [index] = head["model-index"]
    assert index["name"] == 'films: "best" of\n2026'
    [result] = index["results"]
    assert result["task"]["type"] == "recommendation"
    assert set(result["dataset"]) == {"name", "type"}
    found = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert found == {"ndcg@5": 0.2, "gini@5": 0.61, "ndcg_loss@5": 0.05}
    assert result["metrics"][0]["name"] == "nDCG, lists of 5 (95 %: 0.1500 to 0.2500)"


def test_a_promise_is_told_with_its_intervals(promised):
    card = model_card(promised, "films")
    for words in (
        "| users | 300 |",
        "| interactions | 6,000 |",
        "| re-ranker | BestResponse |",
        "| strength | 0.25 |",
        "Accuracy is of 30 users, held out when it was measured, exposure over 300 users' lists "
        "and 60 items, among them these.",
        "| nDCG @5 | 0.2100 | 0.2000 | 0.1500 | 0.2500 |",
        "Asked for: gini 0.6, group_cap one for each of 1 group, in lists of 5, over 300 users'",
        "The target is met by best response (log) of scores at strength 0.25.",
        "falls from 0.800 to 0.600, and the share of the items shown rises from 50.0 % to 90.0 %",
        "It costs 5.0 % of nDCG@5 (1.0 % to 9.0 %), for test users.",
        "- The promise is for 300 users' lists, together.",
        "Popular items are held out more often",
        model_terms(promised),
    ):
        assert words in card, words
    assert "acme" not in card


def test_a_missed_target_is_told(promised):
    promised.promise = {**PROMISE, "met": False}
    assert "The target is not met by best response" in model_card(promised)


def test_a_model_without_a_promise_promises_nothing(model):
    card = model_card(model, "films")
    assert "model-index" not in head_of(card)
    assert "No promise is made about exposure: it is not controlled" in card
    assert "Nothing was measured. `limelight evaluate" in card
    assert "One thing decides which items these are" in card
    controlled = model_card(ll.BestResponse(strength=0.25).over(model))
    assert "No promise is made about exposure: the strength of its control was given" in controlled
    assert "the one that is shown less comes first" in controlled
    assert "Lists are made together" in controlled
    assert "One thing decides" in model_card(ll.BestResponse(strength=0).over(model))


def test_control_in_training_is_told():
    data = ll.marketplace(300, 60, 6000, seed=1).interactions
    model = ll.ExADMM(factors=8, epochs=2, exposure_strength=0.5).fit(data)
    assert "would get from all users together" in model_card(model)


def test_figures_of_an_evaluation_are_taken(model):
    figures = {"part": "test", "users": 30, "items": 60, "gini@5": 0.7, "coverage@5": np.nan}
    card = model_card(model, evaluation=figures)
    assert "Accuracy is of 30 users, held out when it was measured, exposure over 30 users'" in card
    [metric] = head_of(card)["model-index"][0]["results"][0]["metrics"]
    assert (metric["type"], metric["value"]) == ("gini@5", 0.7)


@pytest.mark.parametrize("evaluation", [{}, {"users": 3}, {"ndcg@5": "0.5"}, {"ndcg@5": True}])
def test_something_else_than_an_evaluation(model, evaluation):
    with pytest.raises(DataError, match="no figures of an evaluation") as end:
        model_card(model, evaluation=evaluation)
    assert "limelight evaluate model/ split/ --json" in end.value.hint


def test_a_card_has_no_ids_and_no_markup_of_names(tmp_path):
    users, items = [f"user-{n}" for n in range(40)], [f"film-{n}" for n in range(12)]
    rng = np.random.default_rng(0)
    table = {"user_id": rng.choice(users, 300), "item_id": rng.choice(items, 300)}
    groups = ll.GroupShares(at_most={"seller-1": 0.5})
    model = ll.IALS(factors=4, epochs=2).fit(ll.read(table))
    card = model_card(model, "<b>[x](y)\x1b") + model_card(groups.over(model))
    assert not any(word in card for word in ("user-", "film-", "seller-1", "<b>", "\x1b"))
    assert "# Model card: \\<b\\>\\[x\\](y)" in card
    assert json.dumps("<b>[x](y)\x1b") not in card  # nothing was measured, so nothing is indexed


def test_a_matrix_has_no_ids_either():
    model = ll.Popularity().fit(sparse.csr_matrix([[1, 0], [1, 1]]))
    assert "| interactions | 3 |" in model_card(model)
