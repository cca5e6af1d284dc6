"""The loop: what it keeps, when it stops, what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from limelight._base.errors import SolveError
from limelight.models.neural.train import EpochRecord, Schedule, State, run
from limelight.solve.loop import Status


def fit(curve, **settings):
    """Run a loop whose only parameter counts the epochs and whose validation follows a curve."""

    def step(state, batch):
        counted = {"count": state.parameters["count"] + 1}
        return State(counted, None, state.updates + 1, None), {"objective": jnp.asarray(batch)}

    return run(
        State({"count": jnp.zeros(1)}, None, jnp.zeros((), int), None),
        step,
        lambda epoch: [float(epoch)],
        lambda parameters: curve[int(parameters["count"][0]) - 1],
        Schedule(**{"epochs": len(curve), "early_stopping": 0, "record": EpochRecord, **settings}),
    )


def test_the_best_epoch_is_kept():
    outcome = fit([0.1, 0.3, 0.2])
    assert outcome.parameters["count"] == [2]
    assert [record.ndcg for record in outcome.trace] == [0.1, 0.3, 0.2]
    assert [record.objective for record in outcome.trace] == [1, 2, 3]
    assert outcome.status is Status.FINISHED


def test_the_last_epoch_is_kept_on_request():
    assert fit([0.1, 0.3, 0.2], keep_best=False).parameters["count"] == [3]


def test_early_stopping():
    outcome = fit([0.1, 0.3, 0.2, 0.3, 0.4], early_stopping=2)
    assert len(outcome.trace) == 4
    assert outcome.parameters["count"] == [2]
    assert outcome.status is Status.STALLED


def test_the_callback_sees_every_epoch_and_may_stop():
    seen = []

    def callback(epoch, record):
        seen.append((epoch, record.epoch))
        return epoch == 2

    outcome = fit([0.1, 0.2, 0.3], callback=callback)
    assert seen == [(1, 1), (2, 2)]
    assert outcome.status is Status.STOPPED
    assert outcome.parameters["count"] == [2]


def test_seconds_add_up():
    seconds = [record.seconds for record in fit([0.1, 0.2, 0.3]).trace]
    assert (np.diff(seconds) > 0).all()


def test_a_loss_that_is_not_finite():
    def step(state, batch):
        return state, {"objective": jnp.asarray(batch) * np.nan}

    with pytest.raises(SolveError, match="objective is nan in epoch 1") as caught:
        run(
            State({}, None, jnp.zeros((), int), None),
            step,
            lambda epoch: [1.0],
            lambda parameters: 0.0,
            Schedule(epochs=3, early_stopping=0, record=EpochRecord),
        )
    assert caught.value.hint == "lower learning_rate"
