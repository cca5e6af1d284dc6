"""A cluster of three nodes on one machine, which the tests of a module share; and none at all."""

from __future__ import annotations

import logging
import pickle

import pytest


@pytest.fixture(scope="module")
def cluster():
    """Three raylets, each with a store of its own; the driver is connected to the first."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    from ray.cluster_utils import Cluster

    # A node is given up after five seconds of silence, not after fifteen.
    patience = {"health_check_period_ms": 1000, "health_check_failure_threshold": 5}
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"_system_config": patience})
    for _ in range(2):
        cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


class Elsewhere:
    """Does pieces in turn, as another process would: copies go to and fro, which nobody writes to.

    The arrays that a cluster hands out are shared, so they are read-only.
    """

    def map(self, work, pieces, total=None):
        del total
        for piece in pieces:
            yield sent(sent(work)(sent(piece)))


def sent(value):
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.fixture
def pieces():
    return Elsewhere()
