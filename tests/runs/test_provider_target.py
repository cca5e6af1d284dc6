"""Targets for the exposure of providers: a model that meets them, however users are served."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError, SolveError
from limelight.metrics.exposure import gini, mmf

K = 10
FAILED, WRONG_USE = 1, 2


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(1200, 150, 24_000, seed=3).interactions


@pytest.fixture(scope="module")
def studios(data):
    """Studios of unlike size; every tenth item has none."""
    numbers = np.arange(data.n_items)
    names = [f"s{int(number**0.5) * 7 % 11}" for number in numbers]
    return pa.table({"item_id": data.item_ids, "group": names}).filter(numbers % 10 > 0)


def small():
    return ll.IALS(factors=8, epochs=8)


def held(lists, model, studios):
    members = ll.read_groups(studios, model.item_ids)
    given = ll.exposure(lists, len(model.item_ids))
    return np.bincount(members.groups, given[members.items])


@pytest.mark.parametrize("serve", ["batch", "stream", "stateless"])
def test_a_gini_of_studios_holds_for_everybody(data, studios, serve, tmp_path):
    result = ll.fit_to(data, gini=0.2, of=studios, at=K, serve=serve, model=small())
    assert result.met
    assert result.served["group_gini@10_before"] > 0.25
    assert result.served["group_gini@10"] == pytest.approx(0.2, abs=0.012)
    assert result.goal == {"gini": 0.2, "of": "11 groups"}
    before = held(result.plain.recommend(k=K).ids, result.plain, studios)
    assert result.served["group_gini@10_before"] == pytest.approx(gini(before), abs=1e-9)
    # The folder knows who is whose: whoever comes is served as promised.
    result.model.save(tmp_path / "model")
    lists = ll.load(tmp_path / "model").recommend(k=K).ids
    assert gini(held(lists, result.plain, studios)) == pytest.approx(0.2, abs=0.02)
    text = str(result)
    for words in ("Gini of 11 groups", "Gini within groups", "and 11 groups, the Gini@10"):
        assert words in text


def test_a_max_min_fairness_holds_for_everybody(data, studios):
    result = ll.fit_to(data, min_mmf=0.38, of=studios, at=K, model=small())
    lists = result.model.recommend(k=K).ids
    assert mmf(held(lists, result.plain, studios)) == pytest.approx(0.38, abs=0.011)
    assert result.served["group_mmf@10"] == pytest.approx(0.38, abs=0.011)


def test_a_loss_is_spent_on_studios(data, studios):
    result = ll.fit_to(data, max_ndcg_loss=0.05, of=studios, at=K, model=small())
    assert result.served["group_gini@10"] < result.served["group_gini@10_before"] - 0.02


def test_a_cap_holds_beside_a_gini_of_studios(data, studios):
    wishes = {"gini": 0.25, "of": studios, "groups": studios, "group_cap": 0.16}
    result = ll.fit_to(data, at=K, model=small(), nearest=True, **wishes)
    assert max(share.after for share in result.groups) <= 0.162
    assert result.served["group_gini@10"] <= 0.262


def test_plain_lists_that_are_even_enough_stay(data, studios):
    result = ll.fit_to(data, gini=0.9, of=studios, at=K, model=small())
    assert result.method == "the plain model"
    assert result.served["group_gini@10"] == result.served["group_gini@10_before"]


@pytest.mark.parametrize(
    ("wishes", "kind", "message"),
    [
        ({"min_mmf": 0.3}, ConfigError, "an MMF needs groups of items"),
        ({"gini": 0.3, "of": "missing.csv"}, DataError, "no such file or folder: missing.csv"),
        (
            {"gini": 0.3, "of": pa.table({"item_id": [0], "group": ["x"]})},
            DataError,
            "shared among groups, and there is one: 'x'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_a_fit(data, wishes, kind, message):
    with pytest.raises(kind, match=message) as caught:
        ll.fit_to(data, at=K, model=small(), **wishes)
    assert caught.value.hint


def test_groups_need_a_target(data, studios):
    with pytest.raises(ConfigError, match="there is no target"):
        ll.fit_to(data, of=studios, at=K, model=small())


def test_a_cap_beside_studios_is_not_for_machines_that_share_nothing(data, studios):
    wishes = {"gini": 0.25, "of": studios, "groups": studios, "group_cap": 0.16}
    with pytest.raises(ConfigError, match="are not met by machines that share nothing"):
        ll.fit_to(data, at=K, model=small(), serve="stateless", **wishes)


def test_a_gini_out_of_reach_says_what_is_possible(data):
    # One item cannot have half of all exposure, because a list shows it once at most.
    names = ["small" if number == 0 else "large" for number in range(data.n_items)]
    studios = pa.table({"item_id": data.item_ids, "group": names})
    with pytest.raises(SolveError, match="a Gini index of 0 among 2 groups over") as caught:
        ll.fit_to(data, gini=0.0, of=studios, at=K, model=small())
    assert "and an MMF of" in str(caught.value)


def test_the_command_takes_studios(limelight, data, studios, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users, items = data.matrix.nonzero()
    table = pa.table({"user_id": data.user_ids[users], "item_id": data.item_ids[items]})
    pyarrow.csv.write_csv(table, "ratings.csv")
    pyarrow.csv.write_csv(studios, "studios.csv")
    fit = ("fit", "ratings.csv", "--model", "ials", "--factors", 8, "--epochs", 5, "--at", K)
    ended = limelight(*fit, "--gini", 0.2, "--of", "studios.csv", "--json", "-o", "model")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["target"]["of"] == "11 groups"
    assert found["served"]["group_gini@10"] == pytest.approx(0.2, abs=0.012)
    ended = limelight("recommend", "model", "-k", K, "-o", "lists.parquet")
    assert ended.code == 0, ended.err
    ended = limelight(*fit, "--min-mmf", "30%", "-o", "other")
    assert ended.code == WRONG_USE
    assert "an MMF needs groups of items, and none were given" in ended.err
    ended = limelight(*fit, "--gini", 0.5, "--of", "no.csv", "-o", "other")
    assert ended.code == FAILED
