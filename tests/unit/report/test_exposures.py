"""Lorenz curves and exposure by rank say what the numbers say."""

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll

pytest.importorskip("matplotlib")

SKEWED, EVEN = np.array([0.0, 9.0, 1.0, 0.0]), np.ones(4)
both = pytest.mark.parametrize("draw", [ll.plot.lorenz, ll.plot.exposure])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def curve(ax, number=0):
    return ax.get_lines()[number + 1].get_xydata().T  # after the line of equality


def test_lorenz_draws_every_curve():
    ax = ll.plot.lorenz({"iALS": SKEWED, "even": EVEN})
    assert ax.get_lines()[0].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert np.array_equal(curve(ax), ll.lorenz(SKEWED))
    assert np.allclose(*curve(ax, 1))
    assert legend(ax) == ["iALS (Gini 0.70)", "even (Gini 0.00)"]
    assert ax.get_title(loc="left") == "Half of the items hold 0 % of the exposure"


@both
def test_the_axis_says_how_many_items_and_lists_there_are(draw):
    lists = pa.table({"user_id": [1, 2, 3], "item_id": ["a", "b", "a"], "rank": [1, 1, 1]})
    three, one = (ll.audit(some, catalogue=["a", "b", "c"]) for some in (lists, lists[:1]))
    warning = ": part of the difference is their number"
    for given, over in [
        (SKEWED, "over 4 items"),
        (three, "over 3 users' lists and 3 items"),
        ({"a": three, "b": one}, f"over 1 to 3 lists and 3 items{warning}"),
        ({"a": three, "b": SKEWED}, f"over 3 to 4 items{warning}"),
    ]:
        assert draw(given).get_xlabel().splitlines()[1] == over


def test_the_name_of_the_diagonal_lies_above_it():
    ax = ll.plot.lorenz(SKEWED)
    ax.figure.canvas.draw()
    (text,) = ax.texts
    middle = ax.transData.inverted().transform(text.get_window_extent().get_points().mean(axis=0))
    assert middle[1] > middle[0] + 0.02


def test_exposure_draws_multiples_of_the_equal_share_by_rank():
    ax = ll.plot.exposure({"iALS": SKEWED, "even": EVEN})
    assert curve(ax).tolist() == [[1, 2], [9 / 2.5, 1 / 2.5]]
    assert curve(ax, 1).tolist() == [[1, 2, 3, 4], [1, 1, 1, 1]]
    assert legend(ax) == ["iALS (50 % of the items shown)", "even (100 % of the items shown)"]
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlim()) == ("log", "log", (1, 4))
    assert ax.get_title(loc="left") == "The most exposed item has 3.6 times the equal share"


def test_one_item_only():
    assert curve(ll.plot.exposure([5])).tolist() == [[1], [1]]
    assert curve(ll.plot.lorenz([5])).tolist() == [[0, 1], [0, 1]]


@both
def test_millions_of_items_take_few_points(draw):
    exposure = np.random.default_rng(0).pareto(1.1, 300_000)
    x, y = curve(draw(exposure))
    assert len(x) < 3000
    q, share = ll.lorenz(exposure)
    if draw is ll.plot.lorenz:
        # Nowhere does the curve leave the whole one by as much as a pixel.
        assert np.abs(np.interp(q, x, y) - share).max() < 1e-3
        assert (x[0], x[-1], y[-1]) == (0, 1, 1)
    else:
        ordered = np.sort(exposure)[::-1] / exposure.mean()
        assert np.array_equal(y, ordered[x.astype(int) - 1])
        assert (x[0], x[-1]) == (1, 300_000)


@both
def test_what_people_have(draw):
    lists = pa.table({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "rank": [1, 2, 1]})
    audit = ll.audit(lists, catalogue=["a", "b", "c"])
    expected = curve(draw(audit.exposure))
    assert np.array_equal(curve(draw(audit)), expected)
    assert np.array_equal(curve(draw({"week 1": audit})), expected)
    assert np.array_equal(curve(draw(audit.exposure.tolist())), expected)


@both
def test_rerank_results_are_before_and_after(draw):
    market = ll.marketplace(200, 40, 3000)
    model = ll.Popularity().fit(market.interactions)
    result = ll.rerank(model, gini=0.5, k=5)
    ax = draw(result)
    assert np.array_equal(curve(ax), curve(draw(result.exposure_before)))
    assert np.array_equal(curve(ax, 1), curve(draw(result.exposure)))
    assert [name.split(" (")[0] for name in legend(ax)] == ["before", "after"]


@both
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "no exposures to draw"),
        ({"iALS": [[0, 1], [1, 0]]}, "one number per item"),
        ([], "one number per item"),
        ([0.0, 0.0], "no exposure at all"),
        ([1.0, -1.0], "negative"),
        ("lists.parquet", "not the exposure of items: str"),
        (object(), "not the exposure of items: object"),
    ],
)
def test_what_cannot_be_drawn(draw, wrong, message):
    with pytest.raises(ll.DataError, match=message):
        draw(wrong)
