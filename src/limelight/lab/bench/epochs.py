"""Races of whole epochs and of single kernels: against peers, the machine's peak and one thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from limelight._base.arrays import factor_matrix
from limelight._base.machine import version_of
from limelight._native import kernels
from limelight.lab.bench import peers
from limelight.lab.bench.peers import quiet_imports
from limelight.lab.bench.task import (
    EXADMM_PERIOD,
    ExAdmm,
    Ials,
    K,
    UserStep,
    cg_epoch_flops,
    exadmm_epoch_flops,
    ials_epoch_flops,
)
from limelight.lab.bench.timing import Candidate, calls_for
from limelight.recommend.fold_in import take_rows
from limelight.recommend.index import ItemIndex
from limelight.solve.cost import direct
from limelight.solve.problem import gramian, sparse_rows
from limelight.solve.state import pad_factors
from limelight.solve.steps import CG_STEPS, exact_u_step, v_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Float32
    from limelight._native._kernels import Csr
    from limelight.lab.bench.jobs import RaceSetup
    from limelight.lab.bench.records import Race
    from limelight.lab.bench.task import Task, Trainer


ABOUT_EXACT = (
    "Every user and every item is solved exactly, once. All start from the same factors and "
    "minimise the same loss, so the objectives after the same number of epochs agree."
)

ABOUT_CG = (
    "A few conjugate-gradient steps for every row, from where the last epoch ended: three of the "
    f"peers', {CG_STEPS} of ours, which are preconditioned. The objective shows what they reach. "
    "irspack's iALS++ (exact in blocks of 64 factors) is a further row."
)

ABOUT_EXADMM = (
    f"The mean of {EXADMM_PERIOD} epochs, which hold one refresh of the step sizes. Its objective "
    "is shown without the exposure penalty, which it gives some accuracy away for. It is compared "
    "with one exact iALS epoch of irspack's and one of our own."
)

ABOUT_USER_STEP = (
    "All that exADMM does for the users in an epoch (Gramian of the items, step sizes, gradient, "
    "proximal shift, mean and Gramian of the users, the steps s and w) against the exact half-step "
    f"of iALS. The mean of {EXADMM_PERIOD}, as above. The shift is timed as a pass of its own; in "
    "an epoch it is part of another."
)

ABOUT_AGREEMENT = "The objective and nDCG@20 of our two row solvers after twelve epochs."
_AGREEMENT_ROUNDS = 11  # and the one that warms up


def exact(setup: RaceSetup) -> Iterator[Race]:
    """Race exact iALS epochs."""
    task = setup.task()
    trainers = [Ials(task), *peers.exact_solvers(task)]
    yield _epochs("exact", setup, task, trainers, ials_epoch_flops(task.shape))


def cg(setup: RaceSetup) -> Iterator[Race]:
    """Race epochs of a few descent steps a row."""
    task = setup.task()
    trainers = [Ials(task, "cg"), *peers.descents(task)]
    yield _epochs("cg", setup, task, trainers, cg_epoch_flops(task.shape))


def exadmm(setup: RaceSetup) -> Iterator[Race]:
    """Race an epoch of exADMM against exact iALS epochs."""
    task = setup.task()
    trainers: list[Trainer] = [ExAdmm(task), Ials(task), *peers.irspack_cholesky(task)]
    yield _epochs("exadmm", setup, task, trainers, exadmm_epoch_flops(task.shape))


def user_step(setup: RaceSetup) -> Iterator[Race]:
    """Race the user step of exADMM against the exact half-step of iALS."""
    task = setup.task()
    steps = UserStep(task)
    candidates = [
        Candidate("limelight exADMM", steps.exadmm, calls=EXADMM_PERIOD),
        Candidate("limelight iALS", steps.ials),
    ]
    yield setup.race("user-step", candidates)


def agreement(setup: RaceSetup) -> Iterator[Race]:
    """Run both of our row solvers for twelve epochs."""
    setup = replace(setup, rounds=_AGREEMENT_ROUNDS)
    task = setup.task()
    trainers = [Ials(task, "cg"), Ials(task)]
    yield _epochs("agreement", setup, task, trainers, None)


def _epochs(
    job: str, setup: RaceSetup, task: Task, trainers: Sequence[Trainer], flops: float | None
) -> Race:
    """Race epochs, then measure what everybody has learnt; ``flops`` are those of the first."""
    candidates = [
        Candidate(
            trainer.who,
            trainer.epoch,
            calls=EXADMM_PERIOD if isinstance(trainer, ExAdmm) else 1,
            flops=None if number else flops,
        )
        for number, trainer in enumerate(trainers)
    ]
    if flops is None:
        race = setup.race(job, candidates)
    else:
        race = setup.race_against_peak(job, candidates)
    learnt = [trainer.learnt() for trainer in trainers]
    return race.with_results(objective=map(task.objective, learnt), ndcg=map(task.ndcg, learnt))


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
_QUERIES_ON_ONE_THREAD = 4096
_MORE = 3  # times the usual rounds: a share of the peak has the errors of both of its parts


def dense(setup: RaceSetup) -> Iterator[Race]:
    """Solve long rows at 256 factors."""
    setup = replace(setup, rounds=_MORE * setup.rounds)
    d, draw = _DENSE_FACTORS, np.random.default_rng(0)
    rows = _long_rows(draw)
    factors = draw.standard_normal((_COLUMNS, d), dtype=np.float32) / np.float32(np.sqrt(d))
    eigenvalues = np.linspace(1, 100, d, dtype=np.float32)
    regularization = np.ones(rows.n_rows, dtype=np.float32)
    out = np.empty((rows.n_rows, d), dtype=np.float32)
    system = (rows, factors, eigenvalues, regularization)
    solve = partial(
        kernels.solve_rows,
        *system,
        shift=None,
        out=out,
        probe=None,
        response=None,
        threads=setup.threads,
    )
    flops = float(np.sum(direct(np.diff(rows.indptr).astype(np.float64), d)))
    race = setup.race_against_peak("dense", [Candidate("limelight", solve, flops=flops)])
    yield replace(race, data="made up", factors=d)


def _long_rows(draw: np.random.Generator) -> Csr:
    lengths = draw.integers(_SHORTEST, _LONGEST + 1, LONG_ROWS)
    rows = [np.sort(draw.choice(_COLUMNS, n, replace=False)) for n in lengths]
    return sparse_rows(np.append(0, np.cumsum(lengths)), np.concatenate(rows), _COLUMNS)


def top_k(setup: RaceSetup) -> Iterator[Race]:
    """Search the best items for many users."""
    setup = replace(setup, rounds=_MORE * setup.rounds)
    task = setup.task()
    trainer = Ials(task)
    for _ in range(3):
        trainer.epoch()
    U, V, _ = trainer.learnt()
    queries = U[:_QUERIES]
    seen = take_rows(task.problem.rows, np.arange(len(queries)))
    searches = {"limelight": _our_search(queries, V, seen, setup.threads)}
    if version_of("implicit"):
        searches["implicit"] = _implicit_search(queries, V, seen, setup.threads)
    flops = 2.0 * len(queries) * len(V) * task.factors
    candidates = [Candidate(who, search, flops=flops) for who, search in searches.items()]
    race = setup.race_against_peak("topk", candidates)
    listed = (search() for search in searches.values())
    yield race.with_results(objective=[float(np.mean(one, dtype=np.float64)) for one in listed])


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


ABOUT_THREADS = (
    "Every kernel with one thread and with all that the process may use, by the clock on the wall. "
    "The ratio is the speed-up. Results are the same bits."
)


def threads(setup: RaceSetup) -> Iterator[Race]:
    """Race every kernel with itself, on one thread and on all; with one core, nothing races."""
    if setup.threads == 1:
        return
    alone, together = (
        _threaded_kernels(replace(setup, threads=count).task()) for count in (1, setup.threads)
    )
    for part, one_thread in alone.items():
        period = EXADMM_PERIOD if "exADMM" in part else 1
        calls = period * calls_for(one_thread)
        candidates = [
            Candidate("1 thread", one_thread, calls=calls),
            Candidate(f"{setup.threads} threads", together[part], calls=calls),
        ]
        yield setup.race("threads", candidates, part=part, clock="wall")


def _threaded_kernels(task: Task) -> dict[str, Callable[[], object]]:
    """Name what runs on threads, from single kernels to whole epochs."""
    ials, descent, exadmm = Ials(task), Ials(task, "cg"), ExAdmm(task)
    for trainer in (ials, descent, exadmm):
        trainer.epoch()
    problem = ials.problem
    U, V = pad_factors(ials.state.U), pad_factors(ials.state.V)
    Q, rotated = np.eye(U.shape[1], dtype=np.float32), factor_matrix(*U.shape)
    index = ItemIndex(ials.learnt().V, task.threads)
    queries = ials.learnt().U[:_QUERIES_ON_ONE_THREAD]
    seen = take_rows(problem.rows, np.arange(len(queries)))
    return {
        "Gramian": partial(gramian, U, task.threads),
        "rotation": partial(kernels.rotate, U, Q, rotated, task.threads),
        "squared error": partial(kernels.squared_error, problem.rows, U, V, task.threads),
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
