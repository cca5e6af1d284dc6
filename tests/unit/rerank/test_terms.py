"""A paragraph in plain words says what decides, why, and what that costs."""

import pytest

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.rerank.terms import ListRules, paragraph, promised_rules


def test_a_target_is_told_in_plain_words():
    promise = {
        "target": {"gini": 0.6, "max_ndcg_loss": 0.05, "at": 20},
        "method": "best response (log) of calibrated",
        "strength": 0.3,
        "test": {"ndcg_loss@20": 0.034, "ndcg_loss@20_low": 0.02, "ndcg_loss@20_high": 0.048},
    }
    text = paragraph(promised_rules(promise, "ExADMM"))
    assert text.startswith("You are shown lists of up to 20 items. Two things decide which items")
    assert "of two items that fit you about equally, the one that is shown less comes first" in text
    assert "learnt from what you and other users chose before" in text
    assert "a Gini index of attention of at most 0.6 (0: all get the same, 1: one gets all)" in text
    assert "and at most 5.0 % of the accuracy of lists is given up" in text
    assert text.endswith("find what users choose 3.4 % (2.0 % to 4.8 %) less well because of it.")
    assert "Gini index" not in paragraph(promised_rules({**promise, "strength": 0.0}, "ExADMM"))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("online", "the one that is shown less comes first"),
        ("prices (groups, exponent 3)", "drawn for you by your user number"),
        ("best-response (power 2, subsidised order)", "the one that is shown less comes first"),
        ("exadmm", "how much attention an item would get from all users together"),
        ("allocate", "every item stands in at least some lists"),
        ("fairrec", "every item is guaranteed some lists"),
        ("group prices", "items of a group that gets too little of it come earlier"),
        ("MyOwn", r"a rule that shares attention among items (MyOwn)"),
    ],
)
def test_methods_have_words_of_their_own(method, words):
    assert words in paragraph(ListRules(method, {}, 10))


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"min_coverage": 0.5}, "at least 50.0 % of the items are shown to somebody"),
        ({"min_mmf": 0.35, "of": "x.csv"}, "that gets least attention gets at least 35.0 % of it"),
        ({"max_relevance_loss": 0.02}, "at most 2.0 % of the fit is given up"),
        ({"group_cap": 0.03}, "no group gets more than 3.0 % of the attention"),
        ({"group_cap": {"acme": 0.03}}, "no group gets more attention than was set for it"),
        ({"group_floor": {"acme": 0.03}}, "no group gets less attention than was set for it"),
        ({"group_shares": {"acme": 1}}, "groups get the shares of attention that were set for th"),
    ],
)
def test_wishes_have_words_of_their_own(goal, words):
    text = paragraph(ListRules("best response", goal, 10))
    assert f"for this aim: {words}" in text or words in text
    assert "acme" not in text
    assert "x.csv" not in text


def test_sellers_are_named_where_attention_is_theirs():
    text = paragraph(ListRules("best response", {"gini": 0.3}, 10, of_groups=True))
    assert "the one whose group is shown less comes first" in text
    assert "a few sellers or groups only" in text


def test_what_costs_nothing_is_not_told_as_a_cost():
    for loss in (-0.02, 0.0001):
        text = paragraph(ListRules("online", {}, 10, loss=loss))
        assert text.endswith("lists find what users choose no less well because of it.")


def test_lists_from_scores_speak_of_scores():
    market = ll.marketplace(300, 60, 6000, seed=1)
    model = ll.Popularity().fit(market.interactions)
    found = ll.rerank(model, k=5, gini=0.5, method="online")
    text = found.explain(form="terms")
    assert "the score that our recommender gives it for you" in text
    assert "at most 0.5" in text
    assert "less well because of it" in text
    assert found.explain() == found.explain(form="details") != text
    with pytest.raises(ConfigError, match="unknown form of an explanation: 'law'"):
        found.explain(form="law")
