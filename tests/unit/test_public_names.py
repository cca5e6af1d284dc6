import ast
import inspect
import pickle
import sys
from pathlib import Path

import pytest

import limelight as ll


def test_every_public_name_exists_once():
    assert len(set(ll.__all__)) == len(ll.__all__)
    assert all(hasattr(ll, name) for name in ll.__all__)
    assert {*ll.__all__, "__version__"} <= set(dir(ll))


def test_architecture_names_are_there():
    promised = (
        "read split_users marketplace load IALS ExADMM evaluate audit ndcg recall gini exposure"
    )
    assert set(promised.split()) | {"lorenz", "coverage", "entropy", "plot"} <= set(ll.__all__)


def test_type_checkers_find_the_names_where_limelight_does():
    stub = ast.parse(Path(ll.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    [written] = [
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert imported == {**ll._MODULE_OF, "plot": "limelight"}
    assert sorted(written) == ll.__all__


def test_a_wrong_name_is_refused():
    with pytest.raises(AttributeError, match="module 'limelight' has no attribute 'ExAdmm'") as end:
        ll.ExAdmm  # noqa: B018
    assert (end.value.name, end.value.obj) == ("ExAdmm", ll)  # from which Python guesses
    assert not any(hasattr(ll, name) for name in ("_no_such_name", "no.such.name", ""))


def test_a_function_is_not_hidden_by_the_package_of_its_name(monkeypatch):
    ll.rerank = sys.modules["limelight.rerank"]
    assert inspect.isfunction(ll.rerank)
    monkeypatch.setattr(ll, "rerank", len)
    assert ll.rerank is len


def test_the_package_travels_by_name():
    assert pickle.loads(pickle.dumps(ll)) is ll
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    used = cloudpickle.loads(cloudpickle.dumps(lambda: (ll, ll.rerank)))
    assert used() == (ll, ll.rerank)


def test_figures_are_a_namespace():
    assert set(ll.plot.__all__) == {
        "Point", "convergence", "exposure", "front", "groups", "lorenz", "save",
    }  # fmt: skip
    assert all(callable(getattr(ll.plot, name)) for name in ll.plot.__all__)
