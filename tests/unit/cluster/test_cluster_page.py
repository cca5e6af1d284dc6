"""The predictions of docs/guide/cluster.md are the simulator's.

``LIMELIGHT_WRITE_CLUSTER=1 pytest tests/unit/cluster/test_cluster_page.py`` writes the table anew.
"""

from __future__ import annotations

import os
import re

from tests.support.places import ROOT

from limelight.cluster.forecast.forecast import amount, duration, simulate
from limelight.cluster.forecast.workload import Cluster, Solver, Workload

PAGE = ROOT / "docs" / "guide" / "cluster.md"
HEAD = (
    "| machines | shards | rows and items of an epoch | busiest line | memory of a machine "
    "| epoch, exact | epoch, `--solver admm` |\n|---|---|---|---|---|---|---|\n"
)
SIZES = ((16, 64), (16, 128), (64, 64), (64, 128), (64, 256), (64, 512), (128, 256))


def test_the_table() -> None:
    table = HEAD + "".join(row(*sizes) for sizes in SIZES)
    page = PAGE.read_text()
    if os.environ.get("LIMELIGHT_WRITE_CLUSTER"):
        pattern = re.escape(HEAD) + r"(\|.*\n)*"
        page = re.sub(pattern, lambda _: table, page)
        PAGE.write_text(page)
    assert table in page


def test_the_file_is_shown_as_it_is() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks == [(ROOT / "examples" / "cluster.yaml").read_text()]


def row(machines: int, shards: int) -> str:
    exact, admm = (forecast(machines, shards, solver) for solver in ("exact", "admm"))
    sent = sum(exact.traffic[verb].total for verb in ("exchange_rows", "gather_items"))
    cells = (
        str(machines),
        str(shards),
        amount(sent),
        amount(exact.busiest_bytes),
        amount(exact.memory.peak),
        duration(exact.epoch_seconds),
        duration(admm.epoch_seconds),
    )
    return f"| {' | '.join(cells)} |\n"


def forecast(machines: int, shards: int, solver: Solver):
    work = Workload(
        n_users=10**8, n_items=10**7, n_interactions=10**10, factors=128, solver=solver, epochs=15
    )
    return simulate(work, Cluster(machines=machines, shards=shards, network=25))
