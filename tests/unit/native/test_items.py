"""The kernels over an items x items matrix, each variant against its NumPy twin."""

import numpy as np
import pytest

from limelight._native import kernels, use_variant
from limelight.solve.problem import padded_width, sparse_rows
from limelight.testing.planted import random_interactions

ROWS = kernels.SWEEP_ROWS


@pytest.fixture(params=kernels.variants(), autouse=True)
def each_variant(request):
    with use_variant(request.param):
        yield request.param


def histories(n_users, n_items, *, weighted, **more):
    """Return a matrix, and the same for the kernels."""
    X = random_interactions(n_users, n_items, **more)
    if weighted:
        X.data = np.random.default_rng(0).lognormal(size=X.nnz).astype(np.float32)
    return X, sparse_rows(X.indptr, X.indices, n_items, X.data if weighted else None)


def counted(n_items, *, weighted):
    X, rows = histories(60, n_items, weighted=weighted, density=0.1, seed=1)
    scale = 0.1 + np.random.default_rng(1).random(n_items)
    out = np.full([padded_width(n_items)] * 2, np.nan, dtype=np.float32)
    kernels.co_occurrences(rows, scale=scale, out=out, threads=2)
    return X.toarray().astype(float), scale, out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_items", [1, 16, 41, ROWS + 40])
def test_co_occurrences(n_items, weighted):
    X, scale, out = counted(n_items, weighted=weighted)
    expected = np.eye(len(out))
    expected[:n_items, :n_items] = X.T @ X * np.outer(scale, scale)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(np.tril(out), np.tril(expected), rtol=1e-6)
    own = out[:ROWS, :ROWS]
    assert not own[np.triu_indices(len(own), 1)].any()  # the inversion looks at whole blocks


def inverted(matrix, threads=2):
    """Invert by sweeps, block after block."""
    size = len(matrix)
    room = {name: np.empty((size, min(size, ROWS)), np.float32) for name in ("columns", "products")}
    matrix = matrix.copy()
    for first in range(0, size, ROWS):
        own = np.tril(matrix[first : first + ROWS, first : first + ROWS]).astype(float)
        inverse = np.linalg.inv(own + np.tril(own, -1).T).astype(np.float32)
        kernels.sweep(matrix, first=first, inverse=inverse, **room, threads=threads)
    return matrix


@pytest.mark.parametrize("size", [16, 48, ROWS, ROWS + 16, 3 * ROWS + 80])
def test_sweeps_leave_the_inverse(size):
    generator = np.random.default_rng(size)
    factor = generator.standard_normal((size, size)) / np.sqrt(size)
    A = np.eye(size) + factor @ factor.T
    lower = np.tril(A).astype(np.float32)
    found = inverted(lower)
    np.testing.assert_allclose(np.tril(found), np.tril(-np.linalg.inv(A)), atol=2e-6)
    np.testing.assert_array_equal(np.tril(found), np.tril(inverted(lower, threads=1)))
    scale = 0.1 + generator.random(size)
    kernels.unscale_and_mirror(found, scale, 2)
    np.testing.assert_allclose(found, np.linalg.inv(A) * np.outer(scale, scale), atol=2e-6)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_items", "n_listed"), [(5, 5), (40, 17), (300, 300), (300, 3)])
