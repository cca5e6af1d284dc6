"""Mean scores that items and groups are to get, from what the user says to the lists."""

import numpy as np
import pytest
from scipy import sparse
from tests.support import oracles
from tests.support.models import FIXED

import limelight as ll
from limelight._base.errors import ConfigError, DataError

N_USERS, N_ITEMS = 300, 80
DATA = ll.marketplace(N_USERS, N_ITEMS, 5000).interactions
STUDIOS = np.where(np.arange(N_ITEMS) < 75, np.arange(N_ITEMS) // 15, -1)
GENRES = sparse.random_array((6, N_ITEMS), density=0.3, rng=np.random.default_rng(0))
POPULARITY = DATA.matrix.sum(axis=0).A1 / N_USERS
WANTED = {
    "even items": ll.ExposureTargets(),
    "weighted items": ll.ExposureTargets(weights=1 + POPULARITY),
    "items": ll.ExposureTargets(targets=0.5 * POPULARITY),
    "even groups": ll.ExposureTargets(groups=STUDIOS),
    "groups": ll.ExposureTargets(groups=STUDIOS, targets=np.linspace(0.5, 2.5, 5)),
    "shared groups": ll.ExposureTargets(groups=GENRES, targets=np.linspace(0.2, 1, 6)),
}


def fit(weight, wanted, **settings):
    settings = {"factors": 8, "epochs": 20, "trace_every": 1, **FIXED} | settings
    model = ll.ExADMM(solver="exact", exposure_weight=weight, **settings)
    return model.fit(DATA, exposure=wanted)


def sums(model, groups=STUDIOS):
    scores = model.item_factors.astype(float) @ model.user_factors.astype(float).mean(axis=0)
    return np.bincount(groups[groups >= 0], scores[groups >= 0])


@pytest.mark.parametrize("weight", [0.0, 1e-6, 1e-4, 1e-2, 1.0, 1e2])
@pytest.mark.parametrize("name", WANTED)
def test_the_objective_never_rises(name, weight):
    objectives = np.array([record.objective for record in fit(weight, WANTED[name]).trace_])
    assert (np.diff(objectives) <= 1e-6 * objectives[:-1]).all()


def test_nothing_wanted_is_the_paper_s_term():
    plain, general = (fit(1e-3, wanted, epochs=3) for wanted in (None, ll.ExposureTargets()))
    for name in ("user_factors", "item_factors", "price_"):
        found, expected = getattr(general, name), getattr(plain, name)
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max(), name


def test_groups_come_nearer_to_their_targets_as_the_weight_grows():
    wanted = WANTED["groups"]
    misses = [np.abs(sums(fit(w, wanted)) - wanted.targets).max() for w in (0, 1e-4, 1e-2, 1, 1e2)]
    assert (np.diff(misses) < 0).all()
    assert misses[-1] < 1e-3


@pytest.mark.parametrize("weight", [1e2, 1e4])
def test_a_large_weight_does_not_spoil_the_rest(weight):
    """A mean user that random factors left behind would be as small, and the items huge."""
    free, held = fit(0.0, WANTED["groups"]), fit(weight, WANTED["groups"])
    assert held.trace_[-1].objective < 2 * free.trace_[-1].objective


def test_items_without_a_group_are_left_alone():
    wanted = ll.ExposureTargets(groups=np.where(np.arange(N_ITEMS) < 40, 0, -1), targets=[0.0])
    scores = [m.item_factors @ m.mean_user_ for m in (fit(0.0, wanted), fit(1.0, wanted))]
    assert abs(scores[1][:40].sum()) < 0.01 * abs(scores[0][:40].sum())
    assert scores[1][40:].sum() > 0.5 * scores[0][40:].sum()


def test_a_weight_of_zero_frees_an_item():
    best = POPULARITY.argmax()
    weights = np.where(np.arange(N_ITEMS) == best, 0.0, 1.0)
    held, freed = (fit(1e-2, ll.ExposureTargets(weights=c)) for c in (None, weights))
    held, freed = (m.item_factors[best] @ m.mean_user_ for m in (held, freed))
    assert freed > 3 * held


@pytest.mark.parametrize("fold_in", ["price", "joint"])
def test_a_saved_model_folds_in_as_before(tmp_path, fold_in):
    model = fit(1e-2, WANTED["groups"], fold_in=fold_in)
    model.save(tmp_path / "model")
    again = ll.load(tmp_path / "model")
    histories = DATA.matrix[:40]
    np.testing.assert_array_equal(again.fold_in(histories), model.fold_in(histories))
    np.testing.assert_array_equal(again.price_, model.price_)
    assert not np.allclose(fit(1e-2, None, fold_in=fold_in).price_, model.price_)


def test_half_of_what_the_term_left_is_refused(tmp_path):
    model = fit(1e-2, WANTED["groups"], epochs=2)
    del model.learned.arrays["exposure_pull"]
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match="arrays that do not fit its settings"):
        ll.load(tmp_path / "model")


