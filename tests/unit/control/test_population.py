"""Whom a target is for: everybody, some of them, so many lists, or held-out users alone."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.control import population
from limelight.control.population import as_population, sitting_of
from limelight.data import HeldOut, Split

K = 5


@pytest.fixture(scope="module")
def split():
    data = ll.marketplace(300, 50, 4500, seed=2).interactions
    return ll.split_users(data, validation=40, test=30)


@pytest.fixture(scope="module")
def model(split):
    return ll.IALS(factors=6, epochs=4, num_threads=1).fit(split.train)


def everybody(split):
    return np.concatenate([p.user_ids for p in (split.train, split.validation, split.test)])


def test_everyone_is_all_users_of_the_data(split):
    found = as_population("everyone", split)
    assert found.n_lists == len(found.rows) == 300
    assert str(found) == "300 users' lists"
    assert not found.held_out_alone
    np.testing.assert_array_equal(found.ids(split), everybody(split))


def test_held_out_users_alone(split):
    found = as_population("held-out", split)
    assert found.held_out_alone
    assert str(found) == "40 held-out users' lists"
    np.testing.assert_array_equal(found.ids(split), everybody(split)[230:])


@pytest.mark.parametrize("n_lists", [2, 7, 50, 70, 71, 150, 299])
def test_fewer_lists_than_users_are_of_users_who_are_drawn(split, n_lists):
    found = as_population(n_lists, split)
    assert found.n_lists == n_lists
    assert len(np.unique(found.rows)) == len(found.rows) <= n_lists
    assert len(found.rows) >= n_lists - 1
    held_out = {"validation": (230, 270), "test": (270, 300)}
    for first, last in held_out.values():
        assert ((found.rows >= first) & (found.rows < last)).any()
    if n_lists > 70:
        assert (found.rows >= 230).sum() == 70
    np.testing.assert_array_equal(as_population(n_lists, split).rows, found.rows)


@pytest.mark.parametrize("n_lists", [300, 301, 10**9])
def test_more_lists_than_users_are_of_everybody(split, n_lists):
    found = as_population(n_lists, split)
    assert found.n_lists == n_lists
    np.testing.assert_array_equal(found.rows, np.arange(300))


SOME = (0, 3, 231, 275, 299)
KINDS = {
    "ids": lambda ids: ids.tolist(),
    "twice": lambda ids: [*ids.tolist(), *ids.tolist()],
    "text": lambda ids: [str(one) for one in ids],
    "tuple": lambda ids: tuple(ids.tolist()),
    "array": lambda ids: ids,
    "series": pd.Series,
    "Arrow table": lambda ids: pa.table({"user_id": ids}),
    "pandas frame": lambda ids: pd.DataFrame({"user_id": ids, "more": 1}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_users_are_named_by_ids_or_by_a_table(split, kind):
    found = as_population(KINDS[kind](everybody(split)[list(SOME)]), split)
    assert found.n_lists == len(SOME)
    np.testing.assert_array_equal(found.rows, SOME)


def test_a_file_of_users(split, tmp_path):
    ids = everybody(split)[list(SOME)]
    (tmp_path / "users.csv").write_text("\n".join(["user_id", *map(str, ids)]) + "\n")
    for file in (tmp_path / "users.csv", str(tmp_path / "users.csv")):
        np.testing.assert_array_equal(as_population(file, split).rows, SOME)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (0, ConfigError, "a population needs at least 1 user: 0"),
        (-3, ConfigError, "a population needs at least 1 user: -3"),
        (1.5, ConfigError, "a population is everyone, held-out, a number or users: 1.5"),
        (float("nan"), ConfigError, "a population is everyone, held-out, a number or users: nan"),
        (True, ConfigError, "a population is everyone, held-out, a number or users: True"),
        (None, DataError, "NoneType"),
        ("nobody.csv", DataError, "no such file"),
        (["nobody"], DataError, "the population has a user who is not in the data: 'nobody'"),
        (pa.table({"who": [1]}), DataError, "column not found"),
    ],
)
def test_what_is_no_population(split, wanted, error, message):
    with pytest.raises(error, match=message) as caught:
        as_population(wanted, split)
    assert caught.value.hint


def test_nobody_is_no_population(split):
    with pytest.raises((ConfigError, DataError), match="at least 1 user"):
        as_population([], split)


def test_numbers_of_numpy_are_numbers(split):
    assert as_population(np.int64(70), split).n_lists == 70


def test_everybody_has_one_seat(split, model):
    sitting = sitting_of(as_population("everyone", split), split, lambda: model, K)
    assert sitting.users.n_users == sitting.n_lists == 300
    assert sorted(sitting.users.user_ids.tolist()) == sorted(everybody(split).tolist())
    for name in ("validation", "test"):
        rows, part = sitting.parts[name]
        whole = getattr(split, name)
        np.testing.assert_array_equal(sitting.users.user_ids[rows], whole.user_ids)
        assert (sitting.users.history[rows] != whole.history).nnz == 0
        assert (sitting.users.hidden[rows] != whole.history).nnz == 0
        assert (part.targets != whole.targets).nnz == 0


def test_held_out_users_come_among_the_others(split, model):
    sitting = sitting_of(as_population("everyone", split), split, lambda: model, K)
    rows = np.sort(np.concatenate([seats.rows for seats in sitting.parts.values()]))
    assert rows.min() < 30
    assert rows.max() >= 270
    assert 100 < np.median(rows) < 200


def test_training_users_take_part_as_if_unseen(split, model):
    sitting = sitting_of(as_population("everyone", split), split, lambda: model, K)
    is_held_out = np.zeros(300, dtype=bool)
    for seats in sitting.parts.values():
        is_held_out[seats.rows] = True
    row_of = {user: row for row, user in enumerate(split.train.user_ids.tolist())}
    rows = [row_of[user] for user in sitting.users.user_ids[~is_held_out].tolist()]
    whole = split.train.matrix[rows]
    history, hidden = (m[~is_held_out] for m in (sitting.users.history, sitting.users.hidden))
    assert (hidden != whole).nnz == 0
    assert (history.multiply(whole) != history).nnz == 0
    assert 0.75 < history.nnz / whole.nnz < 0.9
    shown = sitting.own[~is_held_out]
    seen = whole.toarray()
    assert not seen[np.arange(len(shown))[:, None], shown].any()


def test_a_population_too_large_to_search_with_is_sampled(split, model, monkeypatch):
    monkeypatch.setattr(population, "_SEARCHED", 150)
    sitting = sitting_of(as_population("everyone", split), split, lambda: model, K)
    assert (sitting.users.n_users, sitting.n_lists) == (150, 300)
    assert [len(seats.rows) for seats in sitting.parts.values()] == [40, 30]
    monkeypatch.setattr(population, "_SEARCHED", 10)
    sitting = sitting_of(as_population("everyone", split), split, lambda: model, K)
    assert sitting.users.n_users == 140  # as many others as there are held-out users


def test_held_out_users_sit_alone_where_that_is_asked(split, model):
    people = as_population("held-out", split)
    for name, n_users in (("validation", 40), ("test", 30)):
        sitting = sitting_of(people, split, lambda: model, K, (name,))
        assert sitting.users.n_users == sitting.n_lists == n_users
        np.testing.assert_array_equal(
            np.sort(sitting.users.user_ids), np.sort(getattr(split, name).user_ids)
        )


@pytest.mark.parametrize(("missing", "first"), [("validation", 270), ("test", 230)])
def test_a_population_without_users_to_judge_by(split, model, missing, first):
    ids = np.concatenate([split.train.user_ids, everybody(split)[first : first + 30]])
    with pytest.raises(DataError, match=f"no {missing} user with held-out items to find"):
        sitting_of(as_population(ids.tolist(), split), split, lambda: model, K)


def with_other_test_targets(split, seed=0):
    """Return the same split, but for what test users are to find."""
    test, draw = split.test, np.random.default_rng(seed)
    dense = np.zeros(test.targets.shape)
    for user in range(test.n_users):
        free = np.flatnonzero(test.history[user].toarray().ravel() == 0)
        dense[user, draw.choice(free, test.targets[user].nnz, replace=False)] = 1
    other = HeldOut(test.history, csr_matrix(dense), test.user_ids)
    return Split(split.train, split.validation, other)


@pytest.mark.parametrize("serve", ["batch", "stream", "stateless"])
@pytest.mark.parametrize("wish", [{"gini": 0.5}, {"max_ndcg_loss": 0.1}], ids=str)
def test_nothing_is_decided_by_test_users(split, serve, wish):
    first, second = (
        ll.fit_to(
            some,
            at=K,
            model=ll.IALS(factors=6, epochs=3, num_threads=1),
            serve=serve,
            keep_held_out=True,
            **wish,
        )
        for some in (split, with_other_test_targets(split))
    )
    assert (first.method, first.strength) == (second.method, second.strength)
    assert first.tried == second.tried
    assert first.front == second.front
    assert first.validation == second.validation
    assert first.test["ndcg@5"] != second.test["ndcg@5"]
    lists = [result.model.fresh().recommend(k=K).ids for result in (first, second)]
    np.testing.assert_array_equal(*lists)


def test_everybody_of_a_split_is_there_with_all_that_they_did(split):
    found = split.everybody()
    np.testing.assert_array_equal(found.user_ids, everybody(split))
    np.testing.assert_array_equal(found.item_ids, split.train.item_ids)
    whole = split.test.history + split.test.targets
    assert (found.matrix[270:] != whole).nnz == 0
    assert (found.matrix[:230] != split.train.matrix).nnz == 0
