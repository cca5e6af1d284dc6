"""examples/cluster.yaml is one that Ray takes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.places import ROOT

FILE = ROOT / "examples" / "cluster.yaml"


@pytest.fixture
def cluster() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def test_one_worker_a_machine(cluster: dict[str, Any]) -> None:
    worker = cluster["available_node_types"]["worker"]
    assert worker["min_workers"] == worker["max_workers"] == cluster["max_workers"]
    assert f"--workers {cluster['max_workers']} " in FILE.read_text()
    assert cluster["available_node_types"][cluster["head_node_type"]]["resources"]["CPU"] == 0


def test_storage_is_mounted_where_it_is_used(cluster: dict[str, Any]) -> None:
    assert "--volume=/shared:/shared" in cluster["docker"]["run_options"]
    assert any(" /shared" in command for command in cluster["initialization_commands"])
    mount = next(c for c in cluster["initialization_commands"] if "nfs4" in c)
    assert "#" not in mount, "a folded command has no comments"
    assert cluster["provider"]["region"] in mount


@pytest.mark.filterwarnings("ignore")
def test_ray_takes_it(cluster: dict[str, Any]) -> None:
    util = pytest.importorskip("ray.autoscaler._private.util", reason="Ray is not installed")
    pytest.importorskip("jsonschema", reason="Ray checks with it")
    util.validate_config(util.prepare_config(cluster))
