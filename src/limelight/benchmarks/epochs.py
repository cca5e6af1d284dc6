"""Whole epochs: ours against the peers', and ours against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from limelight.benchmarks import peers, work
from limelight.benchmarks.ours import EXADMM_PERIOD, ExAdmm, Ials, UserStep
from limelight.benchmarks.timing import Candidate
from limelight.solve.steps import CG_STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting
    from limelight.benchmarks.task import Task, Trainer

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


def exact(setting: Setting) -> Iterator[Race]:
    """Race exact iALS epochs."""
    task = setting.task()
    trainers = [Ials(task), *peers.exact_solvers(task)]
    yield _epochs("exact", setting, task, trainers, work.ials_epoch(task.shape))


def cg(setting: Setting) -> Iterator[Race]:
    """Race epochs of a few descent steps a row."""
    task = setting.task()
    trainers = [Ials(task, "cg"), *peers.descents(task)]
    yield _epochs("cg", setting, task, trainers, work.cg_epoch(task.shape))


def exadmm(setting: Setting) -> Iterator[Race]:
    """Race an epoch of exADMM against exact iALS epochs."""
    task = setting.task()
    trainers: list[Trainer] = [ExAdmm(task), Ials(task), *peers.irspack_cholesky(task)]
    yield _epochs("exadmm", setting, task, trainers, work.exadmm_epoch(task.shape))


def user_step(setting: Setting) -> Iterator[Race]:
    """Race the user step of exADMM against the exact half-step of iALS."""
    task = setting.task()
    steps = UserStep(task)
    candidates = [
        Candidate("limelight exADMM", steps.exadmm, calls=EXADMM_PERIOD),
        Candidate("limelight iALS", steps.ials),
    ]
    yield setting.race("user-step", candidates)


def agreement(setting: Setting) -> Iterator[Race]:
    """Run both of our row solvers for twelve epochs."""
    setting = replace(setting, rounds=_AGREEMENT_ROUNDS)
    task = setting.task()
    trainers = [Ials(task, "cg"), Ials(task)]
    yield _epochs("agreement", setting, task, trainers, None)


def _epochs(
    job: str, setting: Setting, task: Task, trainers: Sequence[Trainer], flops: float | None
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
        race = setting.race(job, candidates)
    else:
        race = setting.race_against_peak(job, candidates)
    learnt = [trainer.learnt() for trainer in trainers]
    entries = [
        replace(entry, objective=task.objective(factors), ndcg=task.ndcg(factors))
        for entry, factors in zip(race.entries, learnt, strict=True)
    ]
    return replace(race, entries=tuple(entries))
