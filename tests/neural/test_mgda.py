"""The shortest vector in the hull of gradients, by what makes it the shortest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.support.examples import examples

from limelight.models.neural import multifr as mgda


def vectors():
    shapes = st.tuples(st.just(2), st.integers(1, 4))
    return shapes.flatmap(lambda shape: arrays(np.float32, shape, elements=st.integers(-4, 4)))


two = jax.jit(mgda.shortest)


@given(vectors())
@examples(60)
def test_two_gradients(G):
    gram = G @ G.T
    weights = np.asarray(two(jnp.asarray(gram)))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    # No gradient is at odds with the shortest mix: its product with it is at least the square.
    along = gram @ weights
    assert along.min() >= weights @ along - 1e-3


def test_equal_gradients():
    np.testing.assert_allclose(mgda.shortest(jnp.ones((2, 2))), 0.5)


def test_unit_gradients_weigh_the_same_whatever_their_angle():
    for angle in (0.3, 2.0, 3.0):
        c = float(np.cos(angle))
        np.testing.assert_allclose(mgda.shortest(jnp.array([[1, c], [c, 1]])), 0.5, rtol=1e-5)


def test_gram_matrix():
    gradients = [{"a": jnp.array([1.0, 2]), "b": jnp.ones((2, 2)) * k} for k in (1.0, -2.0)]
    np.testing.assert_allclose(mgda.gram_matrix(gradients), [[9, -3], [-3, 21]])


@pytest.mark.parametrize(
    ("normalization", "expected"),
    [("none", [1, 1]), ("l2", [2, 3]), ("loss", [5, 7]), ("loss+", [10, 21])],
)
def test_divisors(normalization, expected):
    gram = jnp.array([[4.0, 0], [0, 9]])
    np.testing.assert_allclose(mgda.divisors(gram, jnp.array([5.0, 7]), normalization), expected)


def test_a_gradient_of_zero_is_divided_by_one():
    found = mgda.divisors(jnp.zeros((2, 2)), jnp.array([1.0, 0]), "loss+")
    np.testing.assert_allclose(found, 1)