@pytest.mark.parametrize("fold_in", ["price", "joint"])
def test_fold_in_of_training_users_finds_them_again(fold_in):
    model = fit(1e-2, WANTED["shared groups"], epochs=100, trace_every=0, fold_in=fold_in)
    expected = model.user_factors
    assert np.abs(model.fold_in(DATA) - expected).max() < 0.02 * np.abs(expected).max()


def test_joint_fold_in_is_exact():
    model = fit(1e-2, WANTED["groups"], fold_in="joint")
    histories = DATA.matrix[:40]
    U, V = model.fold_in(histories).astype(float), model.item_factors.astype(float)
    W = (np.arange(5)[:, None] == STUDIOS).astype(float)
    dense = oracles.DenseProblem(
        histories.toarray().astype(float),
        model.config.unobserved_weight,
        model.config.regularization,
        exposure=1e-2 * N_USERS * 40,
        term=oracles.DenseTerm(W, np.ones(5), WANTED["groups"].targets),
    )
    price = V.T @ dense.exposure_force(V, U.mean(axis=0)) / 40
    gradient = oracles.user_gradient(dense, U, V) + price
    np.testing.assert_allclose(gradient, 0, atol=1e-3 * np.abs(price).max())


def test_threads_do_not_matter():
    one, two = (fit(1e-2, WANTED["shared groups"], num_threads=n, epochs=4) for n in (1, 2))
    np.testing.assert_array_equal(one.user_factors, two.user_factors)
    np.testing.assert_array_equal(one.item_factors, two.item_factors)


def test_a_warm_start_goes_on_where_it_was():
    first = fit(1.0, WANTED["groups"], epochs=10)
    model = ll.ExADMM(factors=8, solver="exact", exposure_weight=1.0, epochs=1, **FIXED)
    model.fit(DATA, init=(first.user_factors, first.item_factors), exposure=WANTED["groups"])
    assert model.trace_[-1].objective < first.trace_[-1].objective


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "admm"}, "exposure targets need solver='exact': 'admm'"),
        ({"solver": "exact", "row_solver": "cg"}, "targets need row_solver='cholesky': 'cg'"),
    ],
)
def test_solvers_that_cannot_aim(settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        ll.ExADMM(factors=4, **settings).fit(DATA, exposure=ll.ExposureTargets())
    assert error.value.hint


NOT_GROUPS = "groups must be whole numbers, one for each of 80 items"
BAD = {
    "weights must be numbers, one for each of 80 items: int64 of shape": {"weights": [1, 2]},
    "targets must be numbers, one for each of 5 groups": {"targets": [1, 2], "groups": STUDIOS},
    "weights must be numbers, one for each of 80 items: <U1": {"weights": ["a"] * 80},
    "targets must be finite: nan": {"targets": np.full(80, np.nan)},
    "weights must be finite: inf": {"weights": np.full(80, np.inf)},
    "weights must be 0 or more: -1.0": {"weights": np.full(80, -1.0)},
    f"{NOT_GROUPS}: int64 of shape": {"groups": [0, 1]},
    f"{NOT_GROUPS}: float64": {"groups": np.zeros(80)},
    "groups must be -1 or more: -2": {"groups": np.full(80, -2)},
    "groups must have one column for each of 80 items": {"groups": sparse.eye_array(5)},
    "groups must be 0 or more: -1.0": {"groups": -sparse.eye_array(80)},
    "groups must be finite: nan": {"groups": np.nan * sparse.eye_array(80)},
    "groups must hold numbers, not complex128": {"groups": 1j * sparse.eye_array(80)},
}


@pytest.mark.parametrize("message", BAD)
def test_what_no_fit_could_aim_at(message):
    with pytest.raises(DataError, match=f"exposure {message}") as error:
        ll.ExADMM(factors=4, solver="exact").fit(DATA, exposure=ll.ExposureTargets(**BAD[message]))
    assert error.value.hint
