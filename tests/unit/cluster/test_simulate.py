"""The simulator against brute force, against the design's table, and against good sense."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import sparse
from tests.support.routes import count_routes

from limelight import ConfigError
from limelight.cluster.forecast.forecast import simulate
from limelight.cluster.forecast.time import (
    accumulator_bytes,
    adding_flops,
    item_flops,
    phases,
    rotation_flops,
    user_flops,
)
from limelight.cluster.forecast.traffic import expected_routes, sums_width
from limelight.cluster.forecast.workload import Cluster, Histories, Workload
from limelight.solve.cost import direct

if TYPE_CHECKING:
    from limelight._base.arrays import Int64

LARGE = Workload(n_users=10**8, n_items=10**7, n_interactions=10**10, factors=128, epochs=15)
SIXTY_FOUR = Cluster(machines=64, shards=2048, network=25)
NONE = np.zeros(0, dtype=np.int64)
SMALL = Workload(n_users=3000, n_items=500, n_interactions=30_000, factors=20)


def some_histories(n_users: int, n_items: int, seed: int) -> sparse.csr_matrix:
    """Histories of very unequal lengths, items drawn at random without popularity."""
    draw = np.random.default_rng(seed)
    lengths = np.minimum(draw.geometric(0.1, n_users), n_items)
    columns = [np.sort(draw.choice(n_items, n, replace=False)) for n in lengths]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = np.ones(indptr[-1], dtype=np.float32)
    return sparse.csr_matrix((values, np.concatenate(columns), indptr), (n_users, n_items))


def routes_one_by_one(matrix: sparse.csr_matrix, of_user: Int64, of_item: Int64, m: int) -> Int64:
    """For each user, look at each item, and remember the machines that need her row."""
    routes = np.zeros((m, m), dtype=np.int64)
    for user, sender in enumerate(of_user):
        history = matrix.indices[matrix.indptr[user] : matrix.indptr[user + 1]]
        for receiver in {int(of_item[item]) for item in history}:
            routes[sender, receiver] += 1
    return routes


@pytest.mark.parametrize("shards", [5, 16])
def test_rows_that_move_if_owners_are_drawn_at_random(shards: int) -> None:
    matrix = some_histories(3000, 400, seed=1)
    lengths = np.diff(matrix.indptr)
    cluster = Cluster(machines=5, shards=shards)
    work = Workload(
        n_users=3000, n_items=400, n_interactions=int(lengths.sum()), user_lengths=lengths
    )
    expected = expected_routes(work, cluster)
    draw, of_shard = np.random.default_rng(2), np.repeat(np.arange(5), cluster.held)
    counted = np.mean(
        [
            routes_one_by_one(
                matrix,
                of_shard[draw.integers(0, shards, 3000)],
                of_shard[draw.integers(0, shards, 400)],
                5,
            )
            for _ in range(10)
        ],
        axis=0,
    )
    assert counted.sum() == pytest.approx(expected.sum(), rel=0.01)
    np.testing.assert_allclose(counted, expected, rtol=0.1)


def test_equal_shares_give_the_formula_of_the_design() -> None:
    lengths, m = np.array([1, 7, 7, 50, 300]), 6
    work = Workload(n_users=5, n_items=1000, n_interactions=365, user_lengths=lengths)
    expected = np.sum((m - 1) * (1 - (1 - 1 / m) ** lengths.astype(float)))
    routes = expected_routes(work, Cluster(machines=m, shards=6))
    assert routes.sum() - np.trace(routes) == pytest.approx(expected)


def test_routes_of_a_data_set_are_counted_exactly() -> None:
    matrix = some_histories(700, 90, seed=3)
    user_bounds, item_bounds = np.array([0, 100, 100, 450, 700]), np.array([0, 5, 40, 41, 90])
    of_user = np.repeat(np.arange(4), np.diff(user_bounds))
    of_item = np.repeat(np.arange(4), np.diff(item_bounds))
    counted = count_routes(matrix.indptr, matrix.indices, user_bounds, item_bounds, NONE)
    np.testing.assert_array_equal(counted, routes_one_by_one(matrix, of_user, of_item, 4))

    heads = np.array([0, 7, 40])
    rest = matrix.copy()
    rest.data[np.isin(rest.indices, heads)] = 0
    rest.eliminate_zeros()
    fewer = count_routes(matrix.indptr, matrix.indices, user_bounds, item_bounds, heads)
    np.testing.assert_array_equal(fewer, routes_one_by_one(rest, of_user, of_item, 4))

    np.fill_diagonal(counted, 10**6)  # what stays at home does not count
    moving = counted - np.diag(np.diag(counted))
    cluster = Cluster(machines=4, shards=4)
    load = simulate(SMALL, cluster, routes=counted).traffic["exchange_rows"]
    row = 32 * 4  # 20 factors are padded to 32
    assert load.total == moving.sum() * row
    assert load.busiest == max(moving.sum(axis=0).max(), moving.sum(axis=1).max()) * row


def test_empty_histories_move_nothing() -> None:
    bounds = np.array([0, 1, 2])
    counted = count_routes(np.zeros(3, dtype=np.int64), NONE, bounds, bounds, NONE)
    assert not counted.any()


def test_accumulators_are_visited_once_for_each_shard_that_has_the_item() -> None:
    matrix = some_histories(600, 80, seed=4)
    by_item = np.diff(matrix.tocsc().indptr)
    work = replace(SMALL, n_users=600, n_items=80, n_interactions=matrix.nnz, item_lengths=by_item)
    shards, draw, visits = 8, np.random.default_rng(5), []
    for _ in range(20):
        of_user = draw.integers(0, shards, 600)
        rows = np.repeat(of_user, np.diff(matrix.indptr))
        visits.append(len(np.unique(rows * 80 + matrix.indices)))
    matrices = accumulator_bytes(work, Cluster(machines=1, shards=shards)) / (2 * 4)
    assert matrices / sums_width(32) == pytest.approx(np.mean(visits), rel=0.01)


class TestTableOfTheDesign:
    """100 M users, 10 M items, 10 B interactions, 128 factors on 64 machines."""

    def test_traffic(self) -> None:
        traffic = simulate(LARGE, SIXTY_FOUR).traffic
        assert round(traffic["exchange_rows"].total / 1e12, 2) == 2.56
        assert round(traffic["gather_items"].total / 1e12, 2) == 0.32
        assert traffic["sum_small"].total < 1e9
        rows_and_items = traffic["exchange_rows"].busiest + traffic["gather_items"].busiest
        assert round(rows_and_items / 1e9) == 45

    def test_half_as_many_bytes_on_the_wire(self) -> None:
        traffic = simulate(LARGE, replace(SIXTY_FOUR, wire_bytes=2)).traffic
        assert round(traffic["exchange_rows"].total / 1e12, 2) == 1.28
        assert round(traffic["gather_items"].total / 1e12, 2) == 0.16

    @pytest.mark.parametrize(("sigma", "machines_reached"), [(0, 50.7), (1.0, 38.8), (1.5, 29.6)])
    def test_machines_that_a_user_reaches(self, sigma: float, machines_reached: float) -> None:
        # The design counts the user's own machine, too.
        rows = expected_routes(replace(LARGE, spread=sigma), SIXTY_FOUR).sum()
        assert round(rows / LARGE.n_users, 1) == machines_reached

    @pytest.mark.parametrize(("network", "seconds"), [(10, 36), (25, 14), (100, 3.6)])
    def test_seconds_on_the_wire(self, network: float, seconds: float) -> None:
        forecast = simulate(LARGE, replace(SIXTY_FOUR, network=network))
        wire = sum(phase.network for phase in forecast.phases.values())
        assert wire == pytest.approx(seconds, rel=0.05)

    def test_memory(self) -> None:
        memory = simulate(LARGE, SIXTY_FOUR).memory
        parts = {**memory.held, **memory.moments["exchange"]}
        gigabytes = {part: round(held / 1e9, 1) for part, held in parts.items()}
        assert gigabytes == {
            "users' factors": 0.8,
            "all items' factors": 5.1,
            "interactions by user": 0.6,
            "routing": 0.3,
            # The design has 5.2 for a bare triangle; ours is made of tiles of 16 x 16.
            "accumulators": 5.8,
            # It has 0.6: pointers of every shard come on top.
            "interactions by item": 3.2,
            # It has room for rows of one peer, 1.3; ours are one shard's for all peers, twice.
            "rows to send": 2.5,
            "rows that came": 0.0,
            "a shard of users, rotated": 0.0,
            # It does without: 0.8 of users, and none of items.
            "both, an epoch ago": 5.9,
            "both, at the last checkpoint": 5.9,
        }
        as_designed = 2 * 0.8 + 5.12 + 2 * 0.625 + 5.24 + 1.3 + 0.3
        assert round(as_designed) == 15
        pointers = LARGE.n_items / 64 * 2048 * 8 + LARGE.n_users / 64 * 8
        more = {"pointers": pointers, "tiles": 0.6e9, "a copy of rows": 1.3e9, "items": 5.12e9}
        more["the last checkpoint"] = 5.92e9
        in_exchange = sum(parts.values()) - sum(more.values())
        assert in_exchange / 1e9 == pytest.approx(as_designed, abs=0.2)

    def test_work(self) -> None:
        one = replace(SIXTY_FOUR, memory_speed=1e6)
        assert round(adding_flops(LARGE, one) / 1e12, 1) == 2.6
        assert rotation_flops(LARGE, one) / 1e12 < 0.06
        assert item_flops(LARGE, one) / 1e12 == pytest.approx(0.1, abs=0.03)
        gradient = user_flops(replace(LARGE, solver="admm"), one)
        assert gradient / 1e12 == pytest.approx(0.13, abs=0.03)
        # The design solves 128 x 128 systems; histories of 100 need only 100 x 100.
        solves = direct(np.array([100.0]), 128)[0] * LARGE.n_users / 64
        assert round(float(solves) / 1e12, 1) == 3.7
        assert user_flops(LARGE, one) < solves
        parts = phases(LARGE, one, simulate(LARGE, one).traffic)
        work = parts["add up users' rows"].work + parts["solve items"].work
        assert round(work) == 17

    def test_an_epoch(self) -> None:
        few_shards = replace(SIXTY_FOUR, shards=64)
        # The design, with 20 to 40, has no copies of rows in it, 3 s.
        assert 20 < simulate(LARGE, few_shards).epoch_seconds - 3 < 40
        admm = simulate(replace(LARGE, solver="admm"), few_shards)
        assert 20 < admm.epoch_seconds < 40
        assert 5 < admm.fit_seconds / 60 < 10


def test_one_machine_sends_nothing() -> None:
    forecast = simulate(SMALL, Cluster(machines=1))
    assert forecast.busiest_bytes == 0
    assert all(load.total == load.busiest == 0 for load in forecast.traffic.values())
    assert forecast.memory.moments["exchange"]["rows that came"] == 0
    assert forecast.memory.moments["gather"]["items' factors, as they come"] == 0
    assert "\n1 machine, 16 shards" in str(forecast)


def test_sums_go_to_one_machine_and_back() -> None:
    cluster = Cluster(machines=3, shards=7)  # 3, 2 and 2
    numbers = 2 * 32**2 + 7
    load = simulate(replace(SMALL, solver="ials"), cluster).traffic["sum_small"]
    assert load.total == (4 + 2) * numbers * 8
    assert load.busiest == 4 * numbers * 8


def test_items_go_to_all() -> None:
    cluster = Cluster(machines=3, shards=7)
    load = simulate(SMALL, cluster).traffic["gather_items"]
    assert load.total == 2 * (500 + 33) * 32 * 4
    assert load.busiest == pytest.approx(2 * (3 / 7 * 500 + 33) * 32 * 4)


def test_head_items() -> None:
    cluster = Cluster(machines=8, shards=24)
    plain = simulate(LARGE, cluster)
    with_heads = simulate(replace(LARGE, head_items=1000, head_share=0.2), cluster)
    rows, sums = with_heads.traffic["exchange_rows"], with_heads.traffic["head_items"]
    # A shard sends its sums to the machines that it is not on.
    assert sums.total == 24 * 7 / 8 * 1000 * (128 * 144 / 2 + 128) * 4
    assert sums.busiest == pytest.approx(sums.total / 8)
    fewer = replace(LARGE, n_interactions=8 * 10**9)
    assert rows.total == pytest.approx(simulate(fewer, cluster).traffic["exchange_rows"].total)
    assert rows.total < plain.traffic["exchange_rows"].total
    wire = with_heads.phases["add up users' rows"].network
    assert wire == cluster.network_seconds(rows.busiest + sums.busiest)


def test_heads_of_a_data_set() -> None:
    lengths = np.array([400, 100, 251, 249])
    work = Workload(n_users=900, n_items=4, n_interactions=1000, item_lengths=lengths)
    assert work.heads(2) == (2, 0.651)
    assert work.heads(100) == (4, 1.0)
    assert simulate(work, Cluster(machines=2, shards=100)).traffic["exchange_rows"].total == 0


def test_the_machine_with_the_most_shards_is_waited_for() -> None:
    assert Cluster(machines=3, shards=16).held.tolist() == [6, 5, 5]
    assert Cluster(machines=3, shards=16).largest_share == 6 / 16
    uneven = simulate(LARGE, Cluster(machines=3, shards=4))
    even = simulate(LARGE, Cluster(machines=3, shards=3))
    assert uneven.phases["update users"].work > even.phases["update users"].work
    assert uneven.memory.held["users' factors"] > even.memory.held["users' factors"]


def test_reading_in_order_takes_memory_and_time() -> None:
    waves = simulate(LARGE, SIXTY_FOUR)
    in_order = simulate(LARGE, replace(SIXTY_FOUR, deterministic=True))
    assert in_order.traffic == waves.traffic
    held, shard = (one.memory.moments["exchange"]["rows to send"] for one in (in_order, waves))
    assert held == pytest.approx(32 * shard)  # shards of a machine
    reading, in_waves = (one.phases["add up users' rows"].network for one in (in_order, waves))
    assert reading == pytest.approx(64 * in_waves)


def test_exchange_and_addition_overlap_but_for_a_shard() -> None:
    parts = simulate(LARGE, replace(SIXTY_FOUR, shards=64)).phases
    work, network, total = parts["add up users' rows"]
    assert total == pytest.approx(max(work, network) + min(work, network) / 64)


@pytest.mark.parametrize(
    ("name", "values"),
    [("network", (10, 25, 100)), ("cores", (4, 16, 64)), ("core_speed", (10, 20, 40)),
     ("efficiency", (0.2, 0.5, 1.0)), ("memory_speed", (20, 50, 200)), ("machines", (8, 32, 64))],
)  # fmt: skip
def test_more_is_faster(name: str, values: tuple[float, ...]) -> None:
    clusters = [replace(SIXTY_FOUR, **{name: value}) for value in values]
    seconds = [simulate(LARGE, cluster).epoch_seconds for cluster in clusters]
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("solver", ["ials", "exact", "admm"])
@pytest.mark.parametrize(
    "smaller",
    # As many interactions of fewer users are longer histories, which may be more work.
    [{"n_users": 10**7, "n_interactions": 10**9}, {"n_items": 10**6}, {"factors": 64},
     {"factors": 100}, {"n_interactions": 10**9}],
)  # fmt: skip
def test_larger_takes_more(solver: str, smaller: dict[str, int]) -> None:
    large = replace(LARGE, solver=solver)
    less, more = (simulate(work, SIXTY_FOUR) for work in (replace(large, **smaller), large))
    assert less.busiest_bytes < more.busiest_bytes
    assert less.memory.peak < more.memory.peak
    assert less.epoch_seconds < more.epoch_seconds


def test_unequal_histories_reach_fewer_machines() -> None:
    rows = [
        simulate(replace(LARGE, spread=sigma), SIXTY_FOUR).traffic["exchange_rows"].total
        for sigma in (0, 0.5, 1, 2)
    ]
    assert rows == sorted(rows, reverse=True)


def test_a_lognormal_history_is_what_it_says() -> None:
    drawn = np.random.default_rng(0).lognormal(np.log(30) - 0.5, 1.0, 400_000)
    histories = Histories.lognormal(400_000, 30 * 400_000, 1.0)
    assert histories.sum(np.ones_like) == pytest.approx(400_000)
    assert histories.sum(lambda n: n) == pytest.approx(30 * 400_000)
    exact = np.sum(1 - (1 - 1 / 8) ** drawn)
    assert histories.reached(1 / 8) == pytest.approx(exact, rel=0.005)


def test_all_numbers_are_in_the_dictionary() -> None:
    forecast = simulate(LARGE, SIXTY_FOUR)
    record = forecast.as_dict()
    assert record["seconds_epoch"] == forecast.epoch_seconds
    assert record["seconds_fit"] == 15 * forecast.epoch_seconds
    assert record["memory_peak"] == forecast.memory.peak
    assert record["traffic_exchange_rows"] == forecast.traffic["exchange_rows"].total
    seconds = [value for name, value in record.items() if name.startswith("seconds_")]
    assert sum(seconds[:-2]) == pytest.approx(forecast.epoch_seconds)


def test_as_text() -> None:
    text = str(simulate(LARGE, SIXTY_FOUR))
    assert "rows of users, to the items' machines       2.56 TB" in text
    assert re.search(r"rows to send +2.52 GB  exchange", text)
    counted = replace(SMALL, user_lengths=np.full(3000, 10))
    assert "histories as in the data" in str(simulate(counted, Cluster(machines=2)))
    in_order = Cluster(machines=2, deterministic=True)
    assert "16 shards in order" in str(simulate(SMALL, in_order))


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"n_users": 0}, "n_users must be at least 1: 0", "at least 1"),
        ({"factors": 0}, "factors must be at least 1: 0", "at least 1"),
        ({"epochs": 0}, "epochs must be at least 1: 0", "at least 1"),
        ({"solver": "sgd"}, "solver is not a known choice: 'sgd'", "ials, exact, admm"),
        ({"spread": -1}, "spread must be a finite number 0 or more: -1", "0 or more"),
        ({"head_items": 501}, "head_items must be at most 500: 501", "at most 500"),
        ({"head_share": 1.5}, "head_share must be at most 1: 1.5", "a share of all"),
        (
            {"n_interactions": 1_500_001},
            "there are only 1,500,000 pairs: n_interactions=1500001",
            "check n_users, n_items and n_interactions",
        ),
    ],
)
def test_work_that_nobody_could_fit(change: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        replace(SMALL, **change)
    assert refusal.value.message == message
    assert hint in refusal.value.hint


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"machines": 0}, "machines must be at least 1: 0", "at least 1"),
        ({"shards": 3}, "every machine needs a shard: 3 for 4 machines", "use shards=16"),
        ({"network": 0}, "network must be a finite number above 0: 0", "above 0"),
        ({"cores": 1.5}, "cores must be an integer: 1.5", "at least 1"),
        ({"efficiency": 2}, "efficiency must be at most 1: 2", "0.5"),
        ({"wire_bytes": 0}, "wire_bytes must be at least 1: 0", "at least 1"),
    ],
)
def test_clusters_that_cannot_be(change: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        replace(Cluster(machines=4), **change)
    assert refusal.value.message == message
    assert hint in refusal.value.hint
