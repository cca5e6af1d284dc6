"""Every kernel of every variant against its NumPy twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.support import oracles
from tests.support.examples import examples

from limelight._base.errors import ConfigError
from limelight._native import kernels, use_variant, variant
from limelight.solve.problem import sparse_rows
from limelight.testing.planted import random_interactions

SHAPES = [(70, 45, 16, 0.2), (300, 200, 48, 0.1), (33, 600, 64, 0.3), (20, 900, 160, 0.4)]


@pytest.fixture(params=kernels.variants(), autouse=True)
def each_variant(request):
    with use_variant(request.param):
        yield request.param


@pytest.fixture(params=[False, True], ids=["binary", "weighted"])
def weighted(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def problem(request, weighted):
    n, m, width, density = request.param
    generator = np.random.default_rng(n)
    X, F = ((0.3 * generator.standard_normal((rows, width))).astype(np.float32) for rows in (n, m))
    R = random_interactions(n, m, density=density, seed=m)
    if weighted:
        R.data = generator.lognormal(size=R.nnz).astype(np.float32)
    return R.toarray(), sparse_rows(R.indptr, R.indices, m, R.data if weighted else None), X, F


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def positive(size, seed=1):
    return (0.1 + np.random.default_rng(seed).random(size)).astype(np.float32)


def solve(*system, out, shift=None, probe=None, response=None):
    rest = {"shift": shift, "probe": probe, "response": response, "threads": 2}
    return kernels.solve_rows(*system, out=out, **rest)


def test_solve_rows(problem):
    R, rows, X, F = problem
    width = F.shape[1]
    eigenvalues, ridge = positive(width), positive(len(R), 2)
    shift = np.random.default_rng(3).standard_normal(width).astype(np.float32)
    out = np.empty_like(X)
    assert solve(rows, F, eigenvalues, ridge, shift=shift, out=out) == 0
    expected = oracles.solve_rows(
        R.astype(float), F.astype(float), np.diag(eigenvalues.astype(float)), ridge, shift
    )
    assert relative(out, expected) < 1e-5


def in_blocks(R, F, ends):
    """Cut the columns of a problem into blocks, as if their factors came from several places."""
    for columns in np.split(np.arange(R.shape[1]), ends):
        block = sparse.csr_array(R[:, columns])
        yield sparse_rows(block.indptr, block.indices, len(columns), block.data), F[columns]


@pytest.mark.parametrize("ends", [[], [1, 17, 40], [3, 3, 44]])
def test_sums_of_blocks_are_solved_like_whole_histories(problem, ends):
    R, _, X, F = problem
    width = F.shape[1]
    eigenvalues, ridge = positive(width), positive(len(R), 2)
    sums = np.zeros((len(R), kernels.sums_width(width)), np.float32)
    for rows, factors in in_blocks(R, F, ends):
        kernels.add_rows(rows, factors, sums, 2)
    assert relative(sums[:, -width:], R @ F) < 1e-6
    out = np.empty_like(X)
    assert kernels.solve_sums(sums, eigenvalues, ridge, out=out, threads=2) == 0
    shared = np.diag(eigenvalues.astype(float))
    expected = oracles.solve_rows(R.astype(float), F.astype(float), shared, ridge)
    assert relative(out, expected) < 1e-5


def test_sums_without_solution_are_counted(problem):
    _, _, X, F = problem
    sums = np.zeros((len(X), kernels.sums_width(F.shape[1])), np.float32)
    nothing = np.zeros(F.shape[1], np.float32), np.zeros(len(X), np.float32)
    assert kernels.solve_sums(sums, *nothing, out=X.copy(), threads=1) == len(X)


def test_sums_of_another_shape_are_refused(problem):
    _, rows, X, F = problem
    width = F.shape[1]
    for shape in [(len(X), width), (len(X) + 1, kernels.sums_width(width))]:
        with pytest.raises(ValueError, match="one row of sums a row"):
            kernels.add_rows(rows, F, np.zeros(shape, np.float32), 1)
        vectors = positive(width), positive(len(X))
        with pytest.raises(ValueError, match="one row of sums a row"):
            kernels.solve_sums(np.zeros(shape, np.float32), *vectors, out=X.copy(), threads=1)
    with pytest.raises(ValueError, match="a positive multiple of 16"):
        kernels.sums_width(-16)


def test_solve_rows_counts_rows_without_solution(problem):
    _, rows, X, F = problem
    nothing = np.zeros(len(X), dtype=np.float32)
    zeros = np.zeros(F.shape[1], dtype=np.float32)
    no_factors = np.zeros_like(F)
    assert solve(rows, no_factors, zeros, nothing, shift=zeros, out=X.copy()) == len(X)


def test_a_probe_is_a_second_right_hand_side(problem):
    R, rows, X, F = problem
    width = F.shape[1]
    eigenvalues, ridge, shift = positive(width), positive(len(R), 2), positive(width, 3)
    probe = np.random.default_rng(4).standard_normal(width).astype(np.float32)
    alone, out, response = (np.empty_like(X) for _ in range(3))
    system = (rows, F, eigenvalues, ridge)
    solve(*system, shift=shift, out=alone)
    assert solve(*system, shift=shift, out=out, probe=probe, response=response) == 0
    np.testing.assert_array_equal(out, alone)
    expected = oracles.respond_rows(
        R.astype(float), F.astype(float), np.diag(eigenvalues.astype(float)), ridge, probe
    )
    assert relative(response, expected) < 1e-5


def test_a_probe_meets_empty_histories():
    rows = sparse_rows(np.zeros(4, np.int64), np.zeros(0, np.int32), 5)
    F, out, response = (np.ones((n, 32), np.float32) for n in (5, 3, 3))
    eigenvalues, ridge, probe = positive(32), positive(3, 2), positive(32, 3)
    assert solve(rows, F, eigenvalues, ridge, out=out, probe=probe, response=response) == 0
    np.testing.assert_allclose(response, probe / (eigenvalues + ridge[:, None]), rtol=1e-5)
    np.testing.assert_array_equal(out, np.zeros_like(out))


def test_a_probe_needs_room_for_the_response(problem):
    _, rows, X, F = problem
    system = (rows, F, positive(F.shape[1]), positive(len(X)))
    for probe, response, complaint in (
        (positive(F.shape[1]), None, "come together"),
        (None, X.copy(), "come together"),
        (positive(F.shape[1] + 1), X.copy(), "one entry a column"),
        (positive(F.shape[1]), X[1:].copy(), "shape of the result"),
    ):
        with pytest.raises(ValueError, match=complaint):
            solve(*system, out=X.copy(), probe=probe, response=response)


def take_gradient_step(rows, F, G, ridge, X, steps, **own):
    own = {"curvature": None, "shared_curvature": 0.0, "refresh_curvature": False} | own
    task = {"gramian": G, "regularization": ridge, "step": steps, "row_factors": X}
    return kernels.gradient_step(rows, F, **task, **own, threads=2)


def gradient(R, X, F, G, ridge):
    dense, factors = X.astype(float), F.astype(float)
    return (R * (dense @ factors.T - 1)) @ factors + dense @ G + ridge[:, None] * dense


def test_gradient_step(problem):
    R, rows, X, F = problem
    G = (0.1 * F.T @ F).astype(np.float32)
    ridge, steps = positive(len(R)), (0.01 * positive(len(R), 2)).astype(np.float32)
    out = X.copy()
    products, total, weighted = take_gradient_step(rows, F, G, ridge, out, steps)
    assert relative(out - X, -steps[:, None] * gradient(R, X, F, G, ridge)) < 1e-4
    dense = out.astype(float)
    assert relative(products, dense.T @ dense) < 1e-6
    np.testing.assert_allclose(total, dense.sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(weighted, steps @ dense, atol=1e-5)


def test_gradient_step_by_curvature(problem):
    R, rows, X, F = problem
    G = (0.1 * F.T @ F).astype(np.float32)
    ridge, curvature = positive(len(R)), np.zeros(len(R), np.float32)
    steps, out = np.empty(len(R), np.float32), X.copy()
    own = {"curvature": curvature, "shared_curvature": 3.0}
    take_gradient_step(rows, F, G, ridge, out, steps, refresh_curvature=True, **own)
    np.testing.assert_allclose(curvature, oracles.curvature(R, F.astype(float)), rtol=1e-5)
    np.testing.assert_allclose(steps, 1 / (3.0 + ridge + curvature), rtol=1e-6)
    assert relative(out - X, -steps[:, None] * gradient(R, X, F, G, ridge)) < 1e-4
    curvature[:] = 2.0
    take_gradient_step(rows, F, G, ridge, out, steps, refresh_curvature=False, **own)
    np.testing.assert_allclose(steps, 1 / (5.0 + ridge), rtol=1e-6)


def descend(*system, out, steps, shift=None):
    kernels.descend_rows(*system, shift=shift, out=out, steps=steps, threads=2)


def test_descent_ends_where_the_solution_is(problem):
    R, rows, X, F = problem
    eigenvalues, ridge, shift = positive(F.shape[1]), positive(len(R), 2), positive(F.shape[1], 3)
    shared = np.diag(eigenvalues.astype(float))
    exact = oracles.solve_rows(R.astype(float), F.astype(float), shared, ridge, shift)
    errors = []
    for steps in (0, 3, 200):
        out = X.copy()
        descend(rows, F, eigenvalues, ridge, shift=shift, out=out, steps=steps)
        errors.append(relative(out, exact))
    assert errors[2] < 1e-4
    assert errors[1] < errors[0]


def test_descent_of_long_histories(weighted):
    # Longer than what is copied together: 65,536 floats.
    generator = np.random.default_rng(0)
    R = (generator.random((3, 6000)) < 0.9).astype(np.float32)
    R *= generator.lognormal(size=R.shape).astype(np.float32) if weighted else 1
    weights = R[R > 0] if weighted else None
    rows = sparse_rows(np.r_[0, np.cumsum((R > 0).sum(axis=1))], np.nonzero(R)[1], 6000, weights)
    F = (0.1 * generator.standard_normal((6000, 16))).astype(np.float32)
    out = np.zeros((3, 16), np.float32)
    descend(rows, F, positive(16), positive(3, 2), out=out, steps=100)
    shared = np.diag(positive(16).astype(float))
    exact = oracles.solve_rows(R.astype(float), F.astype(float), shared, positive(3, 2))
    assert relative(out, exact) < 1e-4


def test_squared_error(problem):
    R, rows, X, F = problem
    expected = np.sum(R * (1 - X.astype(float) @ F.T.astype(float)) ** 2)
    assert kernels.squared_error(rows, X, F, 2) == pytest.approx(expected, rel=1e-6)


def test_gramian_and_sums(problem):
    _, _, X, _ = problem
    dense = X.astype(float)
    assert relative(kernels.gramian(X, 2), dense.T @ dense) < 1e-6
    np.testing.assert_allclose(kernels.column_sums(X, 2), dense.sum(axis=0), atol=1e-4)


def test_rotate_also_in_place(problem):
    _, _, X, _ = problem
    Q = np.random.default_rng(0).standard_normal((X.shape[1],) * 2).astype(np.float32)
    out = np.empty_like(X)
    kernels.rotate(X, Q, out, 2)
    assert relative(out, X.astype(float) @ Q) < 1e-6
    in_place = X.copy()
    kernels.rotate(in_place, Q, in_place, 2)
    np.testing.assert_array_equal(in_place, out)


def test_shift_rows(problem):
    _, _, X, _ = problem
    steps, h = positive(len(X)), positive(X.shape[1])
    out = X.copy()
    kernels.shift_rows(out, steps, h, 2)
    np.testing.assert_allclose(out, X - np.outer(steps, h), atol=1e-6)


def test_shift_and_rotate_is_one_after_the_other(problem):
    _, _, X, _ = problem
    Q = np.random.default_rng(0).standard_normal((X.shape[1],) * 2).astype(np.float32)
    steps, h = positive(len(X)), positive(X.shape[1])
    apart, expected = X.copy(), np.empty_like(X)
    kernels.shift_rows(apart, steps, h, 1)
    kernels.rotate(apart, Q, expected, 1)
    together, out = X.copy(), np.empty_like(X)
    kernels.shift_and_rotate(together, steps, h, rotation=Q, out=out, threads=2)
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(out, expected)


def test_transpose(problem):
    R, rows, _, _ = problem
    by_item = rows.transpose()
    dense = np.zeros(R.T.shape)
    places = np.repeat(np.arange(len(dense)), np.diff(by_item.indptr)), by_item.indices
    dense[places] = 1 if by_item.weights is None else by_item.weights
    np.testing.assert_array_equal(dense, R.T)
    again = by_item.transpose()
    np.testing.assert_array_equal(again.indptr, rows.indptr)
    np.testing.assert_array_equal(again.indices, rows.indices)
    np.testing.assert_array_equal(again.weights, rows.weights)


def test_weights_of_one_change_no_bit():
    generator = np.random.default_rng(0)
    R = random_interactions(60, 500, density=0.2, seed=1)
    F, X = (generator.standard_normal((n, 64)).astype(np.float32) for n in (500, 60))
    system = F, positive(64), positive(60, 2)
    found = []
    for weights in (None, np.ones(R.nnz, np.float32)):
        rows = sparse_rows(R.indptr, R.indices, 500, weights)
        out, descended = np.empty_like(X), X.copy()
        solve(rows, *system, out=out)
        descend(rows, *system, out=descended, steps=2)
        found.append([out, descended, kernels.squared_error(rows, X, F, 2)])
    for left, right in zip(*found, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_no_weights(bad):
    arrays = np.array([0, 2]), np.array([0, 1])
    with pytest.raises(ValueError, match="weights must be finite and positive: entry 1"):
        sparse_rows(*arrays, 3, np.array([1.0, bad]))
    with pytest.raises(ValueError, match="one weight an index is needed"):
        sparse_rows(*arrays, 3, np.ones(3))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_bits(threads):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((5000, 32)).astype(np.float32)
    np.testing.assert_array_equal(kernels.gramian(X, threads), kernels.gramian(X, 1))
    np.testing.assert_array_equal(kernels.column_sums(X, threads), kernels.column_sums(X, 1))


def search(queries, F, rows, k, threads=2):
    ids = np.empty((len(queries), k), dtype=np.int32)
    scores = np.empty((len(queries), k), dtype=np.float32)
    kernels.Catalogue(F, threads).top_k(queries, rows, ids=ids, scores=scores, threads=threads)
    return ids, scores


@pytest.mark.parametrize("k", [1, 7, 45])
def test_top_k(problem, k):
    R, rows, X, F = problem
    ids, scores = search(X, F, rows, k)
    exact = X.astype(float) @ F.T.astype(float)
    exact[R > 0] = -np.inf
    best = -np.sort(-exact, axis=1)[:, :k]
    np.testing.assert_allclose(scores, best, rtol=1e-4, atol=1e-5)
    listed = ids >= 0
    assert (listed == (scores > -np.inf)).all()
    at = np.take_along_axis(exact, np.where(listed, ids, 0), axis=1)
    np.testing.assert_allclose(at[listed], scores[listed], rtol=1e-4, atol=1e-5)


@examples(30)
@given(
    n_items=st.integers(1, 700),
    k=st.integers(1, 60),
    levels=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_top_k_breaks_ties_by_the_lower_item(n_items, k, levels, seed):
    # Few distinct scores, all of them exact in float32: ties everywhere, also 0 and -0.
    generator = np.random.default_rng(seed)
    F = np.zeros((n_items, 16), dtype=np.float32)
    F[:, 0] = generator.integers(-levels, levels + 1, n_items)
    queries = np.zeros((5, 16), dtype=np.float32)
    queries[:, 0] = [1, -1, 0, 2, -0.0]
    seen = (generator.random((5, n_items)) < 0.3).astype(float)
    indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    rows = sparse_rows(indptr, np.nonzero(seen)[1], n_items)
    k = min(k, n_items)
    ids, _ = search(queries, F, rows, k)
    np.testing.assert_array_equal(ids, oracles.top_k(queries @ F.T + 0.0, seen, k))


def test_variant_is_the_one_asked_for(each_variant):
    assert variant() == each_variant


def test_unknown_variant():
    with (
        pytest.raises(ConfigError, match="not available on this processor: 'mmx'"),
        use_variant("mmx"),
    ):
        pass


BAD_CSR = {
    "must start at 0": ([1, 2], [0, 1], 3),
    "end at the number of indices": ([0, 1], [0, 1], 3),
    "must not decrease": ([0, 2, 1, 2], [0, 1], 3),
    "column out of range: 3": ([0, 1], [3], 3),
    "column out of range: -1": ([0, 1], [-1], 3),
    "columns must ascend": ([0, 2], [1, 1], 3),
    "must not be empty": ([], [], 3),
}


@pytest.mark.parametrize("message", BAD_CSR)
def test_a_matrix_that_is_no_matrix(message):
    indptr, indices, n_columns = BAD_CSR[message]
    with pytest.raises(ValueError, match=message):
        sparse_rows(np.array(indptr), np.array(indices), n_columns)


def test_wrong_types_and_shapes_are_refused(problem):
    _, rows, X, F = problem
    with pytest.raises(TypeError):
        kernels.gramian(X.astype(float), 1)
    with pytest.raises(TypeError):
        kernels.gramian(np.asfortranarray(X), 1)
    with pytest.raises(ValueError, match="multiple of 16"):
        kernels.gramian(X[:, :8].copy(), 1)
    with pytest.raises(ValueError, match="one row of factors a column"):
        kernels.squared_error(rows, X, F[:-1].copy(), 1)
