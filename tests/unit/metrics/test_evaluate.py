"""ll.evaluate: one call for all users, flat keys, a table to read."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.data.held_out import HeldOut
from limelight.metrics.evaluate import Evaluation, evaluate


@dataclass
class Part:
    history: sparse.csr_matrix
    targets: sparse.csr_matrix


class InOrder:
    """Recommends items 0, 1, 2, ... that are not in the history, and remembers its calls."""

    def __init__(self):
        self.calls = []

    def recommend(self, histories, k):
        self.calls.append((histories.shape[0], k))
        dense = histories.toarray()
        ids = np.full((len(dense), k), -1)
        for row, seen in zip(ids, dense, strict=True):
            free = np.flatnonzero(seen == 0)[:k]
            row[: len(free)] = free
        return ids, np.where(ids < 0, -np.inf, 0.0)


@pytest.fixture
def part():
    history = sparse.csr_matrix([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    targets = sparse.csr_matrix([[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    return Part(history, targets)


def test_numbers_by_hand(part):
    model = InOrder()
    result = evaluate(model, part, k=(1, 2))
    assert model.calls == [(3, 2)], "one call for all users, also those without targets"
    assert result["users"] == 2
    assert (result["ndcg@1"], result["recall@2"]) == (0.5, 0.5)
    # Scored users see [1, 2] and [0, 2]: uniform exposure is 1, 1, 2, 0.
    assert result["gini_uniform@2"] == pytest.approx(0.375)
    assert result["coverage@2"] == 0.75


def test_keys(part):
    result = evaluate(InOrder(), part, k=2)
    accuracy = [f"{m}@2{bound}" for m in ("ndcg", "recall") for bound in ("", "_low", "_high")]
    exposure = ["gini", "gini_uniform", "gini_floor", "coverage", "entropy", "top_share"]
    assert list(result) == ["users", "items", *accuracy, *(f"{name}@2" for name in exposure)]
    assert result.to_dict() == dict(result)


def test_k_may_exceed_the_catalogue(part):
    result = evaluate(InOrder(), part, k=10)
    assert result["recall@10"] == 1
    assert result["coverage@10"] == 1


def test_an_evaluation_cannot_be_changed(part):
    result = evaluate(InOrder(), part, k=2)
    with pytest.raises(TypeError):
        result["ndcg@2"] = 1
    result.to_dict()["ndcg@2"] = 9
    assert result["ndcg@2"] != 9
    assert result == evaluate(InOrder(), part, k=2)


def test_table():
    evaluation = Evaluation(
        {
            "users": 1462,
            "items": 300,
            "ndcg@5": 0.05,
            "ndcg@5_low": 0.04,
            "ndcg@5_high": 0.06,
            "gini@5": 0.91,
            "ndcg@20": 0.07654,
            "ndcg@20_low": 0.07,
            "ndcg@20_high": 0.08,
            "gini@20": 0.88888,
            "coverage@20": 0.29051,
        }
    )
    assert repr(evaluation).splitlines() == [
        "Evaluation over 1,462 users' lists and 300 items",
        "                               @5                      @20",
        "ndcg      0.0500 [0.0400, 0.0600]  0.0765 [0.0700, 0.0800]",
        "gini                       0.9100                   0.8889",
        "coverage                                           29.05 %",
    ]


def test_something_without_history(part):
    with pytest.raises(DataError, match="no history and targets to evaluate on: csr_matrix"):
        evaluate(InOrder(), part.targets)


def test_shapes_must_agree(part):
    wrong = Part(part.history[:, :3], part.targets)
    with pytest.raises(DataError, match=r"history and targets differ in shape: \(3, 3\)"):
        evaluate(InOrder(), wrong)


def test_nobody_to_score(part):
    with pytest.raises(DataError, match="no lists to measure"):
        evaluate(InOrder(), Part(part.history, sparse.csr_matrix((3, 4))), k=2)


@pytest.mark.parametrize("k", [0, (5, 0), 2.5, (), "20"])
def test_wrong_cutoffs(part, k):
    with pytest.raises(ConfigError):
        evaluate(InOrder(), part, k=k)


def test_items_are_found_by_their_ids_where_the_model_numbers_them_differently():
    data = ll.marketplace(600, 90, 9000).interactions
    split = ll.split_users(data, validation=60, test=60)
    model = ll.IALS(factors=8, epochs=4).fit(data)
    assert not np.array_equal(model.item_ids, split.train.item_ids)

    found = ll.evaluate(model, split.test, k=10)

    ids = model.item_ids[model.recommend(_by_id(split.test.history, split, model), k=10).ids]
    targets = split.test.targets
    wanted = [set(split.train.item_ids[targets[row].indices]) for row in range(len(ids))]
    recall = [len(w & set(row)) / min(len(w), 10) for w, row in zip(wanted, ids, strict=True) if w]
    assert found["recall@10"] == pytest.approx(np.mean(recall))
    assert found["items"] == data.n_items


def _by_id(history, split, model):
    place = {item: number for number, item in enumerate(model.item_ids)}
    columns = np.array([place[item] for item in split.train.item_ids])
    shape = history.shape[0], len(place)
    found = sparse.csr_matrix((history.data, columns[history.indices], history.indptr), shape)
    found.sort_indices()
    return found


def test_a_model_that_lacks_items_of_the_split_is_refused():
    split = ll.split_users(ll.marketplace(600, 90, 9000).interactions, validation=60, test=60)
    few = ll.Interactions.from_matrix(split.train.matrix[:, :50])
    few = replace(few, item_ids=split.train.item_ids[:50], has_ids=True)

    with pytest.raises(ll.DataError, match="does not know 40 of the 90 items"):
        ll.evaluate(ll.Popularity().fit(few), split.test)


def test_a_metric_that_is_not_there_names_those_that_are():
    with pytest.raises(KeyError, match=r"no metric 'gini@10': there are users, gini@20"):
        Evaluation({"users": 3, "gini@20": 0.5})["gini@10"]


def test_a_model_of_a_matrix_is_measured_by_its_columns(tmp_path):
    split = ll.split_users(ll.marketplace(600, 90, 9000).interactions, validation=60, test=60)
    named, plain = (ll.IALS(factors=8, epochs=4).fit(X) for X in (split.train, split.train.matrix))
    expected = ll.evaluate(named, split.test)

    assert dict(ll.evaluate(plain, split.test)) == dict(expected)
    for name, model in {"named": named, "plain": plain}.items():
        model.save(tmp_path / name)
        found = ll.evaluate(ll.load(tmp_path / name), split.test)
        assert dict(found) == dict(expected)


def test_renumbering_keeps_weights_with_their_items_and_the_part_as_it_was():
    weights = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    history = sparse.csr_matrix((weights, [0, 1, 2], [0, 3]), shape=(1, 4))
    targets = sparse.csr_matrix(np.array([[0, 0, 0, 1]], dtype=np.float32))
    part = HeldOut(history, targets, np.array([7]), item_ids=np.array([10, 11, 12, 13]))

    found = part.renumbered(np.array([12, 99, 10, 13, 11]))

    np.testing.assert_array_equal(found.history.toarray(), [[3, 0, 1, 0, 2]])
    np.testing.assert_array_equal(found.targets.toarray(), [[0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(part.history.toarray(), [[1, 2, 3, 0]])
