"""Multi-FR as a model: it learns, and it shares the exposure when told to."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import ConfigError, DataError
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.metrics.evaluate import evaluate
from limelight.models import MultiFR
from limelight.models.folder import load_model
from limelight.models.neural.multifr import MultiFRRecord, _multifr_update
from limelight.models.neural.network import DAENetwork
from limelight.solve.loop import Status
from limelight.testing.contracts import LearnerContract

SMALL = {"latent": 16, "epochs": 40, "batch_size": 50, "learning_rate": 0.01, "compared": 20}


class TestMultiFR(LearnerContract):
    quality_floor = 0.15

    def make(self, **settings):
        return MultiFR(**SMALL, ranked=20, preference=0.1, **settings)

    def test_saved_without_history_it_asks_for_one(self, model, tmp_path):
        model.save(tmp_path / "model", history=False)
        loaded = load_model(tmp_path / "model")
        with pytest.raises(DataError, match="saved without histories"):
            loaded.recommend(users=[1], k=3, filter_seen=False)
        assert loaded.recommend(sparse.eye(3, 40, format="csr"), k=3).ids.shape == (3, 3)


@pytest.fixture(scope="module")
def split():
    market = marketplace(300, 80, 5000, seed=1)
    return split_users(market.interactions, validation=50, test=50, seed=1)


def test_preference_buys_equality_with_accuracy(split):
    accurate, equal = (
        MultiFR(**SMALL, ranked=30, preference=preference).fit(split.train)
        for preference in (0.0, 10.0)
    )
    found = [evaluate(model, split.test, k=10) for model in (accurate, equal)]
    assert found[1]["gini@10"] < found[0]["gini@10"] - 0.15
    assert found[1]["ndcg@10"] < found[0]["ndcg@10"]
    assert equal.trace_[-1].inequality < accurate.trace_[-1].inequality


def test_the_last_epoch_is_kept(split):
    model = MultiFR(**(SMALL | {"epochs": 7}), ranked=30).fit(split.train, callback=stop_at_five)
    assert model.status_ is Status.STOPPED
    last = evaluate(model, split.validation, k=80)["ndcg@80"]
    again = MultiFR(**(SMALL | {"epochs": 5}), ranked=30).fit(split.train)
    assert evaluate(again, split.validation, k=80)["ndcg@80"] == last
    assert len(model.trace_) == 5


def stop_at_five(epoch, record):
    assert record.epoch == epoch
    return epoch == 5


def test_unit_gradients_weigh_the_same(split):
    trace = MultiFR(**(SMALL | {"epochs": 5}), ranked=30).fit(split.train).trace_
    np.testing.assert_allclose([record.weight for record in trace], 0.5, rtol=1e-3)


def test_it_trains_until_both_losses_stand_still(split):
    model = MultiFR(**(SMALL | {"epochs": 60}), ranked=30, tolerance=10.0).fit(split.train)
    assert model.status_ is Status.CONVERGED
    assert len(model.trace_) == 40, "the first epochs that can be compared with others"
    assert MultiFRRecord.losses == ("objective", "inequality")


def test_a_search_compiles_once(split):
    update = _multifr_update(DAENetwork(80, 16), ranked=30, compared=20, normalization="l2")
    sizes = []
    for numbers in (
        {},
        {"patience": 0.6, "temperature": 0.5, "dropout": 0.2, "preference": 3.0},
        {"regularization": 0.1, "learning_rate": 0.02, "random_state": 0},
    ):
        settings = SMALL | {"epochs": 1} | numbers
        MultiFR(**settings, ranked=30).fit(split.train, validation=split.validation)
        sizes.append(update._cache_size())
    assert sizes[0] > 0
    assert len(set(sizes)) == 1, "every other value was compiled anew"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("patience", 1.1, "patience must be at most 1: 1.1"),
        ("patience", 0.0, "patience must be a finite number above 0: 0.0"),
        ("temperature", 0.0, "temperature must be a finite number above 0: 0.0"),
        ("tolerance", -0.1, "tolerance must be a finite number 0 or more: -0.1"),
        ("ranked", 0, "ranked must be at least 1: 0"),
        ("compared", 0, "compared must be at least 1: 0"),
        ("preference", -1.0, "preference must be a finite number 0 or more: -1.0"),
        ("normalization", "l1", "normalization is not a known choice: 'l1'"),
    ],
)
def test_bad_settings(setting, value, message):
    with pytest.raises(ConfigError, match=message):
        MultiFR(**{setting: value})


def test_users_who_have_seen_everything_share_no_exposure():
    seen = sparse.csr_matrix(np.ones((12, 6)))
    model = MultiFR(latent=4, epochs=2).fit(seen, validation=_nothing_left(6))
    assert all(np.isfinite(one.inequality) for one in model.trace_)


def _nothing_left(n_items):
    history = sparse.csr_matrix((3, n_items))
    targets = sparse.eye(3, n_items, format="csr")
    return SimpleNamespace(history=history, targets=targets)
