"""The loop: what it keeps, when it stops, what it refuses."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from limelight._base.errors import SolveError
from limelight.models.neural.train import EpochRecord, NetworkSolver, NetworkState, largest_change
from limelight.solve.loop import Schedule, Status, run


def fit(curve, callback=None, losses=None, **settings):
    """Run a loop whose only parameter counts the epochs and whose validation follows a curve."""

    def step(state, batch):
        state.parameters["count"] += 1
        return state, {"objective": jnp.asarray(batch)}

    solver = NetworkSolver(
        NetworkState({"count": np.zeros(1)}, None, jnp.zeros((), int), None),
        step,
        lambda epoch: [losses[epoch - 1] if losses else float(epoch)],
        lambda parameters: curve[int(parameters["count"][0]) - 1],
        **settings,
    )
    return solver, run(solver, Schedule(len(curve), callback=callback))


def test_the_best_epoch_is_kept():
    solver, outcome = fit([0.1, 0.3, 0.2])
    assert solver.parameters["count"] == [2]
    assert [record.ndcg for record in outcome.trace] == [0.1, 0.3, 0.2]
    assert [record.objective for record in outcome.trace] == [1, 2, 3]
    assert outcome.status is Status.FINISHED


def test_the_last_epoch_is_kept_on_request():
    solver, _ = fit([0.1, 0.3, 0.2], keep_best=False)
    assert solver.parameters["count"] == [3]


def test_early_stopping():
    solver, outcome = fit([0.1, 0.3, 0.2, 0.3, 0.4], early_stopping=2)
    assert len(outcome.trace) == 4
    assert solver.parameters["count"] == [2]
    assert outcome.status is Status.STALLED
    # A fit that goes on from its last checkpoint is over, too.
    assert solver.status(outcome.trace) is Status.STALLED


@dataclass(frozen=True)
class TwoTasks(EpochRecord):
    losses: ClassVar[tuple[str, ...]] = ("objective", "inequality")
    inequality: float


def traced(objective, inequality):
    return [
        TwoTasks(epoch=1, seconds=0.0, objective=one, ndcg=0.0, inequality=two)
        for one, two in zip(objective, inequality, strict=True)
    ]


def test_the_largest_change_of_all_losses_counts():
    steady, falling = [5.0] * 40, [8.0] * 20 + [6.0] * 20
    assert largest_change(traced(steady, steady)) == 0
    assert largest_change(traced(steady, falling)) == pytest.approx(0.25)
    assert largest_change(traced(falling, steady)) == pytest.approx(0.25)
    # A loss that rises has not come to rest either, and older epochs do not matter.
    assert largest_change(traced(falling[::-1], steady)) == pytest.approx(1 / 3)
    assert largest_change(traced([9.0] * 30 + steady, [1.0] * 30 + steady)) == 0
    assert largest_change(traced(steady[:39], steady[:39])) == np.inf


def test_it_stops_when_the_losses_stand_still():
    losses = [100.0 / epoch for epoch in range(1, 200)]
    solver, outcome = fit([0.1] * 199, losses=losses, tolerance=0.2, keep_best=False)
    assert outcome.status is Status.CONVERGED
    ended = len(outcome.trace)
    assert 40 <= ended < 199
    assert solver.status(outcome.trace) is Status.CONVERGED
    before, last = np.mean(losses[ended - 40 : ended - 20]), np.mean(losses[ended - 20 : ended])
    assert 1 - last / before <= 0.2
    assert solver.parameters["count"] == [ended]
    _, whole = fit([0.1] * 199, losses=losses, keep_best=False)
    assert whole.status is Status.FINISHED


def test_the_callback_sees_every_epoch_and_may_stop():
    seen = []

    def callback(epoch, record):
        seen.append((epoch, record.epoch))
        return epoch == 2

    solver, outcome = fit([0.1, 0.2, 0.3], callback=callback)
    assert seen == [(1, 1), (2, 2)]
    assert outcome.status is Status.STOPPED
    assert solver.parameters["count"] == [2]


def test_seconds_add_up():
    seconds = [record.seconds for record in fit([0.1, 0.2, 0.3])[1].trace]
    assert (np.diff(seconds) > 0).all()


def test_a_loss_that_is_not_finite():
    def step(state, batch):
        return state, {"objective": jnp.asarray(batch) * np.nan}

    state = NetworkState({}, None, jnp.zeros((), int), None)
    solver = NetworkSolver(state, step, lambda epoch: [1.0], lambda parameters: 0.0)
    with pytest.raises(SolveError, match="objective is nan in epoch 1") as caught:
        run(solver, Schedule(epochs=3))
    assert caught.value.hint == "lower learning_rate"
