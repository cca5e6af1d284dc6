"""How fits went."""

from types import SimpleNamespace

import pytest

import limelight as ll

pytest.importorskip("matplotlib")

DATA = ll.marketplace(200, 60, 3000).interactions


def curves(ax):
    found = {}
    for axes in ax.figure.axes:
        for line in axes.get_lines():
            found[line.get_label()] = line.get_xydata().T.tolist()
    return found


def test_objective_and_residuals():
    model = ll.ExADMM(factors=4, exposure_weight=1e-3, epochs=6, trace_every=2, solver="admm").fit(
        DATA
    )
    ax = ll.plot.convergence(model)
    epochs = [2, 4, 6]
    expected = {
        "objective (left)": "objective",
        "items V": "residual_V",
        "users U": "residual_U",
        "mean user s": "residual_s",
        "dual w": "residual_w",
        "distance of s from mean(U)": "feasibility",
    }
    assert curves(ax) == {
        label: [epochs, [getattr(record, name) for record in model.trace_]]
        for label, name in expected.items()
    }
    _, right = ax.figure.axes
    assert right.get_yscale() == "log"
    assert len(right.get_legend().get_texts()) == 6
    assert curves(ll.plot.convergence(model.trace_)) == curves(ax)
    assert curves(ll.plot.convergence(ll.FairRec().over(model))) == curves(ax)


def test_what_never_changes_is_left_out():
    model = ll.IALS(factors=4, epochs=2, trace_every=1).fit(DATA)
    assert list(curves(ll.plot.convergence(model))) == ["objective (left)", "items V", "users U"]


def test_neural_models_show_their_validation():
    trace = [SimpleNamespace(epoch=n, objective=10.0 - n, ndcg=n / 10) for n in (1, 2)]
    ax = ll.plot.convergence(trace)
    assert curves(ax)["nDCG@100 of validation users"] == [[1, 2], [0.1, 0.2]]
    assert ax.figure.axes[1].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("objectives", "title"),
    [
        ([8.0], "Objective 8 after epoch 1"),
        ([8.0, 6.0], "The last epoch lowered the objective by 25 %"),
        ([8.0, 10.0], "The last epoch raised the objective by 25 %"),
        ([0.0, 0.0], "The last epoch lowered the objective by 0 %"),
    ],
)
def test_the_title_says_how_it_ended(objectives, title):
    trace = [
        SimpleNamespace(epoch=n, objective=value, ndcg=0.1)
        for n, value in enumerate(objectives, start=1)
    ]
    assert ll.plot.convergence(trace).get_title(loc="left") == title


def test_epochs_are_whole_numbers():
    trace = [SimpleNamespace(epoch=n, objective=8.0, ndcg=0.1) for n in (10.0, 20.0)]
    assert ll.plot.convergence(trace).get_title(loc="left").startswith("The last 10 epochs ")


def test_what_cannot_be_drawn():
    with pytest.raises(ll.DataError, match="no trace to draw: Popularity"):
        ll.plot.convergence(ll.Popularity().fit(DATA))
    with pytest.raises(ll.DataError, match="no trace to draw"):
        ll.plot.convergence([])
    with pytest.raises(ll.ConfigError, match="has not been fitted"):
        ll.plot.convergence(ll.IALS())
    with pytest.raises(ll.DataError, match="not a model or its trace: 7"):
        ll.plot.convergence(7)
    with pytest.raises(ll.DataError, match="not a model or its trace"):
        ll.plot.convergence([1.0, 2.0])
