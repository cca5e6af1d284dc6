"""Intervals: exact where they can be, wide enough where the truth is known."""

import numpy as np
import pyarrow as pa
import pytest

from limelight.audit.audit import audit
from limelight.audit.lists import read_lists
from limelight.metrics.accumulate import tally
from limelight.metrics.exposure import coverage, entropy, gini, top_share
from limelight.metrics.intervals import leave_users_out, margin_of
from limelight.metrics.leave_one_out import GiniWithout, figures_without
from limelight.metrics.merit import merit_gini


def draw_lists(generator, n_users, n_items, k, skew):
    """Draw lists of k items without repeats, popular items first (Gumbel top-k)."""
    popularity = -skew * np.log(np.arange(1, n_items + 1))
    scores = popularity + generator.gumbel(size=(n_users, n_items))
    return np.argsort(-scores, axis=1)[:, :k]


def table_of(ids):
    n_users, k = ids.shape
    return pa.table(
        {
            "user_id": np.repeat(np.arange(n_users), k),
            "item_id": ids.ravel(),
            "rank": np.tile(np.arange(1, k + 1), n_users),
        }
    )


def measured(table, n_items, merit=None):
    rows = read_lists(table)
    rows = rows._replace(items=rows.item_ids.to_numpy().astype(np.int32)[rows.items])
    exposure = tally(rows.items, rows.ranks, n_items)
    k = int(rows.ranks.max())
    return exposure, leave_users_out(rows, exposure, figures_without(exposure, merit, k))


def test_leaving_out_users_of_one_row_is_exact():
    generator = np.random.default_rng(0)
    n_items, items = 12, generator.integers(0, 8, 40)
    # Rank 1 has more rows than there are items, the others fewer: they take different ways.
    ranks = generator.choice([1, 2, 3], 40, p=[0.7, 0.2, 0.1])
    merit = generator.integers(0, 4, n_items).astype(float)
    table = pa.table({"user_id": np.arange(40), "item_id": items, "rank": ranks})
    _, deviations = measured(table, n_items, merit)
    expected = {name: [] for name in deviations.by_figure}
    for user in range(40):
        rest = np.arange(40) != user
        exposure = tally(items[rest], ranks[rest], n_items)
        expected["gini@3"].append(gini(exposure.weighted))
        expected["gini_uniform@3"].append(gini(exposure.shown))
        expected["coverage@3"].append(coverage(exposure.shown))
        expected["entropy@3"].append(entropy(exposure.weighted))
        expected["merit_gini@3"].append(merit_gini(exposure.weighted, merit))
    for name in ("gini", "gini_uniform", "coverage", "entropy", "merit_gini"):
        values = np.array(expected[f"{name}@3"])
        assert deviations.by_figure[f"{name}@3"] == pytest.approx(values - values.mean(), abs=1e-12)


def test_more_rows_than_items_and_fewer_give_the_same():
    ids = draw_lists(np.random.default_rng(1), 60, 10, 2, 1.0)
    # Each of the two ranks has 60 rows: more than 10 items, fewer than 100.
    few, many = (measured(table_of(ids), n_items)[1].by_figure for n_items in (10, 100))
    assert few["coverage@2"] == pytest.approx(many["coverage@2"] * 10)
    exposure = np.bincount(ids.ravel(), minlength=10).astype(float)
    figure = GiniWithout(exposure, uniform=True)
    without = figure.figure(figure.change(np.arange(10), np.ones(10)), np.ones(10))
    for item in range(10):
        assert without[item] == pytest.approx(gini(exposure - (np.arange(10) == item)))


@pytest.mark.parametrize(
    ("n_users", "n_items", "k", "skew"),
    [(200, 300, 5, 1.0), (200, 300, 5, 0.0), (60, 500, 5, 1.3)],
    ids=["popular items", "all alike", "few lists"],
)
def test_intervals_hold_the_truth(n_users, n_items, k, skew):
    generator = np.random.default_rng(7)

    def sample():
        return draw_lists(generator, n_users, n_items, k, skew)

    samples = []
    for _ in range(400):
        exposure = tally(*(column.ravel() for column in _columns(sample())), n_items)
        samples.append(_figures(exposure, k))
    truth = {key: np.mean([figures[key] for figures in samples]) for key in samples[0]}
    inside = dict.fromkeys(truth, 0)
    for _ in range(150):
        exposure, deviations = measured(table_of(sample()), n_items)
        bounds = deviations.bounds(_figures(exposure, k))
        for key, value in truth.items():
            inside[key] += bounds[f"{key}_low"] <= value <= bounds[f"{key}_high"]
    # 95 % were asked for; more is what leaving one out gives where items are rare.
    assert min(inside.values()) >= 0.89 * 150, inside


def _columns(ids):
    return ids, np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)


def _figures(exposure, k):
    return {
        f"gini@{k}": gini(exposure.weighted),
        f"gini_uniform@{k}": gini(exposure.shown),
        f"coverage@{k}": coverage(exposure.shown),
        f"entropy@{k}": entropy(exposure.weighted),
        f"top_share@{k}": top_share(exposure.weighted),
    }


def test_bounds_of_an_audit():
    ids = draw_lists(np.random.default_rng(2), 50, 40, 3, 1.0)
    result = audit(table_of(ids), catalogue=range(40))
    names = ("gini", "gini_uniform", "coverage", "entropy", "top_share")
    assert set(result.bounds) == {f"{n}@3_{bound}" for n in names for bound in ("low", "high")}
    for name in names:
        low, high = (result.bounds[f"{name}@3_{bound}"] for bound in ("low", "high"))
        assert 0 <= low < result.metrics[f"{name}@3"] < high <= 1
        assert high - low < 0.3
    assert result.to_dict()["gini@3_low"] == result.bounds["gini@3_low"]
    assert f"[{result.bounds['gini@3_low']:.4f}, " in str(result)
    shuffled = table_of(ids).take(np.random.default_rng(3).permutation(ids.size))
    for key, value in audit(shuffled, catalogue=range(40)).bounds.items():
        assert value == pytest.approx(result.bounds[key], abs=1e-12)


def test_one_user_has_no_interval():
    one = pa.table({"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2]})
    assert audit(one).bounds == {}
    rest = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 2]})
    assert audit(rest, k=1).bounds == {}


def test_ranks_beyond_sixteen_bits():
    far = pa.table({"user_id": [1, 2, 2], "item_id": ["a", "b", "c"], "rank": [1, 1, 70_000]})
    near = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]})
    bounds = audit(far, catalogue=list("abcd")).bounds
    expected = audit(near, catalogue=list("abcd")).bounds
    assert bounds["gini@70000_low"] < expected["gini@1_low"]


def test_margin_of_a_mean_is_the_usual_one():
    values = np.random.default_rng(0).random(100)
    without = (values.sum() - values) / 99
    margin = margin_of(without - without.mean(), 100)
    assert margin == pytest.approx(1.96 * values.std(ddof=1) / 10, rel=1e-4)
