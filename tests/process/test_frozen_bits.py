"""The bits of a fit, of re-ranked lists, of an audit, of a report and of a model folder.

Bits depend on the instructions that a processor has. Here all arithmetic is done with those that
every x86-64 processor has, which is slow, so that they should be the same on all of them.
"""

from __future__ import annotations

import platform
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__
from tests.support.commands import run_python
from tests.support.snapshots import compare

PLAIN = {
    "LIMELIGHT_KERNEL": "baseline",
    "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
}
SCRIPT = '''
import hashlib, json, re, sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import limelight as ll
from tests.support.models import FIXED
from tests.support.page_data import page_data

folder, found = Path(sys.argv[1]), {}


def keep(name, content):
    """Keep the hash of an array, of a file's bytes, of a text or of a record."""
    if isinstance(content, np.ndarray):
        content = f"{content.dtype} {content.shape}".encode() + content.tobytes()
    if isinstance(content, dict):
        content = json.dumps(content, default=float)
    if isinstance(content, str):
        content = content.encode()
    content = re.sub(rb'"seconds": [0-9.e-]+', b"", content)  # the only thing that may differ
    found[name] = hashlib.sha256(content).hexdigest()[:16]


market = ll.marketplace(400, 80, 6000, seed=7)
split = ll.split_users(market.interactions, validation=60, test=60, seed=7)
fixed = {"factors": 12, "epochs": 5, **FIXED}
models = {
    "ials": ll.IALS(**fixed),
    "exact": ll.ExADMM(exposure_strength=0.5, **fixed),
    "admm": ll.ExADMM(exposure_strength=0.5, solver="admm", **fixed),
    "ials by default": ll.IALS(),
    "exadmm by default": ll.ExADMM(exposure_strength=0.5),
}
for name, model in models.items():
    model.fit(split.train)
    keep(f"fit {name}: users", model.user_factors)
    keep(f"fit {name}: items", model.item_factors)
    for place, array in zip(("ids", "scores"), model.recommend(split.test.history, k=10)):
        keep(f"fit {name}: {place} of unseen users", array)
    keep(f"fit {name}: evaluation", dict(ll.evaluate(model, split.test, k=10)))

model = models["exact"]
model.save(folder / "model")
for file in sorted((folder / "model").iterdir()):
    keep(f"model folder: {file.name}", file.read_bytes())

reranked = ll.rerank(models["ials"], gini=0.4, k=10)
reranked.write(folder / "lists.parquet")
keep("rerank: lists", pq.read_table(folder / "lists.parquet").to_pydict())
keep("rerank: text", str(reranked))
keep("rerank: record", reranked.to_dict())

audited = ll.audit(folder / "lists.parquet", catalogue=model.item_ids)
keep("audit: text", str(audited))
keep("audit: record", audited.to_dict())

target = ll.fit_to(split, gini=0.45, at=10, model=ll.ExADMM(**fixed))
keep("target: text", str(target))

for kind, result in (("an audit", audited), ("a target", target)):
    result.report(folder / "report.html")
    payload = page_data(folder / "report.html")
    payload.pop("made")
    for part, content in payload.items():
        keep(f"report of {kind}: {part}", json.dumps(content))
print("\\n".join(f"{name}: {hashed}" for name, hashed in found.items()))
'''


@pytest.mark.skipif(
    (platform.machine(), sys.platform) != ("x86_64", "linux"),
    reason="the bits are those of Linux on x86-64",
)
def test_bits(tmp_path) -> None:
    done = run_python(SCRIPT, tmp_path, **PLAIN)
    assert done.returncode == 0, done.stderr
    compare("bits.txt", done.stdout)
