"""What threads bring: every kernel with one thread and with all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from limelight._arrays import factor_matrix
from limelight._native import kernels
from limelight.benchmarks.ours import EXADMM_PERIOD, ExAdmm, Ials, UserStep
from limelight.benchmarks.task import K
from limelight.benchmarks.timing import Candidate, calls_for
from limelight.recommend.histories import take_rows
from limelight.recommend.topk import ItemIndex
from limelight.solve.gramian import gramian
from limelight.solve.state import pad_factors
from limelight.solve.steps import exact_u_step, v_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting
    from limelight.benchmarks.task import Task

ABOUT = (
    "Every kernel with one thread and with all that the process may use, by the clock on the wall. "
    "The ratio is the speed-up. Results are the same bits."
)
_QUERIES = 4096


def speedup(setting: Setting) -> Iterator[Race]:
    """Race every kernel with itself, on one thread and on all; with one core, nothing races."""
    if setting.threads == 1:
        return
    alone, together = (
        _work(replace(setting, threads=threads).task()) for threads in (1, setting.threads)
    )
    for part, one_thread in alone.items():
        period = EXADMM_PERIOD if "exADMM" in part else 1
        calls = period * calls_for(one_thread)
        candidates = [
            Candidate("1 thread", one_thread, calls=calls),
            Candidate(f"{setting.threads} threads", together[part], calls=calls),
        ]
        yield setting.race("threads", candidates, part=part, clock="wall")


def _work(task: Task) -> dict[str, Callable[[], object]]:
    """Name what runs on threads, from single kernels to whole epochs."""
    ials, descent, exadmm = Ials(task), Ials(task, "cg"), ExAdmm(task)
    for trainer in (ials, descent, exadmm):
        trainer.epoch()
    problem, threads = ials.problem, task.threads
    U, V = pad_factors(ials.state.U), pad_factors(ials.state.V)
    Q, rotated = np.eye(U.shape[1], dtype=np.float32), factor_matrix(*U.shape)
    index = ItemIndex(ials.learnt().V, threads)
    queries = ials.learnt().U[:_QUERIES]
    seen = take_rows(problem.rows, np.arange(len(queries)))
    return {
        "Gramian": partial(gramian, U, threads),
        "rotation": partial(kernels.rotate, U, Q, rotated, threads),
        "squared error": partial(kernels.squared_error, problem.rows, U, V, threads),
        "row solve, users": partial(exact_u_step, problem, ials.state),
        "row solve, items": partial(v_step, problem, ials.state),
        "row descent, users": partial(exact_u_step, descent.problem, descent.state),
        "row descent, items": partial(v_step, descent.problem, descent.state),
        "user step of exADMM": UserStep(task).exadmm,
        "top-k": partial(index.search, queries, K, seen),
        "exact iALS epoch": ials.epoch,
        "CG iALS epoch": descent.epoch,
        "exADMM epoch": exadmm.epoch,
    }
