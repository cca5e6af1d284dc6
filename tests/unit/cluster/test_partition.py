"""A fit over several ranks is the fit of one machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight._base.errors import SolveError
from limelight.cluster import partition as sharing
from limelight.cluster.collectives import deal, run_locally, shard_order
from limelight.cluster.ingest.routing import shard_bounds
from limelight.cluster.partition import Cut, Partition
from limelight.models.factor_model import factor_solver
from limelight.solve.loop import Schedule, run
from limelight.solve.problem import some_rows, sparse_rows, stacked
from limelight.testing.planted import random_interactions

MODELS = {
    "ials": ll.IALS(factors=12, epochs=6, num_threads=1),
    "admm": ll.ExADMM(factors=12, epochs=12, solver="admm", exposure_weight=1e-4, num_threads=1),
    "exact": ll.ExADMM(factors=12, epochs=8, exposure_strength=0.5, num_threads=1),
}


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(500, 150, 9000, seed=3).interactions


def cut_of(data, n_shards):
    items = np.bincount(data.indices, minlength=data.n_items)
    return Cut(shard_bounds(np.diff(data.indptr), n_shards), shard_bounds(items, n_shards), items)


def fit(model, data, size, n_shards=8, *, again=False, deterministic=False):
    """Fit in so many threads; returns U, V, s, the trace of each rank, and its traffic."""
    cut = cut_of(data, n_shards)
    rows = sparse_rows(data.indptr, data.indices, data.n_items)

    def work(comm):
        width = 16
        ours = deal(n_shards, size)[comm.rank]
        own = some_rows(rows, sharing.run_of(cut.user_bounds, ours))
        if again:
            shards = (some_rows(rows, users) for users in cut.user_runs(range(n_shards)))
            partition = Partition.again(comm, cut, width, shards)
        else:
            partition = Partition.of(comm, cut, width, own)
        solver = factor_solver(model, partition)
        outcome = run(solver, Schedule(model.config.epochs, show_progress=False))
        return solver.state, outcome, comm.traffic

    return run_locally(work, size, n_shards, deterministic=deterministic)


def joined(found):
    return np.concatenate([state.U for state, *_ in found]), found[0][0].V


def off(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("name", MODELS)
def test_the_factors_are_those_of_one_machine(data, name, size):
    model = MODELS[name]
    found = fit(model, data, size)
    U, V = joined(found)
    alone = type(model)(**model.get_params()).fit(data, show_progress=False)
    assert off(U[:, :12], alone.user_factors) < 1e-5
    assert off(V[:, :12], alone.item_factors) < 1e-5
    objectives = [record.objective for record in found[0][1].trace]
    np.testing.assert_allclose(objectives[-1], alone.trace_[-1].objective, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_deterministic_bits_do_not_depend_on_the_number_of_ranks(data, name):
    first, *others = [joined(fit(MODELS[name], data, n, deterministic=True)) for n in (1, 2, 3, 7)]
    for found in others:
        np.testing.assert_array_equal(found[0], first[0])
        np.testing.assert_array_equal(found[1], first[1])


def test_every_rank_sees_the_same_items_mean_and_trace(data):
    found = fit(MODELS["exact"], data, 3)
    for state, outcome, _ in found[1:]:
        np.testing.assert_array_equal(state.V, found[0][0].V)
        np.testing.assert_array_equal(state.s, found[0][0].s)
        assert [r.objective for r in outcome.trace] == [r.objective for r in found[0][1].trace]


@pytest.mark.parametrize("deterministic", [False, True])
def test_heads_send_sums_instead_of_rows(data, monkeypatch, deterministic):
    plain = fit(MODELS["ials"], data, 3, deterministic=deterministic)
    monkeypatch.setattr(sharing, "HEAD", 0.1)
    assert len(cut_of(data, 8).heads) > 3
    found = fit(MODELS["ials"], data, 3, deterministic=deterministic)
    for one, other in zip(joined(found), joined(plain), strict=True):
        assert off(one, other) < 1e-5


def test_a_rank_finds_its_share_again_alone(data):
    for one, other in zip(
        joined(fit(MODELS["exact"], data, 3)),
        joined(fit(MODELS["exact"], data, 3, again=True)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_rows_that_travel_are_counted_once_for_each_rank(data):
    found = fit(MODELS["ials"], data, 3)
    cut, width, epochs = cut_of(data, 8), 16, MODELS["ials"].config.epochs
    owner = np.repeat(np.arange(3), [run.stop - run.start for run in cut.item_runs(3)])
    rows = 0
    for rank, ours in enumerate(deal(8, 3)):
        run_ = sharing.run_of(cut.user_bounds, ours)
        for user in range(run_.start, run_.stop):
            needed = set(owner[data.indices[data.indptr[user] : data.indptr[user + 1]]])
            rows += len(needed - {rank})
    sent = sum(traffic["exchange_rows"] for *_, traffic in found)
    routes = sum(
        fit(ll.IALS(factors=12, epochs=1), data, 3)[r][2]["exchange_rows"] for r in range(3)
    )
    one_epoch = rows * width * 4
    assert sent - routes == (epochs - 1) * one_epoch


def test_a_row_without_solution_ends_all_ranks(data):
    model = ll.IALS(factors=12, epochs=2, regularization=0.0, unobserved_weight=1e-30)
    with pytest.raises(SolveError, match="without a unique solution"):
        fit(model, data, 3)


@given(n_shards=st.integers(1, 20), data=st.data())
def test_every_rank_reads_every_shard_once(n_shards, data):
    size = data.draw(st.integers(1, n_shards))
    for rank in range(size):
        for deterministic in (False, True):
            order = shard_order(n_shards, size, rank, deterministic=deterministic)
            assert sorted(order) == list(range(n_shards))


def test_blocks_of_rows_and_their_stack():
    R = random_interactions(20, 9, density=0.3, seed=1)
    rows = sparse_rows(R.indptr, R.indices, 9)
    parts = [some_rows(rows, slice(a, b)) for a, b in [(0, 0), (0, 7), (7, 20)]]
    whole = stacked(parts)
    np.testing.assert_array_equal(whole.indptr, rows.indptr)
    np.testing.assert_array_equal(whole.indices, rows.indices)
