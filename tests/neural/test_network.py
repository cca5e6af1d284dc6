"""What the networks compute, against twins in NumPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.support import oracles

from limelight.models.neural.multvae import annealed
from limelight.models.neural.network import (
    DAENetwork,
    VAENetwork,
    autoencoder_loss,
    divergence,
    initial_parameters,
    mean_over_users,
    normalised_inputs,
    squared_weights,
)
from limelight.models.neural.train import batch_of
from limelight.solve.problem import sparse_rows
from limelight.testing.planted import random_interactions

KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def R():
    return random_interactions(12, 15, density=0.3, seed=2)


@pytest.fixture(scope="module")
def batch(R):
    # Two rows of padding, which must not count.
    return batch_of(sparse_rows(R.indptr, R.indices, 15), np.arange(12), 14)


def parameters_of(network):
    """Weights that are not tiny, so that no term hides behind another."""
    generator = np.random.default_rng(1)
    return {
        name: generator.normal(size=shape, scale=0.5) for name, shape in network.shapes().items()
    }


def twin(network, R):
    X = R.toarray().astype(float)
    inputs = X / np.sqrt(X.sum(axis=1, keepdims=True))
    if isinstance(network, DAENetwork):
        return lambda parameters: oracles.dae_loss(parameters, X, inputs)
    drawn = jax.random.normal(jax.random.split(KEY)[1], (14, network.latent))
    noise = np.asarray(drawn, float)[:12]
    return lambda parameters: oracles.vae_loss(parameters, X, inputs, noise, 0.3)


@pytest.mark.parametrize("network", [DAENetwork(15, 4), VAENetwork(15, 6, 3)])
def test_loss_and_gradient_agree_with_the_twin(network, R, batch):
    loss = twin(network, R)
    parameters = parameters_of(network)
    both = jax.value_and_grad(
        lambda parameters: autoencoder_loss(network, parameters, batch, KEY, 0.0, 0.3)
    )
    found, gradient = jax.jit(both)(
        {name: jnp.asarray(values, jnp.float32) for name, values in parameters.items()}
    )
    assert found == pytest.approx(loss(parameters), rel=1e-5)
    generator = np.random.default_rng(2)
    for name, values in parameters.items():
        way = generator.normal(size=values.shape)
        ahead, behind = (loss({**parameters, name: values + step * way}) for step in (1e-5, -1e-5))
        expected = (ahead - behind) / 2e-5
        assert np.vdot(gradient[name], way) == pytest.approx(expected, rel=1e-3, abs=1e-4), name


def test_divergence_is_the_closed_form():
    generator = np.random.default_rng(0)
    mean, log_variance = generator.normal(size=(2, 5, 3))
    found = divergence(jnp.asarray(mean), jnp.asarray(log_variance))
    # KL = E[log q - log p] under q, whose entropy is known.
    entropy = 0.5 * (np.log(2 * np.pi * np.e) + log_variance).sum(axis=1)
    cross = 0.5 * (np.log(2 * np.pi) + np.exp(log_variance) + mean**2).sum(axis=1)
    np.testing.assert_allclose(found, cross - entropy, rtol=1e-5)
    assert float(divergence(jnp.zeros((1, 4)), jnp.zeros((1, 4)))[0]) == 0


@pytest.mark.parametrize(("updates", "expected"), [(0, 0.0), (50, 0.05), (200, 0.2), (10**6, 0.2)])
def test_beta_grows_to_its_cap(updates, expected):
    assert float(annealed(0.2, 1000, jnp.asarray(updates))) == pytest.approx(expected)


def test_inputs_have_length_one(R, batch):
    inputs = np.asarray(normalised_inputs(batch, 15).dense())
    np.testing.assert_array_equal(inputs[:12] > 0, R.toarray() > 0)
    np.testing.assert_allclose(np.linalg.norm(inputs[:12], axis=1), 1, rtol=1e-6)
    assert not inputs[12:].any()


def test_dropout_keeps_the_mean(batch):
    keys = jax.random.split(KEY, 4000)
    draws = jax.vmap(lambda key: normalised_inputs(batch, 15, 0.6, key).dense())(keys)
    plain = np.asarray(normalised_inputs(batch, 15).dense())
    found = np.asarray(draws.mean(axis=0))
    np.testing.assert_allclose(found, plain, atol=0.06)
    assert found.sum() == pytest.approx(plain.sum(), rel=0.01)
    some = np.asarray(draws[0])
    assert set(np.unique((some > 0) & (plain == 0))) == {False}
    np.testing.assert_allclose(some[some > 0], plain[some > 0] / 0.4, rtol=1e-5)


@pytest.mark.parametrize("n_items", [40, 4000])
def test_gathered_rows_are_the_product_with_dense_ones(n_items):
    R = random_interactions(12, n_items, density=120 / 12 / n_items, seed=3)
    batch = batch_of(sparse_rows(R.indptr, R.indices, n_items), np.arange(12), 14)
    inputs = normalised_inputs(batch, n_items)
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(n_items, 3)), jnp.float32)
    rows = np.zeros((14, n_items))
    rows[:12] = R.toarray() / np.sqrt(R.toarray().sum(axis=1, keepdims=True))
    np.testing.assert_allclose(inputs @ weights, rows @ np.asarray(weights), atol=1e-5)
    gradient = jax.grad(lambda weights: jnp.sum((inputs @ weights) ** 2))(weights)
    np.testing.assert_allclose(gradient, 2 * rows.T @ (rows @ np.asarray(weights)), atol=1e-4)


def test_few_pairs_need_no_dense_rows(batch):
    weights = jnp.ones((4000, 3))
    sparse, dense = (
        str(jax.make_jaxpr(lambda weights, n=n: normalised_inputs(batch, n) @ weights[:n])(weights))
        for n in (4000, 15)
    )
    assert "dot_general" not in sparse
    assert "dot_general" in dense


def test_padding_does_not_count(batch):
    values = jnp.arange(14.0)
    assert float(mean_over_users(values, batch)) == pytest.approx(np.arange(12).mean())


def test_only_weights_are_held_back():
    network = DAENetwork(3, 2)
    ones = {name: jnp.ones(shape) for name, shape in network.shapes().items()}
    assert float(squared_weights(ones)) == 12


def test_first_weights_are_small_and_follow_the_seed():
    network = VAENetwork(50, 10, 4)
    one, again, other = (initial_parameters(network, seed) for seed in (0, 0, 1))
    bound = np.sqrt(6 / 60)
    assert np.abs(one["item_input"]).max() <= bound
    assert np.std(one["item_input"]) == pytest.approx(bound / np.sqrt(3), rel=0.1)
    np.testing.assert_array_equal(one["item_input"], again["item_input"])
    assert (np.asarray(one["item_input"]) != np.asarray(other["item_input"])).any()
