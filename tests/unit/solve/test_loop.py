import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import SolveError
from limelight.models import IALS, ExADMM
from limelight.solve.cost import fit_bytes
from limelight.solve.loop import Status
from limelight.solve.state import State
from limelight.solve.step_sizes import StepSizes
from limelight.testing.planted import random_interactions

X = random_interactions(60, 40, seed=3)


def test_every_so_many_epochs_are_traced_and_the_last():
    model = IALS(factors=4, epochs=7, trace_every=3, tolerance=0.0).fit(X)
    assert [record.epoch for record in model.trace_] == [3, 6, 7]
    assert model.status_ is Status.FINISHED
    assert model.trace_[-1].seconds >= model.trace_[0].seconds > 0


def test_trace_every_zero_traces_the_last_epoch_only():
    assert [
        r.epoch for r in IALS(factors=4, epochs=5, trace_every=0, tolerance=0.0).fit(X).trace_
    ] == [5]


def test_tolerance_stops_early():
    model = IALS(factors=4, epochs=500, trace_every=1, tolerance=1e-3).fit(X)
    assert model.status_ is Status.CONVERGED
    assert len(model.trace_) < 500


def test_callback_sees_every_epoch_and_may_stop():
    seen = []

    def callback(epoch, record):
        seen.append((epoch, record is not None))
        return epoch == 4

    model = IALS(factors=4, epochs=9, trace_every=2, tolerance=0.0).fit(X, callback=callback)
    assert seen == [(1, False), (2, True), (3, False), (4, True)]
    assert model.status_ is Status.STOPPED


@pytest.mark.parametrize("rate", [30.0, 1e4])
def test_a_fit_that_diverges_is_no_result(rate):
    model = ExADMM(factors=8, exposure_weight=1e-3, learning_rate=rate)
    with pytest.raises(SolveError, match="the fit diverged") as error:
        model.fit(random_interactions(200, 100, seed=1))
    assert "auto" in error.value.hint
    with pytest.raises(Exception, match="has not been fitted"):
        model.user_factors  # noqa: B018


def crowded(popular):
    """Half of all pairs, and some items that everybody has: where ADMM is least at ease."""
    R = np.random.default_rng(0).random((400, 50)) < 0.5
    R[:, :popular] = True
    return sparse.csr_matrix(R.astype(float))


@pytest.mark.parametrize("weight", [0, 1e-8, 1e-4, 1e-2, 1, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("data", [X, crowded(0), crowded(2)], ids=["sparse", "half", "popular"])
def test_automatic_tempo_diverges_nowhere(data, weight):
    model = ExADMM(factors=8, exposure_weight=weight, epochs=100).fit(data)
    assert np.isfinite(model.user_factors).all()
    assert model.trace_[-1].objective < 0.5 * data.nnz


def test_caution_is_raised_only_where_the_mean_strays():
    tempo, state = StepSizes(None, None), State(*np.zeros((4, 16)))
    for gap, caution in ((1.0, 1), (0.5, 1), (1.4, 1), (1.6, 3), (4.0, 3), (5.0, 9)):
        tempo.watch_gap(state, np.full(16, gap / 4))
        assert state.caution == caution


def test_stopping_early_does_not_let_a_diverged_fit_through():
    model = ExADMM(factors=8, exposure_weight=1e-3, learning_rate=30.0)
    with pytest.raises(SolveError, match="the fit diverged"):
        model.fit(random_interactions(200, 100, seed=1), callback=lambda epoch, record: epoch == 9)


def test_tracing_does_not_decide_whether_a_fit_is_refused():
    settings = {"factors": 8, "init_scale": 5.0, "exposure_weight": 1e-6}
    settings |= {"regularization": 0.1, "unobserved_weight": 0.1, "tolerance": 0.0}
    for trace_every in (0, 1):
        assert ExADMM(trace_every=trace_every, **settings).fit(X).status_ is Status.FINISHED


@pytest.mark.parametrize("factors", [5, 8, 16])
def test_no_regularization_is_no_obstacle(factors):
    model = IALS(factors=factors, regularization=0).fit(X)
    assert np.isfinite(model.user_factors).all()


def test_exposure_weight_lowers_the_scores_of_the_mean_user():
    means = []
    for weight in (0, 1e-4, 1e-2):
        model = ExADMM(factors=8, exposure_weight=weight, epochs=100).fit(X)
        means.append(np.sum((model.item_factors @ model.user_factors.mean(axis=0)) ** 2))
    assert means[0] > means[1] > means[2]


def test_without_exposure_weight_s_is_the_mean_user():
    model = ExADMM(factors=8, epochs=20).fit(X)
    np.testing.assert_allclose(model.mean_user_, model.user_factors.mean(axis=0), atol=1e-6)
    assert not model.dual_.any()


def test_progress_bar_goes_to_standard_error(capfd):
    IALS(factors=4, epochs=3).fit(X, show_progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "IALS with 4 factors" in shown.err


def test_memory_estimate_grows_with_the_problem():
    sizes = {"n_users": 1000, "n_items": 100, "n_entries": 10_000, "factors": 32, "threads": 1}
    small = fit_bytes(**sizes)
    assert all(fit_bytes(**sizes | {name: 2 * size}) > small for name, size in sizes.items())
