"""Ray on one machine, started by us; and no Ray at all."""

from __future__ import annotations

import os
import sys

import pytest
from tests.support.commands import SOURCE, run_python
from tests.support.places import ROOT
from tests.support.toy import Toy

import limelight as ll
from limelight.cluster.ray.run import run_on_ray

SCRIPT = """
import signal, sys
from pathlib import Path
from limelight.cluster.ray.run import run_on_ray
from tests.support.toy import Kills, Toy

folder = Path(sys.argv[1])
toy = Toy(folder, epochs=2, mishap=Kills(folder, frozenset({(1, "sum_small", 1)})))
signal.signal(signal.SIGTERM, lambda number, frame: None)
ours = signal.getsignal(signal.SIGTERM)
results = run_on_ray(toy, workers=2, n_shards=4, deterministic=True)
import ray
print([result["epoch"] for result in results])
print(signal.getsignal(signal.SIGTERM) is ours, ray.is_initialized())
"""


def run(toy, **more):
    return run_on_ray(toy, **({"workers": 2, "n_shards": 4, "deterministic": True} | more))


def test_without_ray_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ll.ConfigError, match="work on a cluster needs Ray") as caught:
        run(Toy(tmp_path))
    assert caught.value.hint == "pip install 'limelight[ray]'"


@pytest.mark.parametrize("workers", [0, 5])
def test_every_rank_has_a_shard(tmp_path, workers):
    with pytest.raises(ll.ConfigError, match=f"from 1 to 4 workers, .*: {workers}"):
        run(Toy(tmp_path), workers=workers)


@pytest.mark.parametrize(
    ("address", "why"), [("127.0.0.1:1", "refused"), ("ray://10.0.0.1:10001", "no use")]
)
def test_a_cluster_that_is_not_there(tmp_path, address, why):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    with pytest.raises(ll.ConfigError, match=f"cluster at '{address}': .*{why}") as caught:
        run(Toy(tmp_path), address=address)
    assert "ray start --head" in caught.value.hint


def test_a_cluster_of_our_own_starts_and_ends_quietly(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    path = os.pathsep.join([str(ROOT), SOURCE])
    shown = run_python(SCRIPT, tmp_path, PYTHONPATH=path)
    assert (shown.stdout, shown.stderr) == ("[2, 2]\nTrue False\n", "")
    assert len(list(tmp_path.glob("killed at *"))) == 1
