"""Mult-VAE and Mult-DAE as models."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from limelight._base.errors import ConfigError, DataError
from limelight.data import split_users
from limelight.data.synthetic import marketplace
from limelight.models import MultDAE, MultVAE
from limelight.models.folder import load_model
from limelight.solve.loop import Status
from limelight.testing.contracts import LearnerContract


class NeuralContract(LearnerContract):
    """A network answers its own users from their histories, so without them it cannot."""

    def test_saved_without_history_it_asks_for_one(self, model, tmp_path):
        model.save(tmp_path / "model", history=False)
        loaded = load_model(tmp_path / "model")
        for filter_seen in (True, False):
            with pytest.raises(DataError, match="saved without histories") as caught:
                loaded.recommend(users=[1], k=3, filter_seen=filter_seen)
            assert caught.value.hint == "pass histories= of these users"
        assert loaded.recommend(sparse.eye(3, 40, format="csr"), k=3).ids.shape == (3, 3)


class TestMultVAE(NeuralContract):
    quality_floor = 0.22

    def make(self, **settings):
        small = {"hidden": 32, "latent": 16, "epochs": 40, "batch_size": 50}
        return MultVAE(**small, learning_rate=0.01, anneal_steps=5000, **settings)


class TestMultDAE(NeuralContract):
    quality_floor = 0.22

    def make(self, **settings):
        return MultDAE(latent=16, epochs=40, batch_size=50, learning_rate=0.01, **settings)


@pytest.fixture(scope="module")
def split():
    market = marketplace(300, 80, 5000, seed=1)
    return split_users(market.interactions, validation=50, test=50, seed=1)


def small(kind=MultDAE, **settings):
    return kind(**{"latent": 8, "epochs": 6, "batch_size": 50, "learning_rate": 0.01, **settings})


def test_known_users_are_answered_as_unseen_ones_with_the_same_history(split):
    model = small().fit(split.train)
    known = model.recommend(users=[3, 8], k=9)
    unseen = model.recommend(split.train.matrix[[3, 8]], k=9)
    np.testing.assert_array_equal(known.scores, unseen.scores)


def test_scores_are_those_of_the_network(split):
    model = small().fit(split.train)
    ids, scores = model.recommend(users=[3], k=80, filter_seen=False)
    own = model.learned.arrays
    row = split.train.matrix[[3]].toarray()[0]
    layer = np.tanh(row @ own["item_input"] / np.sqrt(row.sum()) + own["input_bias"])
    wanted = own["item_output"] @ layer + own["item_bias"]
    np.testing.assert_allclose(scores[0], wanted[ids[0]], atol=1e-5)


def test_the_validation_part_is_used(split):
    given, own = (
        small().fit(split.train, validation=validation) for validation in (split.validation, None)
    )
    assert [r.ndcg for r in given.trace_] != [r.ndcg for r in own.trace_]
    from limelight.metrics.evaluate import evaluate

    found = evaluate(given, split.validation, k=100)["ndcg@100"]
    assert found == pytest.approx(max(record.ndcg for record in given.trace_), abs=1e-6)


def test_the_trace_tells_of_beta(split):
    model = small(MultVAE, hidden=16, anneal_steps=30, beta=0.5, epochs=4).fit(split.train)
    # 180 users in batches of 50: updates 0 to 3 in the first epoch.
    betas = [record.beta for record in model.trace_]
    np.testing.assert_allclose(betas, [0.05, 5.5 / 30, 9.5 / 30, 13.5 / 30], rtol=1e-5)
    assert model.status_ is Status.FINISHED


def test_it_stops_early(split):
    model = small(epochs=300, early_stopping=3).fit(split.train)
    assert model.status_ is Status.STALLED
    ndcg = [record.ndcg for record in model.trace_]
    assert len(ndcg) == np.argmax(ndcg) + 1 + 3


def test_the_loss_falls(split):
    trace = small(epochs=10).fit(split.train).trace_
    assert trace[-1].objective < trace[0].objective


def test_weights_shrink_with_regularization(split):
    free, held = (
        small(regularization=weight).fit(split.train).learned.arrays["item_output"]
        for weight in (0.0, 1.0)
    )
    assert np.linalg.norm(held) < 0.5 * np.linalg.norm(free)


def test_another_seed_another_model(split):
    one, two = (small(random_state=seed).fit(split.train).trace_[-1] for seed in (0, 1))
    assert one.objective != two.objective


def test_it_diverges_in_words(split):
    from limelight._base.errors import SolveError

    with pytest.raises(SolveError, match="the fit diverged"):
        small(learning_rate=1e38, epochs=50).fit(split.train)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("dropout", 1.0, "dropout must be below 1: 1.0"),
        ("dropout", -0.1, "dropout must be a finite number 0 or more: -0.1"),
        ("latent", 0, "latent must be at least 1: 0"),
        ("early_stopping", -1, "early_stopping must be at least 0: -1"),
        ("learning_rate", 0.0, "learning_rate must be a finite number above 0: 0.0"),
        ("anneal_steps", 0, "anneal_steps must be at least 1: 0"),
        ("hidden", 0, "hidden must be at least 1: 0"),
        ("beta", -1.0, "beta must be a finite number 0 or more"),
    ],
)
def test_bad_settings(setting, value, message):
    with pytest.raises(ConfigError, match=message):
        MultVAE(**{setting: value})


def test_validation_that_is_none():
    with pytest.raises(DataError, match="no history and targets to validate on: csr_matrix"):
        MultDAE().fit(sparse.eye(9, format="csr"), validation=sparse.csr_matrix((2, 9)))


def test_validation_of_another_shape(split):
    from types import SimpleNamespace

    part = SimpleNamespace(history=split.validation.history, targets=split.validation.targets[:7])
    with pytest.raises(DataError, match=r"validation targets have shape \(7, 80\), not \(50, 80\)"):
        MultDAE().fit(split.train, validation=part)


def test_validation_without_targets():
    with pytest.raises(DataError, match="none of the 1 validation users has a target to find"):
        MultDAE().fit(sparse.eye(9, format="csr"))


def test_too_few_users():
    with pytest.raises(DataError, match="too few users to hold some of them out: 1"):
        MultDAE().fit(sparse.csr_matrix(np.ones((1, 9))))


WITHOUT = """
import sys
sys.modules["jax"] = None
import limelight as ll
from limelight._base.errors import ConfigError
data = ll.marketplace(60, 30, 900).interactions
for ask in (lambda: ll.MultVAE().fit(data), lambda: ll.load(sys.argv[1]).recommend(data, k=3)):
    try:
        ask()
    except ConfigError as error:
        print(error.hint)
"""


def test_without_the_extra_it_says_what_to_install(tmp_path):
    small(epochs=1).fit(marketplace(60, 30, 900).interactions).save(tmp_path / "model")
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "model")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["pip install 'limelight[neural]'"] * 2
