"""Ranks as actors of Ray: what they compute, what survives which death, what the caller hears."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ray.conftest import NODE
from tests.support.toy import WIDTH, Alone, Kills, NodeKill, Toy, first_time

import limelight as ll
from limelight.cluster.collectives import deal
from limelight.cluster.ray import run as ray_driver
from limelight.cluster.ray.run import run_on_ray

pytestmark = pytest.mark.usefixtures("cluster")

SHARDS = 7
RANKS = 3


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the toy comes to, computed by one who is alone."""
    toy, alone = Toy(tmp_path_factory.mktemp("alone")), Alone(SHARDS)
    toy.prepare(alone)
    return toy.run(alone)["rows"]


class Diary:
    """What whoever started a run hears, and the manifest that is written then."""

    def __init__(self, folder):
        self.folder = folder
        self.commits = []
        self.news = []
        self.lost = []

    def on_commit(self, epoch):
        self.commits.append(epoch)
        (self.folder / "manifest").write_text(str(epoch))

    def on_news(self, rank, epoch, news):
        if "lost" in news:
            self.lost.append((rank, epoch))
        else:
            self.news.append((rank, epoch))


def run(toy: Toy, *, deterministic: bool = True, workers: int = RANKS, **more: Any):
    diary = Diary(toy.folder)
    hooks = {"on_commit": diary.on_commit, "on_news": diary.on_news} | more
    results = run_on_ray(
        toy, workers=workers, n_shards=SHARDS, deterministic=deterministic, **hooks
    )
    return results, diary


def assert_same_bits(results, expected):
    rows = {shard: values for result in results for shard, values in result["rows"].items()}
    assert list(rows) == list(expected)
    for shard, values in expected.items():
        np.testing.assert_array_equal(rows[shard], values)


def test_ranks_come_to_the_same_bits_as_one_who_is_alone(tmp_path, expected):
    results, diary = run(Toy(tmp_path))
    assert_same_bits(results, expected)
    assert diary.commits == [1, 2, 3, 4, 5, 6]
    assert sorted(diary.news) == [(rank, epoch) for rank in range(RANKS) for epoch in range(1, 7)]
    assert diary.lost == []
    assert len({result["pid"] for result in results}) == RANKS
    assert [result["threads"] for result in results] == [1] * RANKS
    assert_traffic_is_what_the_formulas_say([result["traffic"] for result in results])


def assert_traffic_is_what_the_formulas_say(traffic):
    epochs, others = 6, RANKS - 1
    table = sum(5 + shard for shard in range(SHARDS)) * WIDTH * 8
    gramian = WIDTH * WIDTH * 8
    shards_of_others = SHARDS - len(deal(SHARDS, RANKS)[0])
    assert sum(traffic, Counter()) == {
        "gather_items": epochs * others * table,
        "exchange_rows": epochs * others * (table + SHARDS * 8),
        "sum_small": epochs * gramian * (shards_of_others + others),
    }


def test_waves_come_to_the_same_up_to_rounding(tmp_path, expected):
    points = frozenset({(2, "inside exchange_rows", 3)})
    results, diary = run(Toy(tmp_path, mishap=Kills(tmp_path, points)), deterministic=False)
    rows = {shard: values for result in results for shard, values in result["rows"].items()}
    for shard, values in expected.items():
        np.testing.assert_allclose(rows[shard], values, rtol=1e-9)
    assert diary.lost == [(2, 2)]


def test_a_rank_killed_in_every_verb_changes_no_bit(tmp_path, expected):
    points = [
        (1, "prepare", 0),
        (0, "sum_small", 1),
        (2, "gather_items", 2),
        (1, "inside exchange_rows", 3),
        (0, "commit", 5),
        (2, "tell", 6),
    ]
    results, diary = run(Toy(tmp_path, mishap=Kills(tmp_path, frozenset(points))))
    assert_same_bits(results, expected)
    assert [rank for rank, _ in diary.lost] == [rank for rank, _, _ in points]
    assert diary.commits == [1, 2, 3, 4, 5, 6]
    # After the first loss all prepare again; from then on, only who is new.
    assert prepared(tmp_path)[-5:] == [0, 2, 1, 0, 2]
    assert len(prepared(tmp_path)) == 2 + 3 + 5


