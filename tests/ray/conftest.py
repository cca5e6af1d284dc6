"""One cluster of three nodes on this machine, for all tests of a run."""

from __future__ import annotations

import logging
import os

import pytest
from tests.support.commands import SOURCE
from tests.support.places import ROOT

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(scope="session")
def nodes():
    """Three raylets, each with a store of its own."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    from ray.cluster_utils import Cluster

    # A node is given up after five seconds of silence, not after fifteen.
    patience = {"health_check_period_ms": 1000, "health_check_failure_threshold": 5}
    with pytest.MonkeyPatch.context() as patch:
        # Workers import what tests define, and the limelight that is tested.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), SOURCE]))
        cluster = Cluster(initialize_head=True, head_node_args=NODE | {"_system_config": patience})
        for _ in range(2):
            cluster.add_node(**NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def cluster(nodes):
    """The same, joined by this process; others may join it by its address."""
    import ray

    ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
    yield nodes
    ray.shutdown()
