"""Turns over windows, against the twin that sees all scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import oracles
from tests.support.examples import examples

from limelight._native import kernels


def ranked(scores):
    """Whole rankings as windows; hidden items, whose score is -inf, are left out at the end."""
    ids = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)
    return ids, np.take_along_axis(scores, ids, axis=1).astype(np.float32)


def game_over(values, turns, copies, k, **changed):
    ids, window_scores = ranked(values)
    n_users, n_items = values.shape
    arrays = {
        "order": turns.astype(np.int32),
        "stock": np.full(n_items, copies, dtype=np.int32),
        "ids": ids,
        "scores": window_scores,
        "next": np.zeros(n_users, dtype=np.int32),
        "stop": np.isfinite(values).sum(axis=1).astype(np.int32),
        "complete": np.zeros(n_users, dtype=np.bool_),
        "picks": np.full((n_users, k), -1, dtype=np.int32),
        "pick_scores": np.full((n_users, k), -np.inf, dtype=np.float32),
    }
    arrays |= changed
    return kernels.RoundRobin(**arrays), arrays


@examples(100)
@given(
    st.tuples(st.integers(1, 30), st.integers(1, 20), st.integers(1, 6), st.integers(1, 9)),
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 2**32 - 1),
)
def test_picks_are_those_of_the_twin(size, hidden_share, seed):
    n_users, n_items, k, copies = size
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 8, (n_users, n_items)).astype(float)
    scores[generator.random(scores.shape) < hidden_share] = -np.inf
    scores[:, 0] = 1  # everybody can be shown something
    order = generator.permutation(n_users)
    game, arrays = game_over(scores, order, copies, k)
    last = min(copies * n_items, n_users * k)
    turn = game.play(0, last)
    expected = oracles.round_robin(scores, order, copies, k)
    np.testing.assert_array_equal(arrays["picks"], expected)
    assert turn == (expected >= 0).sum()
    held = expected[expected >= 0]
    assert (arrays["stock"] == copies - np.bincount(held, minlength=n_items)).all()
    rows = np.nonzero(expected >= 0)[0]
    assert (arrays["pick_scores"][expected >= 0] == scores[rows, held]).all()


def test_it_stops_at_an_empty_window_and_goes_on_once_it_is_filled():
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    stop = np.array([3, 1], dtype=np.int32)
    game, arrays = game_over(scores, np.arange(2), 1, 1, stop=stop)
    assert game.play(0, 2) == 1
    assert game.nearly_empty(1, 2, 1, 10).tolist() == [1]
    arrays["next"][1], arrays["stop"][1] = 0, 3
    arrays["ids"][1] = [0, 1, 2]
    assert game.play(1, 2) == 2
    assert arrays["picks"].tolist() == [[0], [1]]


def test_nearly_empty_windows_by_turn_without_what_cannot_be_taken():
    scores = np.tile([4.0, 3.0, 2.0, 1.0], (4, 1))
    complete = np.array([False, False, False, True])
    game, arrays = game_over(scores, np.array([2, 0, 3, 1]), 2, 3, complete=complete)
    assert game.play(0, 3) == 3  # users 2 and 0 took both copies of item 0, user 3 one of item 1
    assert game.nearly_empty(3, 12, 4, 10).tolist() == [1, 2, 0]
    assert game.nearly_empty(3, 12, 4, 2).tolist() == [1, 2]
    assert game.nearly_empty(3, 12, 3, 10).tolist() == []
    assert game.nearly_empty(3, 4, 4, 10).tolist() == [1]
    assert arrays["stop"].tolist() == [3, 3, 3, 4]
    assert arrays["ids"][1, :3].tolist() == [1, 2, 3]
    assert arrays["scores"][1, :3].tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("order", np.array([0, 2], np.int32), "order must hold users"),
        ("scores", np.zeros((2, 2), np.float32), "ids and scores must have one shape"),
        ("next", np.zeros(1, np.int32), "next, stop and complete must have one entry a user"),
        ("picks", np.zeros((3, 1), np.int32), "picks and their scores must have one row a user"),
    ],
)
def test_arrays_that_do_not_fit(name, value, message):
    with pytest.raises(ValueError, match=message):
        game_over(np.ones((2, 3)), np.arange(2), 1, 1, **{name: value})


def test_numbers_out_of_range():
    scores = np.ones((2, 3))
    game, arrays = game_over(scores, np.arange(2), 1, 1)
    with pytest.raises(ValueError, match="turns must lie between 0 and k a user"):
        game.play(0, 3)
    arrays["ids"][0, 0] = 3
    with pytest.raises(ValueError, match="an item of a window is out of range"):
        game.play(0, 2)
    arrays["stop"][0] = 4
    with pytest.raises(ValueError, match="next and stop must lie in the window"):
        game.play(0, 2)
