import inspect

import pytest

import limelight as ll
from limelight._base.settings import declared_settings
from limelight.models.folder import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_help_lists_every_setting_once(name):
    model, config = MODELS[name]
    text = inspect.getdoc(model)
    assert text.count("Parameters\n----------") == 1
    for setting in declared_settings(config):
        assert text.count(f"\n{setting} : ") == 1
    assert text.index("Parameters\n---") < text.index("Examples\n---")
    assert "are the fields of" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_help_has_type_default_meaning_and_bounds():
    text = inspect.getdoc(ll.ExADMM)
    assert "factors : int or 'auto', default 'auto'\n    Length of the vectors;" in text
    assert "epochs : int, default 50\n    How many times all users and items are updated" in text
    assert "penalty : float or 'auto', default 'auto'" in text
    assert "Above 1e-30." in text
    assert "From 0 to below 1." in inspect.getdoc(ll.MultVAE)


def test_help_of_rerankers():
    text = inspect.getdoc(ll.BestResponse)
    assert "strength : float, default 0.1\n" in text
    assert text.index("Parameters\n---") < text.index("Attributes\n---")


def test_settings_of_a_reranker():
    reranker = ll.BestResponse(strength=0.3)
    assert reranker.set_params(sweeps=5).get_params()["sweeps"] == 5
    with pytest.raises(ll.ConfigError, match="unknown hyper-parameter: 'strenght'"):
        reranker.set_params(strenght=1)


def test_a_fit_that_fails_leaves_no_model_of_mixed_settings():
    model = ll.IALS(factors=4, epochs=2).fit(ll.marketplace(100, 50, 1000).interactions)
    model.set_params(factors=6)
    with pytest.raises(ll.DataError, match="expected Interactions"):
        model.fit([[1, 0]])
    assert not model.is_fitted
    assert repr(model) == "IALS(factors=6, epochs=2)"


def test_settings_set_back_are_no_news_and_threads_count_at_once(tmp_path):
    model = ll.IALS(factors=4, epochs=2).fit(ll.marketplace(100, 50, 1000).interactions)
    model.set_params(factors=6, num_threads=1)
    assert model.config.num_threads == 1
    model.save(tmp_path / "model")
    assert ll.load(tmp_path / "model").get_params()["factors"] == 4
    assert "next" not in repr(model.set_params(factors=4))
