"""How close two kernels come to the machine's peak: long row solves, and top-k."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from limelight._machine import version_of
from limelight._native import kernels
from limelight.benchmarks import work
from limelight.benchmarks.ours import Ials
from limelight.benchmarks.peers import quiet_imports
from limelight.benchmarks.task import K
from limelight.benchmarks.timing import Candidate
from limelight.recommend.histories import take_rows
from limelight.recommend.topk import ItemIndex
from limelight.solve.problem import sparse_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight._arrays import Float32
    from limelight._native._kernels import Csr
    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting

ABOUT_DENSE = (
    "The kernel of exact row solves on 400 made-up rows of 1,000 to 1,400 entries over 8,000 "
    "others, so that every row takes the direct way (d x d). Operations: nnz (d² + 2d) + rows "
    "(d³/3 + 2d²)."
)
ABOUT_TOP_K = (
    f"Lists of {K} for up to 8,192 training users, their histories left out, from factors of three "
    "epochs. Operations: 2 users x items x d, the scores alone. The objective is the mean score of "
    "what is listed; the factors are laid out for searching once, before."
)

LONG_ROWS = 400
"""How many rows the long solves have; at least 1,000 entries each."""
_COLUMNS, _SHORTEST, _LONGEST = 8_000, 1_000, 1_400
_DENSE_FACTORS = 256
_QUERIES = 8192
_MORE = 3  # times the usual rounds: a share of the peak is only as good as both of its parts


def dense(setting: Setting) -> Iterator[Race]:
    """Solve long rows at 256 factors."""
    setting = replace(setting, rounds=_MORE * setting.rounds)
    d, draw = _DENSE_FACTORS, np.random.default_rng(0)
    rows = _long_rows(draw)
    factors = draw.standard_normal((_COLUMNS, d), dtype=np.float32) / np.float32(np.sqrt(d))
    eigenvalues = np.linspace(1, 100, d, dtype=np.float32)
    regularization = np.ones(rows.n_rows, dtype=np.float32)
    out = np.empty((rows.n_rows, d), dtype=np.float32)
    solve = partial(
        kernels.solve_rows,
        rows,
        factors,
        eigenvalues,
        regularization,
        shift=None,
        out=out,
        probe=None,
        response=None,
        threads=setting.threads,
    )
    flops = work.direct_solve(np.diff(rows.indptr), d)
    race = setting.race_against_peak("dense", [Candidate("limelight", solve, flops=flops)])
    yield replace(race, data="made up", factors=d)


def _long_rows(draw: np.random.Generator) -> Csr:
    lengths = draw.integers(_SHORTEST, _LONGEST + 1, LONG_ROWS)
    rows = [np.sort(draw.choice(_COLUMNS, n, replace=False)) for n in lengths]
    return sparse_rows(np.append(0, np.cumsum(lengths)), np.concatenate(rows), _COLUMNS)


def top_k(setting: Setting) -> Iterator[Race]:
    """Search the best items for many users."""
    setting = replace(setting, rounds=_MORE * setting.rounds)
    task = setting.task()
    trainer = Ials(task)
    for _ in range(3):
        trainer.epoch()
    U, V, _ = trainer.learnt()
    queries = U[:_QUERIES]
    seen = take_rows(task.problem.rows, np.arange(len(queries)))
    searches = {"limelight": _our_search(queries, V, seen, setting.threads)}
    if version_of("implicit"):
        searches["implicit"] = _implicit_search(queries, V, seen, setting.threads)
    flops = work.top_k(len(queries), len(V), task.factors)
    candidates = [Candidate(who, search, flops=flops) for who, search in searches.items()]
    race = setting.race_against_peak("topk", candidates)
    entries = [
        replace(entry, objective=float(np.mean(search(), dtype=np.float64)))
        for entry, search in zip(race.entries, searches.values(), strict=True)
    ]
    yield replace(race, entries=tuple(entries))


def _our_search(queries: Float32, V: Float32, seen: Csr, threads: int) -> Callable[[], Float32]:
    index = ItemIndex(V, threads)
    return lambda: index.search(queries, min(K, len(V)), seen).scores


def _implicit_search(
    queries: Float32, V: Float32, seen: Csr, threads: int
) -> Callable[[], Float32]:
    with quiet_imports():
        from implicit.cpu.topk import topk
    ones = np.ones(seen.n_entries, dtype=np.float32)
    history = csr_matrix((ones, seen.indices, seen.indptr), shape=(len(queries), len(V)))
    k = min(K, len(V))
    return lambda: topk(V, queries, k, filter_query_items=history, num_threads=threads)[1]
