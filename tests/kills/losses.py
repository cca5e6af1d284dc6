"""Kill the workers, the machines and the driver of a fit on a cluster, and compare what comes out.

A Ray cluster of three nodes on this machine; a fit of three ranks. In every run something is killed
with SIGKILL at a random epoch: a worker in one of the phases of an epoch, a raylet with all its
workers, or the driver, which is then started again with --resume. The model must be, bit for bit,
that of a run that nobody disturbed. ``make losses`` runs it; nothing is retried by Ray.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tests.support.toy import first_time

import limelight as ll
from limelight.cluster.fit import CheckpointOptions, ShardedFit, fit_shards
from limelight.cluster.ray.run import run_on_ray

RANKS, SHARDS, EPOCHS = 3, 8, 8
PHASES = ("v-step", "exchange", "sums", "u-step", "checkpoint")
KINDS = (*PHASES, "driver", "raylet")
MODELS = {
    "ials": ["--model", "ials"],
    "admm": ["--solver", "admm", "--exposure-strength", "0.3"],
    "exact": ["--exposure-strength", "0.3"],
}
SETTINGS = {"factors": 16, "epochs": EPOCHS, "tolerance": 0.0, "num_threads": 1}
FITS = {
    "ials": ll.IALS(**SETTINGS),
    "admm": ll.ExADMM(solver="admm", exposure_strength=0.3, **SETTINGS),
    "exact": ll.ExADMM(exposure_strength=0.3, **SETTINGS),
}


class Doomed:
    """A communicator whose process is killed in a phase of an epoch, once."""

    def __init__(self, inner, plan):
        self._inner, self._plan, self._epoch, self._began = inner, plan, 1, time.perf_counter()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def all_reduce(self, parts):
        self._meet("sums")
        return self._inner.all_reduce(parts)

    def all_gather(self, mine):
        found = self._inner.all_gather(mine)
        if len(mine) > 20:  # the items, after which the users' turn comes
            self._meet("u-step", within=0.004)
        return found

    def all_to_all(self, outgoing):
        self._meet("exchange")
        for received in self._inner.all_to_all(outgoing):
            self._meet("v-step")
            yield received

    def commit(self, epoch):
        self._meet("checkpoint")
        self._inner.commit(epoch)

    def tell(self, epoch, news):
        self._epoch = epoch + 1
        return self._inner.tell(epoch, news)

    def _meet(self, phase, within=0.0):
        plan = self._plan
        due = self._epoch - (phase == "checkpoint") == plan.epoch
        if plan.phase == phase and self.rank == plan.rank and due and first_time(plan.marker):
            if within:
                delay = random.uniform(0, within)
                threading.Timer(delay, os.kill, (os.getpid(), plan.signal)).start()
            else:
                os.kill(os.getpid(), plan.signal)


@dataclass(frozen=True)
class Plan:
    """Who is killed, and when."""

    phase: str
    rank: int
    epoch: int
    marker: Path
    signal: int = signal.SIGKILL


@dataclass
class DoomedFit(ShardedFit):
    """The fit, with something that is going to happen to it."""

    plan: Plan | None = None

    def run(self, exchange):
        return super().run(Doomed(exchange, self.plan) if self.plan else exchange)


def fit(model, data, path, plan, lost, **how):
    """Fit on the cluster while the plan is carried out."""

    def runtime(program, **hooks):
        doomed = DoomedFit(**{name: getattr(program, name) for name in program.__annotations__})
        doomed.plan = plan
        return run_on_ray(
            doomed, workers=RANKS, n_shards=SHARDS, deterministic=False, threads=1, **hooks
        )

    def news(rank, epoch, told):
        if "lost" in told:
            lost.append(rank)

    often = CheckpointOptions(every=0)
    fit_shards(model, data, path, runtime, n_shards=SHARDS, checkpoints=often, on_news=news, **how)


def arrays(path):
    return ll.load(path).learned.arrays


def assert_same(path, expected, what):
    for name, found in arrays(path).items():
        if not np.array_equal(found, expected[name]):
            raise SystemExit(f"{what}: {name} is not the same")
    if path.with_name(f"{path.name}.cluster").exists():
        raise SystemExit(f"{what}: the checkpoint was left behind")


def kill_workers(phase, runs, place, known, chance):
    """Kill a worker in a phase, run after run."""
    for number in range(runs):
        name = chance.choice(list(FITS))
        path, lost = place / f"{phase}-{number}", []
        epoch = chance.randrange(2, EPOCHS)
        plan = Plan(phase, chance.randrange(RANKS), epoch, place / f"{phase}-{number}.marker")
        fit(FITS[name], place / "data", path, plan, lost)
        if not lost:
            raise SystemExit(f"nobody was lost in {plan}")
        assert_same(path, known[name], f"{phase}, {name}, {plan}")
        shutil.rmtree(path)
    return runs


def kill_raylets(runs, place, known, chance, cluster, node):
    """Kill a node with all that runs on it, at a random moment, run after run."""
    done = 0
    while done < runs:
        name, lost = chance.choice(list(FITS)), []
        path = place / f"raylet-{done}"
        victim = chance.choice(list(cluster.worker_nodes))
        delay = chance.uniform(0.5, 4.0)
        killer = threading.Timer(delay, partial(cluster.remove_node, victim, allow_graceful=False))
        killer.start()
        fit(FITS[name], place / "data", path, None, lost)
        killer.join()
        assert_same(path, known[name], f"raylet, {name}, after {delay:.1f} s")
        shutil.rmtree(path)
        cluster.add_node(**node)
        cluster.wait_for_nodes()
        done += bool(lost)  # a fit that was over before does not count
    return done


def kill_drivers(runs, place, known, chance, address):
    """Kill the driver at a random moment, and resume, run after run."""
    done = 0
    while done < runs:
        name = chance.choice(list(FITS))
        path = place / f"driver-{done}"
        command = [
            sys.executable, "-m", "limelight", "fit", place / "data", *MODELS[name],
            "--factors", 16, "--epochs", EPOCHS, "--tolerance", 0, "--threads", 1,
            "--executor", "ray",
            "--address", address, "--workers", RANKS, "--shards", SHARDS,
            "--checkpoint-every", 0, "-o", path,
        ]  # fmt: skip
        command = [str(part) for part in command]
        driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        manifest = path.with_name(f"{path.name}.cluster") / "manifest.json"
        while driver.poll() is None and not manifest.exists():
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        driver.kill()
        driver.wait()
        done += not path.exists()
        subprocess.run([*command, "--resume"], check=True, stderr=subprocess.DEVNULL)
        assert_same(path, known[name], f"driver, {name}")
        shutil.rmtree(path)
    return done


def main(tell=print):
    """Run all kinds of losses, and report."""
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--runs", type=int, default=10, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    chance = random.Random(given.seed)
    patience = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"_system_config": patience})
    for _ in range(RANKS - 1):
        cluster.add_node(**node)
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "data").mkdir()
        ll.split_users(
            ll.marketplace(3000, 400, 60_000).interactions, validation=100, test=100
        ).save(place / "data")
        known = {}
        for name, model in FITS.items():
            fit(model, place / "data", place / name, None, [])
            known[name] = arrays(place / name)
        kill = {phase: partial(kill_workers, phase) for phase in PHASES}
        kill["driver"] = partial(kill_drivers, address=cluster.address)
        kill["raylet"] = partial(kill_raylets, cluster=cluster, node=node)
        try:
            for kind in given.kinds:
                done = kill[kind](given.runs, place, known, chance)
                tell(f"{kind}: {done} runs, all bit-identical")
        finally:
            ray.shutdown()
            cluster.shutdown()


if __name__ == "__main__":
    main()
