import limelight as ll


def test_every_public_name_exists_once():
    assert len(set(ll.__all__)) == len(ll.__all__)
    assert all(hasattr(ll, name) for name in ll.__all__)


def test_architecture_names_are_there():
    promised = (
        "read split_users marketplace load IALS ExADMM evaluate audit ndcg recall gini exposure"
    )
    assert set(promised.split()) | {"lorenz", "coverage", "entropy", "plot"} <= set(ll.__all__)


def test_figures_are_a_namespace():
    assert set(ll.plot.__all__) == {
        "Point", "convergence", "exposure", "front", "groups", "lorenz", "save",
    }  # fmt: skip
    assert all(callable(getattr(ll.plot, name)) for name in ll.plot.__all__)
