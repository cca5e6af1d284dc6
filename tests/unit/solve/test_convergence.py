"""When a fit has converged: one rule for all models and solvers, also of a fit that was resumed."""

import os
import signal

import numpy as np
import pytest
from tests.support.models import FIXED

import limelight as ll
from limelight.solve.loop import Status

DATA = ll.marketplace(400, 80, 5000, seed=3).interactions
TOLERANCE, MOST = 2e-3, 60
KINDS = {
    "ials": (ll.IALS, {}),
    "cg": (ll.IALS, {"row_solver": "cg"}),
    "exact": (ll.ExADMM, {"exposure_strength": 0.3}),
    "admm": (ll.ExADMM, {"exposure_strength": 0.3, "solver": "admm"}),
}


@pytest.fixture(params=KINDS)
def make(request):
    kind, own = KINDS[request.param]
    shared = FIXED | {"factors": 6, "epochs": MOST, "trace_every": 0, "tolerance": TOLERANCE}
    return lambda **settings: kind(**{**shared, **own, **settings})


def same(one, other):
    """Compare what two fits learnt, to the last bit."""
    for name, array in one.learned.arrays.items():
        np.testing.assert_array_equal(other.learned.arrays[name], array)


def test_a_fit_ends_with_the_first_epoch_that_changes_the_objective_too_little(make):
    every = make(tolerance=0.0, trace_every=1).fit(DATA)
    objectives = np.array([record.objective for record in every.trace_])
    change = np.abs(np.diff(objectives)) / objectives[1:]
    last = 2 + int(np.argmax(change <= TOLERANCE))  # the first change is that of epoch 2
    assert 2 < last < MOST
    model = make().fit(DATA)
    assert model.status_ is Status.CONVERGED
    assert model.trace_[-1].epoch == last
    same(make(tolerance=0.0, epochs=last).fit(DATA), model)


@pytest.mark.parametrize("trace_every", [0, 1, 4, 100])
def test_the_trace_ends_with_the_last_epoch_however_seldom_it_is_traced(make, trace_every):
    seldom, often = make(trace_every=trace_every).fit(DATA), make(trace_every=1).fit(DATA)
    same(often, seldom)
    last = often.trace_[-1].epoch
    multiples = range(trace_every, last, trace_every) if trace_every else ()
    assert [record.epoch for record in seldom.trace_] == [*multiples, last]
    assert seldom.trace_[-1].objective == often.trace_[-1].objective


def test_without_a_tolerance_all_epochs_run(make):
    model = make(tolerance=0.0).fit(DATA)
    assert model.status_ is Status.FINISHED
    assert [record.epoch for record in model.trace_] == [MOST]


def test_a_fit_that_has_not_converged_is_finished(make):
    model = make(epochs=2).fit(DATA)
    assert model.status_ is Status.FINISHED
    assert model.trace_[-1].epoch == 2


def test_a_larger_tolerance_ends_no_later(make):
    last = [make(tolerance=t).fit(DATA).trace_[-1].epoch for t in (1e-4, 1e-3, 1e-2, 0.1)]
    assert last == sorted(last, reverse=True)
    assert last[0] > last[-1] > 1


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_resumed_fit_ends_where_it_would_have(make, behind, tmp_path):
    """Also one that was interrupted in its last epoch, or right before: two objectives are kept."""
    whole = make().fit(DATA)
    last = whole.trace_[-1].epoch

    def interrupt(epoch, record):
        del record
        if epoch == last - behind:
            os.kill(os.getpid(), signal.SIGINT)

    model, place = make(), tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA, checkpoint=place, callback=interrupt)
    model.fit(DATA, checkpoint=place)
    assert model.status_ is Status.CONVERGED
    assert [record.epoch for record in model.trace_] == [last]
    same(whole, model)


def test_a_start_at_the_end_takes_two_epochs():
    """The objective of the start is not measured, so the second epoch is the first to compare."""
    settings = FIXED | {"factors": 6, "epochs": MOST, "tolerance": TOLERANCE}
    first = ll.IALS(**settings).fit(DATA)
    again = ll.IALS(**settings).fit(DATA, init=(first.user_factors, first.item_factors))
    assert again.status_ is Status.CONVERGED
    assert again.trace_[-1].epoch == 2