def prepared(folder):
    """Return the ranks that have prepared, one after another."""
    return [int(line) for line in (folder / "prepared").read_text().split()]


def test_a_node_killed_changes_no_bit(tmp_path, expected, cluster):
    import ray

    here = ray.get_runtime_context().get_node_id()
    results, diary = run(Toy(tmp_path, mishap=NodeKill(tmp_path, here, epoch=3)))
    assert_same_bits(results, expected)
    assert (tmp_path / "killed a node").exists()
    assert diary.lost
    cluster.add_node(**NODE)


class Mayfly:
    """An actor that owns rows for a short life."""

    def rows(self) -> tuple[list[Any], int]:
        import ray

        return [ray.put(np.zeros((9, WIDTH)))], os.getpid()


@dataclass(frozen=True)
class LosesRows:
    """Once, the rows that a rank sends are lost before anybody can read them."""

    folder: Path

    def __call__(self, comm: Any, verb: str, epoch: int) -> None:
        import ray

        if (comm.rank, verb, epoch) != (1, "gather_items", 3):
            return
        if first_time(self.folder / "lost"):
            owner = ray.remote(num_cpus=0)(Mayfly).remote()
            (lost,), process = ray.get(owner.rows.remote())
            ray.kill(owner)
            while Path(f"/proc/{process}").exists():
                time.sleep(0.01)
            comm._put = lambda payload: lost
        else:
            (self.folder / "sent again").touch()


def test_rows_that_are_lost_are_sent_again(tmp_path, expected):
    results, diary = run(Toy(tmp_path, mishap=LosesRows(tmp_path)))
    assert_same_bits(results, expected)
    assert (tmp_path / "sent again").exists()
    assert diary.lost == []
    assert sorted(prepared(tmp_path)) == [0, 1, 2]


@dataclass(frozen=True)
class Fails:
    """An error of a rank in its second epoch, once all ranks have come there."""

    error: Exception

    def __call__(self, comm: Any, verb: str, epoch: int) -> None:
        if (comm.rank, verb, epoch) == (1, "gather_items", 2):
            raise self.error


def test_an_error_of_ours_reaches_the_caller_as_itself(tmp_path):
    error = ll.DataError("no such column: 'movie'", hint="pass item='movieId'")
    with pytest.raises(ll.DataError) as caught:
        run(Toy(tmp_path, mishap=Fails(error)), workers=2)
    assert type(caught.value) is ll.DataError
    assert str(caught.value) == str(error)
    assert (tmp_path / "manifest").read_text() == "1"


def test_any_other_error_reaches_the_caller_too(tmp_path):
    with pytest.raises(ZeroDivisionError, match="by nought"):
        run(Toy(tmp_path, mishap=Fails(ZeroDivisionError("by nought"))), workers=2)


def test_all_ranks_stop_after_the_same_epoch(tmp_path):
    diary = Diary(tmp_path)
    results, _ = run(
        Toy(tmp_path, epochs=1_000_000),
        workers=2,
        on_commit=diary.on_commit,
        should_stop=lambda: bool(diary.commits),
    )
    (epoch,) = {result["epoch"] for result in results}
    assert diary.commits == list(range(1, epoch + 1))


def end_the_meeting(comm: Any, verb: str, epoch: int) -> None:
    import ray

    if (comm.rank, verb, epoch) == (0, "gather_items", 2):
        ray.kill(comm._coordinator)


def test_without_the_meeting_there_is_a_way_on(tmp_path):
    with pytest.raises(ll.LimelightError, match="coordinator of the workers was lost") as caught:
        run(Toy(tmp_path, mishap=end_the_meeting), workers=2)
    assert "--resume" in caught.value.hint


def die_always(comm: Any, verb: str, epoch: int) -> None:
    if (comm.rank, verb, epoch) == (0, "sum_small", 2):
        os.kill(os.getpid(), signal.SIGKILL)


def test_ranks_are_not_made_anew_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_driver, "_FRUITLESS", 1)
    with pytest.raises(
        ll.LimelightError, match=r"lost ranks 2 times without a checkpoint"
    ) as caught:
        run(Toy(tmp_path, mishap=die_always), workers=1)
    assert "--resume" in caught.value.hint