def test_sums_and_the_best_of_them(n_items, n_listed, weighted):
    generator = np.random.default_rng(n_items)
    X, rows = histories(50, n_items, weighted=weighted, density=0.3, seed=2)
    matrix = np.zeros((n_items, padded_width(n_items)), dtype=np.float32)
    half = generator.standard_normal((n_items, n_items)).astype(np.float32)
    matrix[:, :n_items] = half + half.T
    columns = np.sort(generator.permutation(n_items)[:n_listed]).astype(np.int32)
    width = padded_width(n_listed)
    sums = np.full((50, width), np.nan, dtype=np.float32)
    kernels.item_sums(rows, matrix, columns=columns, out=sums, threads=2)
    expected = X.toarray() @ matrix[:, columns].astype(float)
    np.testing.assert_allclose(sums[:, :n_listed], expected, rtol=1e-5, atol=1e-4)
    assert not sums[:, n_listed:].any()

    gains, pulls = generator.standard_normal((2, width)).astype(np.float32)
    offsets = generator.standard_normal(50).astype(np.float32)
    seen, hidden = X[:, columns].tocsr(), random_interactions(50, n_listed, density=0.2, seed=3)
    scores = seen.toarray() + sums[:, :n_listed] * gains[:n_listed].astype(float)
    scores -= np.outer(offsets, pulls[:n_listed])
    scores[hidden.toarray() > 0] = -np.inf
    k = min(7, n_listed)
    ids, best = np.empty((50, k), np.int32), np.empty((50, k), np.float32)
    kernels.rank_sums(
        sums,
        history=sparse_rows(seen.indptr, seen.indices, n_listed, seen.data if weighted else None),
        hidden=sparse_rows(hidden.indptr, hidden.indices, n_listed),
        gains=gains,
        pulls=pulls,
        offsets=offsets,
        ids=ids,
        scores=best,
        threads=2,
    )
    np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :k], rtol=1e-4, atol=1e-4)
    there = ids >= 0
    np.testing.assert_array_equal(there, np.isfinite(best))
    found = np.take_along_axis(scores, np.where(there, ids, 0).astype(int), axis=1)
    np.testing.assert_allclose(found[there], best[there], rtol=1e-4, atol=1e-4)


def test_weights_of_one_change_no_bit():
    X, plain = histories(50, 40, weighted=False, density=0.3, seed=2)
    rows = sparse_rows(X.indptr, X.indices, 40, np.ones(X.nnz))
    scale = 0.1 + np.random.default_rng(1).random(40)
    found = []
    for one in (plain, rows):
        matrix, sums = np.zeros((48, 48), np.float32), np.zeros((50, 48), np.float32)
        kernels.co_occurrences(one, scale=scale, out=matrix, threads=2)
        columns = np.arange(40, dtype=np.int32)
        kernels.item_sums(one, matrix[:40], columns=columns, out=sums, threads=2)
        found.append((matrix, sums))
    for mine, other in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("first", "inverse", "columns", "message"),
    [
        (16, 16, 32, "multiple of 256"),
        (-256, 32, 32, "multiple of 256"),
        (0, 16, 32, "inverse must be that of the block"),
        (0, 32, 16, "must have room"),
    ],
)
def test_a_sweep_stays_within_its_matrix(first, inverse, columns, message):
    room = {name: np.zeros((32, columns), np.float32) for name in ("columns", "products")}
    inverse = np.eye(inverse, dtype=np.float32)
    with pytest.raises(ValueError, match=message):
        kernels.sweep(np.eye(32, dtype=np.float32), first=first, inverse=inverse, **room, threads=1)


def test_columns_are_items():
    rows = sparse_rows(np.array([0, 1]), np.array([2]), 16)
    out = np.zeros((1, 16), np.float32)
    matrix = np.eye(16, dtype=np.float32)
    for wrong in (16, -1):
        columns = np.array([wrong], dtype=np.int32)
        with pytest.raises(ValueError, match="columns must be items"):
            kernels.item_sums(rows, matrix, columns=columns, out=out, threads=1)


def test_scales_and_matrices_fit():
    rows = sparse_rows(np.array([0, 1]), np.array([2]), 16)
    with pytest.raises(ValueError, match="one scale an item"):
        kernels.co_occurrences(rows, scale=np.ones(3), out=np.eye(16, dtype=np.float32), threads=1)
    out = np.zeros((32, 16), np.float32)
    with pytest.raises(ValueError, match="square"):
        kernels.co_occurrences(rows, scale=np.ones(16), out=out, threads=1)
    with pytest.raises(ValueError, match="one scale a row"):
        kernels.unscale_and_mirror(np.eye(16, dtype=np.float32), np.ones(3), 1)
