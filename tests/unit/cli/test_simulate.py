"""`limelight simulate`, and what a dry run prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import limelight as ll
from limelight._base.text import parse_count
from limelight.cluster.forecast.forecast import simulate
from limelight.cluster.forecast.workload import Cluster, Workload
from limelight.models.exadmm import ExADMMConfig
from limelight.models.ials import IALSConfig

if TYPE_CHECKING:
    from tests.support.commands import Run

SIZE = ("--users", "2M", "--items", "300k", "--interactions", "500M")


def test_help(limelight: Run) -> None:
    ended = limelight("simulate", "--help")
    assert ended.code == 0
    assert "MISSING" not in ended.out
    assert "limelight simulate --users 2M" in ended.out


def test_text_and_json_say_the_same(limelight: Run) -> None:
    command = ("simulate", *SIZE, "--machines", 4, "--factors", 100, "--spread", 1)
    record = json.loads(limelight(*command, "--json").out)
    forecast = simulate(
        Workload(
            n_users=2 * 10**6, n_items=300_000, n_interactions=5 * 10**8, factors=100, spread=1.0
        ),
        Cluster(machines=4),
    )
    assert record == forecast.as_dict()
    assert limelight(*command).out == f"{forecast}\n"


def test_every_flag_arrives(limelight: Run) -> None:
    speeds = "--network 25 --cores 8 --core-speed 30 --efficiency 40% --memory-speed 80"
    dealt = "--machines 6 --shards 24 --wire-bytes 2 --deterministic"
    fit = "--factors 32 --solver admm --epochs 7"
    flags = f"{speeds} {dealt} {fit}".split()
    record = json.loads(limelight("simulate", *SIZE, *flags, "--json").out)
    work = Workload(
        n_users=2 * 10**6, n_items=300_000, n_interactions=5 * 10**8, factors=32, solver="admm",
        epochs=7,
    )  # fmt: skip
    cluster = Cluster(
        machines=6, shards=24, network=25.0, cores=8, core_speed=30.0, efficiency=0.4,
        memory_speed=80.0, wire_bytes=2, deterministic=True,
    )  # fmt: skip
    assert record == simulate(work, cluster).as_dict()


def test_this_machine(limelight: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.cluster.forecast.forecast.resolve_threads", lambda _: 3)
    monkeypatch.setattr(
        "limelight.cluster.forecast.forecast.peak", lambda threads, rounds: threads * 5e10
    )
    assert "3 cores of 50 Gflop/s" in limelight("simulate", *SIZE, "--machines", 2, "--local").out
    ended = limelight("simulate", *SIZE, "--machines", 2, "--local", "--cores", 4)
    assert ended.code == 2
    assert "--local measures what was also given: --cores" in ended.err


@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        (("--users", "2.5"), "--users must be a whole number: '2.5'", "write 2500, 2.5k, 100M"),
        (("--items", "many"), "--items must be a whole number: 'many'", "write 2500, 2.5k, 100M"),
        (("--users", "0"), "--users must be at least 1: 0", "at least 1"),
        (("--users", "10"), "there are only 3,000,000 pairs: --interactions 500000000", "--items"),
        (("--shards", "3"), "every machine needs a shard: 3 for 4 machines", "use --shards 16"),
        (("--network", "0"), "network must be a finite number above 0: 0.0", "above 0"),
        (("--core-speed", "-1"), "--core-speed must be a finite number above 0: -1", "above 0"),
        (("--efficiency", "half"), "--efficiency must be a share: 'half'", "write 2% or 0.02"),
        (("--efficiency", "0"), "efficiency must be a finite number above 0: 0", "above 0"),
    ],
)
def test_bad_input(limelight: Run, flags: tuple[str, str], message: str, hint: str) -> None:
    ended = limelight("simulate", *SIZE, "--machines", 4, *flags)
    assert ended.code == 2
    assert message in ended.err
    assert hint in ended.err.partition("hint: ")[2]
    assert ended.out == ""


def test_sizes_are_needed(limelight: Run) -> None:
    ended = limelight("simulate", "--users", "2M", "--machines", 4)
    assert ended.code == 2
    assert "--items" in ended.err


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("2.5k", 2500), ("100M", 10**8), ("10B", 10**10), ("10b", 10**10), ("10G", 10**10),
     ("1e6", 10**6), ("1.2e3k", 1_200_000), ("1,000,000", 10**6), ("1_000", 1000),
     (" 3 T ", 3 * 10**12)],
)  # fmt: skip
def test_counts(text: str, value: int) -> None:
    assert parse_count("--users", text) == value


@pytest.mark.parametrize("text", ["", "k", "-3", "1.0001k", "3x", "nan", "inf", "1e999", "٣"])
def test_no_counts(text: str) -> None:
    with pytest.raises(ll.ConfigError, match="must be a whole number"):
        parse_count("--users", text)


def test_the_workload_of_a_fit() -> None:
    data = ll.marketplace(500, 60, 4000).interactions
    sizes = {"n_users": 500, "n_items": 60, "n_interactions": data.nnz}
    found = Workload.of(IALSConfig(factors=24, epochs=3), **sizes)
    assert found == Workload(**sizes, factors=24, solver="ials", epochs=3)


def test_solvers() -> None:
    sizes = {"n_users": 500, "n_items": 60, "n_interactions": 4000}
    assert Workload.of(ExADMMConfig(), **sizes).solver == "exact"
    assert Workload.of(ExADMMConfig(learning_rate=0.1), **sizes).solver == "admm"
    with pytest.raises(ll.ConfigError, match="only exact row solves can be predicted"):
        Workload.of(IALSConfig(row_solver="cg"), **sizes)
