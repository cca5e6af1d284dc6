"""Memory by the row, as asked for, and as the system allows it; in processes of their own.

What other tests left behind would count here, and what is imported or made on first use does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.commands import run_python, without_memory

from limelight.data import read_candidates

if TYPE_CHECKING:
    from pathlib import Path

PEAK = """
import sys
from limelight.lab.bench.memory import peak_bytes
from limelight.cli import main
try:
    main(["audit", *sys.argv[1:], "--json"])
finally:
    print(peak_bytes() // 1024, file=sys.stderr)
"""


def peak_kib(*arguments: object) -> int:
    ended = run_python(PEAK, *arguments)
    assert ended.returncode == 0, ended.stderr
    return int(without_memory(ended.stderr))


@pytest.mark.parametrize("kind", ["integers", "text"])
def test_an_audit_takes_little_for_each_row(tmp_path: Path, kind: str) -> None:
    n_users, k = 100_000, 20
    draw = np.random.default_rng(0)
    items = (draw.integers(0, 20_000, (n_users, 1)) + 37 * np.arange(k)) % 20_000
    columns: dict[str, Any] = {
        "user_id": pa.array(np.repeat(np.arange(n_users, dtype=np.int32), k)),
        "item_id": pa.array(items.ravel().astype(np.int32)),
        "rank": pa.array(np.tile(np.arange(1, k + 1, dtype=np.int32), n_users)),
    }
    if kind == "text":
        columns |= {name: columns[name].cast(pa.string()) for name in ("user_id", "item_id")}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "lists.parquet")
    pq.write_table(table[: 20 * k], tmp_path / "few.parquet")
    more = peak_kib(tmp_path / "lists.parquet") - peak_kib(tmp_path / "few.parquet")
    # 2 GiB for 20 million rows are 107 bytes a row.
    assert 1024 * more / len(table) < 90


READ = """
import sys
from limelight.lab.bench.memory import bytes_taken
from limelight.data.candidates.candidates import read_candidates
small, large = sys.argv[1:]
read_candidates(small).close()
print(bytes_taken(lambda: read_candidates(large, memory=32 << 20).close()))
"""


@pytest.mark.parametrize("is_grouped", [True, False])
def test_candidates_take_what_they_were_given(tmp_path, is_grouped):
    generator = np.random.default_rng(0)
    n_users, n_each = 40_000, 400
    users = np.repeat(np.arange(n_users), n_each)
    items = (np.arange(n_users * n_each) * 7) % 20_011  # distinct for a user
    scores = generator.random(len(users), dtype=np.float32)
    if not is_grouped:
        order = generator.permutation(len(users))
        users, items, scores = users[order], items[order], scores[order]
    table = pa.table({"user_id": users, "item_id": items, "score": scores})
    file, small = tmp_path / "c.parquet", tmp_path / "small.parquet"
    pq.write_table(table, file)
    pq.write_table(table.slice(0, 100), small)
    with read_candidates(file, memory=32 << 20) as candidates:
        assert candidates.nbytes_on_disk == 8 * n_users * n_each
        assert (candidates.counts == n_each).all()
    taken = run_python(READ, small, file)
    assert taken.returncode == 0, taken.stderr
    # Beside the 32 MiB: what Arrow decodes ahead, ids and row pointers. The pairs are 128 MB.
    assert int(taken.stdout) < 100 << 20


def test_a_limit_of_addresses_counts() -> None:
    code = (
        "import resource, limelight._base.memory as m\n"
        "before = m.room()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "print(m.room() < 2 << 30, m.room() <= before)"
    )
    shown = run_python(code)
    assert shown.stdout.split() == ["True", "True"]
