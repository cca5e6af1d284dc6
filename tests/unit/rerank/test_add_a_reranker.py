"""A re-ranker is added with its module and its test: everybody else finds it by its names."""

import sys

import numpy as np
import pytest

import limelight as ll
from limelight.rerank import methods
from limelight.rerank.rerank import method_names

TOY = '''
from dataclasses import dataclass

import numpy as np

from limelight._base.settings import Settings, hyperparameters, setting
from limelight.rerank.methods import register
from limelight.rerank.reranker import PoolConfig, Reranker


@dataclass(frozen=True, kw_only=True)
class ToyOwnConfig(Settings):
    strength: float = setting(0.0, "How far down a user's candidates her list begins.")


@dataclass(frozen=True, kw_only=True)
class ToyConfig(PoolConfig, ToyOwnConfig):
    """The settings of the toy."""


@register(ToyConfig)
class Toy(Reranker):
    """Lets lists begin further down, each user at another place."""

    method, serves = "toy", "alone"
    config: ToyConfig
    __init__ = hyperparameters(ToyConfig)

    def places_from(self, pool, k):
        depth = min(self.config.strength, 1) * np.maximum(pool.candidates.counts - k, 0)
        first = (depth * np.arange(pool.n_users) / pool.n_users).astype(np.int32)
        return np.where(pool.own_places(k) < 0, -1, pool.own_places(k) + first[:, None])
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Write the module of a re-ranker into a folder that is one more part of the package."""
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    monkeypatch.setattr(methods, "_REGISTERED", dict(methods._REGISTERED))
    yield
    sys.modules.pop("limelight.rerank.methods.toy", None)


@pytest.fixture(scope="module")
def model():
    return ll.IALS(factors=8, epochs=3).fit(ll.marketplace(300, 100, 6000).interactions)


@pytest.mark.usefixtures("toy")
def test_rerank_finds_it(model):
    assert method_names()[-1] == "toy"
    before = ll.rerank(model, k=10, method="best-response", gini=0.9).metrics["gini@10_before"]
    result = ll.rerank(model, k=10, method="toy", gini=before - 0.05)
    assert result.method == "toy"
    assert result.strength > 0
    assert result.metrics["gini@10"] == pytest.approx(before - 0.05, abs=0.01)


@pytest.mark.usefixtures("toy")
def test_it_is_saved_and_loaded(model, tmp_path):
    kind = methods.offered()["toy"]
    kind(strength=0.5, candidates=60).over(model).save(tmp_path / "model")
    loaded = ll.load(tmp_path / "model")
    assert repr(loaded).startswith("Toy(strength=0.5, candidates=60) over IALS")
    assert loaded.serves == "alone"
    expected = kind(strength=0.5, candidates=60).rerank(model.ranking(), 10)
    np.testing.assert_array_equal(loaded.recommend(k=10).ids, expected.ids)


@pytest.mark.usefixtures("toy")
def test_the_command_line_offers_it():
    from typer.testing import CliRunner

    from limelight.cli import app

    assert "fairrec|toy" in CliRunner().invoke(app, ["rerank", "--help"]).output


def test_it_is_gone_where_nobody_added_it():
    assert "toy" not in method_names()
    with pytest.raises(ll.ConfigError, match="method is not a known choice"):
        ll.rerank({"user_id": [1], "item_id": [2], "score": [1.0]}, k=1, method="toy", gini=0.1)


@pytest.mark.parametrize("name", methods.rerankers())
def test_what_is_registered_says_how_it_serves(name):
    kind, _ = methods.rerankers()[name]
    assert kind.serves in {"alone", "together", "stream"}
    assert kind.method is None or kind.method in methods.offered()
