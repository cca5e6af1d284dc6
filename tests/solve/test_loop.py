import numpy as np
import pytest

from limelight._errors import SolveError
from limelight.models import IALS, ExADMM
from limelight.solve.loop import Status
from limelight.solve.memory import available_bytes, fit_bytes
from limelight.testing.planted import random_interactions

X = random_interactions(60, 40, seed=3)


def test_every_so_many_epochs_are_traced_and_the_last():
    model = IALS(factors=4, epochs=7, trace_every=3).fit(X)
    assert [record.epoch for record in model.trace_] == [3, 6, 7]
    assert model.status_ is Status.FINISHED
    assert model.trace_[-1].seconds >= model.trace_[0].seconds > 0


def test_trace_every_zero_traces_the_last_epoch_only():
    assert [r.epoch for r in IALS(factors=4, epochs=5, trace_every=0).fit(X).trace_] == [5]


def test_tolerance_stops_early():
    model = IALS(factors=4, epochs=500, trace_every=1, tolerance=1e-3).fit(X)
    assert model.status_ is Status.CONVERGED
    assert len(model.trace_) < 500


def test_callback_sees_every_epoch_and_may_stop():
    seen = []

    def callback(epoch, record):
        seen.append((epoch, record is not None))
        return epoch == 4

    model = IALS(factors=4, epochs=9, trace_every=2).fit(X, callback=callback)
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


@pytest.mark.parametrize("weight", [0, 1e-8, 1e-4, 1, 1e4])
def test_automatic_tempo_diverges_nowhere(weight):
    model = ExADMM(factors=8, exposure_weight=weight, epochs=60).fit(X)
    record = model.trace_[-1]
    assert np.isfinite(model.user_factors).all()
    assert record.lagrangian < 0.5 * X.nnz


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


def test_available_memory_respects_a_control_group(tmp_path):
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("3000\n")
    (group / "memory.current").write_text("1000\n")
    assert available_bytes(tmp_path) == 2000
    assert available_bytes(tmp_path / "nothing") > 2000
