"""Smooth ranks, attention and inequality."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limelight.models.neural.multifr import (
    attention,
    inequality,
    smooth_ranks,
    times_beaten,
    unseen,
)
from limelight.models.neural.train import HistoryBatch

EVERYTHING = jnp.arange(30)


@pytest.fixture(scope="module")
def scored():
    return jnp.asarray(np.random.default_rng(0).normal(size=(6, 30)), jnp.float32)


@pytest.fixture(scope="module")
def batch():
    """Histories: items 0 and 1 for everybody but the last row, which is padding."""
    users = np.repeat(np.arange(5, dtype=np.int32), 2)
    items = np.tile(np.array([0, 1], dtype=np.int32), 5)
    return HistoryBatch(users, items, np.array([2, 2, 2, 2, 2, 0], dtype=np.float32))


def ranks(scored, sampled=EVERYTHING, ranked=10, temperature=0.1):
    return smooth_ranks(scored, ranked=ranked, sampled=sampled, temperature=temperature)


def test_smooth_ranks_become_hard_ones(scored):
    found = ranks(scored, temperature=1e-5)
    np.testing.assert_allclose(found.ranks, np.tile(np.arange(1, 11), (6, 1)), atol=1e-3)
    np.testing.assert_array_equal(found.items, np.argsort(-scored, axis=1)[:, :10])


def test_smooth_ranks_are_the_formula(scored):
    found = ranks(scored, temperature=0.5)
    scale = 0.5 * np.std(found.scores, axis=1)[:, None, None]
    gaps = (np.asarray(scored)[:, None, :] - np.asarray(found.scores)[:, :, None]) / scale
    expected = 0.5 + (1 / (1 + np.exp(-gaps))).sum(axis=2)
    np.testing.assert_allclose(found.ranks, expected, rtol=1e-4)


def test_times_beaten_and_its_derivative():
    generator = np.random.default_rng(1)
    scores, others, weights, pulled = (
        generator.normal(size=(3, length)) for length in (4, 7, 7, 4)
    )
    beats = 1 / (1 + np.exp(scores[:, :, None] - others[:, None, :]))
    found, pull_back = jax.vjp(
        times_beaten, *(jnp.asarray(a, jnp.float32) for a in (scores, others, weights))
    )
    np.testing.assert_allclose(found, np.einsum("uij,uj->ui", beats, weights), rtol=1e-5)
    slope = beats * (1 - beats) * weights[:, None, :] * pulled[:, :, None]
    by_score, by_other, _ = pull_back(jnp.asarray(pulled, jnp.float32))
    np.testing.assert_allclose(by_score, -slope.sum(axis=2), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(by_other, slope.sum(axis=1), rtol=1e-4, atol=1e-6)


def test_the_gradient_of_ranks_is_that_of_the_formula(scored):
    def formula(scored):
        best = jnp.take_along_axis(scored, ranks(scored).items, axis=1)
        scale = 0.5 * jnp.std(best, axis=1)[:, None, None]
        beats = jax.nn.sigmoid((scored[:, None, :] - best[:, :, None]) / scale)
        return 0.5 + jnp.sum(beats, axis=2)

    pulled = jnp.asarray(np.random.default_rng(3).normal(size=(6, 10)), jnp.float32)
    found, expected = (
        jax.grad(lambda scored, of=of: jnp.vdot(of(scored), pulled))(scored)
        for of in (lambda scored: ranks(scored, temperature=0.5).ranks, formula)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_sampled_ranks_are_right_on_average(scored):
    exact = ranks(scored, temperature=2.0).ranks
    keys = jax.random.split(jax.random.key(0), 3000)
    drawn = jax.vmap(
        lambda key: ranks(scored, jax.random.randint(key, (5,), 0, 30), temperature=2.0).ranks
    )(keys)
    np.testing.assert_allclose(drawn.mean(axis=0), exact, rtol=0.02)


def test_scaling_all_scores_changes_no_rank(scored):
    np.testing.assert_allclose(ranks(scored).ranks, ranks(7 * scored + 3).ranks, rtol=1e-3)


def test_what_was_seen_is_not_ranked(scored, batch):
    found = ranks(unseen(scored, batch), ranked=30)
    assert not np.isin(np.asarray(found.items)[:5, :28], [0, 1]).any()
    assert np.asarray(found.listed).sum(axis=1).tolist() == [28] * 5 + [30]


@pytest.mark.parametrize("patience", [0.5, 1.0])
def test_attention(scored, patience):
    found = ranks(scored)
    shares = np.asarray(attention(found, patience))
    expected = np.exp(found.scores) * patience ** (np.asarray(found.ranks) - 1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, expected, rtol=1e-4)


def test_attention_does_not_underflow():
    found = ranks(jnp.full((2, 30), 0.25) + 1e-9 * EVERYTHING, temperature=1.0)
    np.testing.assert_allclose(attention(found, 0.001).sum(axis=1), 1, rtol=1e-5)


def test_equal_exposure_is_zero_and_one_item_the_most(batch):
    board = jnp.eye(6, 6)
    own = ranks(board, jnp.arange(6), ranked=1)
    shares = attention(own, 0.9)
    everybody = batch._replace(lengths=np.ones(6, dtype=np.float32))
    assert float(inequality(own, shares, everybody, 6)) == pytest.approx(0, abs=1e-5)
    same = own._replace(items=jnp.zeros_like(own.items))
    assert float(inequality(same, shares, everybody, 6)) == pytest.approx(5, rel=1e-5)
    # The row of padding does not count: five of six items then share the exposure.
    assert float(inequality(own, shares, batch, 6)) == pytest.approx(6 / 5 - 1, rel=1e-4)


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 10.0])
def test_gradients_are_finite(scored, batch, temperature):
    def loss(scored):
        found = ranks(unseen(scored, batch), ranked=30, temperature=temperature)
        return inequality(found, attention(found, 0.9), batch, 30)

    gradient = np.asarray(jax.jit(jax.grad(loss))(scored))
    assert np.isfinite(gradient).all()
    assert gradient[:5, 2:].any()
    assert not gradient[:5, :2].any(), "what is hidden cannot move"
    assert not gradient[5].any(), "padding cannot move"
    flat = np.asarray(jax.grad(loss)(jnp.zeros((6, 30))))
    assert np.isfinite(flat).all()
