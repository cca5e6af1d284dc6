"""Everybody minimises the same loss: the objectives after a few epochs say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from limelight.lab.bench import peers
from limelight.lab.bench.task import ExAdmm, Ials, Learnt, Task, UserStep
from limelight.lab.bench.timing import held_to
from limelight.models import IALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.lab.bench.task import DataSet, Trainer

EPOCHS = 3


@pytest.fixture
def task(tiny: DataSet) -> Iterator[Task]:
    with held_to(1):
        yield Task(tiny, factors=12, threads=1)


def trained(trainer: Trainer) -> Learnt:
    for _ in range(EPOCHS):
        trainer.epoch()
    return trainer.learnt()


def check_same(task: Task, trainer: Trainer, tolerance: float) -> None:
    ours, theirs = trained(Ials(task)), trained(trainer)
    assert task.objective(theirs) == pytest.approx(task.objective(ours), rel=tolerance)
    assert task.ndcg(theirs) == pytest.approx(task.ndcg(ours), abs=0.03)


def test_our_epochs_are_those_of_a_fit(task: Task) -> None:
    model = IALS(
        factors=12,
        epochs=EPOCHS,
        regularization=task.regularization,
        regularization_exponent=0.0,
        unobserved_weight=0.1,
    ).fit(task.data.split.train)
    assert np.array_equal(trained(Ials(task)).V, model.item_factors)


def test_descent_reaches_the_same_objective(task: Task) -> None:
    check_same(task, Ials(task, "cg"), 0.02)


def test_exadmm_pays_for_exposure(task: Task) -> None:
    iteration = ExAdmm(task)
    learnt = trained(iteration)
    assert learnt.price is not None
    assert np.abs(learnt.price).max() > 0
    without = learnt._replace(price=None)
    assert 0 < task.ndcg(learnt) != task.ndcg(without)
    assert iteration.state.pending is None


def test_user_steps_leave_the_items_alone(task: Task) -> None:
    steps = UserStep(task)
    before = steps._exadmm.state.V.copy(), steps._ials.state.V.copy()
    steps.exadmm()
    steps.ials()
    assert np.array_equal(steps._exadmm.state.V, before[0])
    assert np.array_equal(steps._ials.state.V, before[1])
    assert steps._exadmm.state.pending is None


@pytest.mark.parametrize(
    ("solver", "tolerance"), [("CHOLESKY", 1e-5), ("IALSPP", 1e-5), ("CG", 0.02)]
)
def test_irspack(task: Task, solver: peers.Solver, tolerance: float) -> None:
    pytest.importorskip("irspack", reason="irspack is not installed", exc_type=ImportError)
    check_same(task, peers.Irspack(task, solver), tolerance)


@pytest.mark.parametrize(("use_cg", "tolerance"), [(False, 1e-5), (True, 0.02)])
def test_implicit(task: Task, use_cg: bool, tolerance: float) -> None:
    pytest.importorskip("implicit", reason="implicit is not installed")
    check_same(task, peers.Implicit(task, use_cg=use_cg), tolerance)


def test_lenskit(task: Task) -> None:
    pytest.importorskip("lenskit", reason="LensKit is not installed")
    check_same(task, peers.LensKit(task), 1e-5)
    many = Task(task.data, task.factors, threads=7)
    assert "LensKit Cholesky" not in [peer.who for peer in peers.exact_solvers(many)]


@pytest.mark.parametrize("field", [peers.exact_solvers, peers.descents])
def test_without_peers(
    task: Task, field: Callable[[Task], list[Trainer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "version_of", lambda _: None)
    assert field(task) == []
    assert peers.irspack_instructions() is None
