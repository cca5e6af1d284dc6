"""The bytes that a fit sends are those that the simulator's formulas say."""

from collections import Counter

import numpy as np
import pytest
from tests.support.models import MODELS
from tests.support.routes import count_routes

import limelight as ll
from limelight.cluster.collectives import deal, run_locally
from limelight.cluster.forecast.forecast import simulate
from limelight.cluster.forecast.workload import Cluster, Workload
from limelight.cluster.ingest.routing import shard_bounds
from limelight.cluster.partition import Cut, Partition, run_of
from limelight.models.factor_model import factor_solver
from limelight.solve.problem import some_rows, sparse_rows

WIDTH, SHARDS = 16, 9


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(3000, 800, 60_000, seed=3).interactions


def cut_of(data):
    items = np.bincount(data.indices, minlength=data.n_items)
    return Cut(shard_bounds(np.diff(data.indptr), SHARDS), shard_bounds(items, SHARDS), items)


def bytes_of_an_epoch(model, data, size):
    cut, rows = cut_of(data), sparse_rows(data.indptr, data.indices, data.n_items)

    def work(comm):
        ours = run_of(cut.user_bounds, deal(SHARDS, size)[comm.rank])
        partition = Partition.of(comm, cut, WIDTH, some_rows(rows, ours))
        solver = factor_solver(model, partition)
        for _ in range(5):
            solver.step()
        before = comm.traffic.copy()
        solver.step()
        return comm.traffic - before

    return sum(run_locally(work, size, SHARDS), Counter())


def forecast(name, data, size, *, is_counted):
    work = Workload(
        n_users=data.n_users,
        n_items=data.n_items,
        n_interactions=data.nnz,
        factors=12,
        solver=name,
        user_lengths=np.diff(data.indptr),
        item_lengths=np.bincount(data.indices, minlength=data.n_items),
    )
    routes, cut = None, cut_of(data)
    if is_counted:
        users, items = (
            np.array([*(bounds[shards.start] for shards in deal(SHARDS, size)), bounds[-1]])
            for bounds in (cut.user_bounds, cut.item_bounds)
        )
        routes = count_routes(data.indptr, data.indices, users, items, cut.heads)
    found = simulate(work, Cluster(machines=size, shards=SHARDS), routes=routes).traffic
    return {verb: load.total for verb, load in found.items()}


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", MODELS)
def test_an_epoch(data, name, size):
    counted = bytes_of_an_epoch(MODELS[name], data, size)
    known = forecast(name, data, size, is_counted=True)
    assert counted["exchange_rows"] == known["exchange_rows"]
    assert counted["gather_items"] == pytest.approx(known["gather_items"], rel=1e-3)
    assert counted["sum_small"] == pytest.approx(known["sum_small"], rel=0.05)
    guessed = forecast(name, data, size, is_counted=False)
    assert counted["exchange_rows"] == pytest.approx(guessed["exchange_rows"], rel=0.05)
    assert counted.total() == pytest.approx(sum(guessed.values()), rel=0.05)


def test_sums_of_heads_travel_instead_of_rows(data, monkeypatch):
    monkeypatch.setattr("limelight.cluster.partition.HEAD", 0.1)
    monkeypatch.setattr("limelight.cluster.forecast.workload.HEAD", 0.1)
    counted = bytes_of_an_epoch(MODELS["ials"], data, 3)
    known = forecast("ials", data, 3, is_counted=True)
    assert known["head_items"] > 0
    sent = known["exchange_rows"] + known["head_items"]
    assert counted["exchange_rows"] == pytest.approx(sent, rel=0.02)
