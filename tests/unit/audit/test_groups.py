"""What groups get: shares, impact ratios, reach and intersections against loops."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.support import group_oracles as oracle
from tests.support.executors import Elsewhere

from limelight._base.errors import ConfigError, DataError
from limelight.audit.audit import audit
from limelight.metrics.group_intervals import exact_bounds, share_bounds

ITEMS = [f"i{n}" for n in range(30)]


def table(lists):
    rows = [(user, item, at + 1) for user, items in lists for at, item in enumerate(items)]
    return pa.table(dict(zip(("user_id", "item_id", "rank"), zip(*rows, strict=True), strict=True)))


def group_table(rows):
    return pa.table(dict(zip(("item_id", "group", "weight"), zip(*rows, strict=True), strict=True)))


def market(seed, users=12, k=5):
    """Lists of several lengths, and groups: some items in two, some in none."""
    generator = np.random.default_rng(seed)
    worth = 1 / np.arange(1, len(ITEMS) + 1)
    lists = [
        (
            f"u{user}",
            list(generator.choice(ITEMS, generator.integers(1, k + 1), False, worth / worth.sum())),
        )
        for user in range(users)
    ]
    lists[0] = (lists[0][0], list(generator.choice(ITEMS, k, False)))
    rows = []
    for item in ITEMS[:-4]:
        for group in generator.choice(list("abcde"), generator.integers(1, 3), False):
            rows += [(item, str(group), float(generator.integers(1, 4)))]
    return lists, rows


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_of_groups_agrees_with_loops(seed):
    lists, rows = market(seed)
    found = audit(table(lists), catalogue=ITEMS, groups=group_table(rows))
    shares, reach = oracle.exposure_shares(lists, rows), oracle.reach(lists, rows)
    catalogue = oracle.catalogue_shares(ITEMS, rows)
    impact = oracle.impact_ratios({g: shares[g] / catalogue[g] for g in shares}, set())
    selected = oracle.selection_rates(lists, ITEMS, rows)
    selection = oracle.impact_ratios(selected, set())
    assert len(found.groups) == len(shares)
    for one in found.groups:
        assert one.exposure_share == pytest.approx(shares[one.group], rel=1e-12)
        assert one.reach == pytest.approx(reach[one.group], rel=1e-12)
        assert one.impact_ratio == pytest.approx(impact[one.group], rel=1e-12)
        assert one.selection_rate == pytest.approx(selected[one.group], rel=1e-12)
        assert one.selection_ratio == pytest.approx(selection[one.group], rel=1e-12)
        assert one.share_low < one.exposure_share < one.share_high
        assert one.reach_low <= one.reach <= one.reach_high
    figures = found.groups_found
    errors = oracle.standard_errors(lists, rows)
    assert figures.errors == pytest.approx([errors[g] for g in figures.names], rel=1e-9)


def test_lists_of_several_times_and_a_cut():
    lists, rows = market(7)
    times = [("u1", ["i29", "i3"]), ("u2", ["i4"])]
    together = pa.concat_tables([table(lists), table(times)])
    day = 1704067200 + 86400 * (np.arange(len(together)) >= len(table(lists)))
    found = audit(
        together.append_column("t", pa.array(day)),
        k=2,
        catalogue=ITEMS,
        groups=group_table(rows),
        timestamp="t",
    )
    cut = [(user, items[:2]) for user, items in lists + times]
    reach, shares = oracle.reach(cut, rows), oracle.exposure_shares(cut, rows)
    errors = oracle.standard_errors(cut, rows)
    for one in found.groups:
        assert one.reach == pytest.approx(reach[one.group])
        assert one.exposure_share == pytest.approx(shares[one.group])
    figures = found.groups_found
    assert figures.errors == pytest.approx([errors[g] for g in figures.names], rel=1e-9)
    assert found.dropped["list_rows_beyond_k"] == len(together) - sum(len(i) for _, i in cut)


@pytest.mark.parametrize("seed", range(3))
def test_intersections_agree_with_loops(seed):
    lists, rows = market(seed)
    _, more = market(seed + 100)
    more = [(item, f"r{group}", weight) for item, group, weight in more if group != "e"]
    found = audit(
        table(lists), catalogue=ITEMS, groups=group_table(rows), intersect=group_table(more)
    )
    both = oracle.intersections(rows, more)
    shares, reach = oracle.exposure_shares(lists, both), oracle.reach(lists, both)
    catalogue = oracle.catalogue_shares(ITEMS, both)
    assert {one.group for one in found.groups} == set(catalogue)
    for one in found.groups:
        assert one.exposure_share == pytest.approx(shares[one.group], rel=1e-12)
        assert one.catalogue_share == pytest.approx(catalogue[one.group], rel=1e-12)
        assert one.reach == pytest.approx(reach[one.group], rel=1e-12)
    outside = 1 - sum(one.exposure_share for one in found.groups)
    assert found.ungrouped.exposure_share == pytest.approx(outside, abs=1e-12)


def test_small_groups_are_counted_and_not_compared():
    lists = [("u", ["a", "b", "c"]), ("v", ["a", "c", "b"])]
    rows = [(item, "large", 1.0) for item in "bcdefghij"] + [("a", "tiny", 1.0)]
    found = audit(
        table(lists), catalogue=list("abcdefghij"), groups=group_table(rows), small_groups=0.2
    )
    by_name = {one.group: one for one in found.groups}
    assert by_name["tiny"].ratio > by_name["large"].ratio
    assert (by_name["tiny"].impact_ratio, by_name["large"].impact_ratio) == (None, 1.0)
    assert by_name["tiny"].exposure_share > 0
    [note] = found.notes
    assert note == (
        "Groups with less than 20.00 % of the catalogue, left out of impact ratios: 1 group, with "
        "46.93 % of the exposure."
    )
    every = audit(
        table(lists), catalogue=list("abcdefghij"), groups=group_table(rows), small_groups=1
    )
    assert all(one.impact_ratio is None for one in every.groups)


def test_one_user_has_figures_and_no_intervals():
    [one] = audit(table([("u", ["a"])]), groups=group_table([("a", "x", 1.0)])).groups
    assert (one.reach, one.impact_ratio, one.share_low, one.reach_high) == (1, 1, None, None)


def test_files_in_pieces_say_the_same(tmp_path):
    lists, rows = market(3)
    pa.csv.write_csv(table(lists[:5]), tmp_path / "1.csv")
    pa.csv.write_csv(table(lists[5:]), tmp_path / "2.csv")
    whole = audit(table(lists), catalogue=ITEMS, groups=group_table(rows))
    pieces = audit(tmp_path, catalogue=ITEMS, groups=group_table(rows), executor=Elsewhere())
    assert pieces.groups_found.errors == pytest.approx(whole.groups_found.errors, rel=1e-9)
    for one, other in zip(whole.groups, pieces.groups, strict=True):
        assert one.reach == other.reach
        assert one.share_low == pytest.approx(other.share_low)


def test_the_interval_of_an_impact_ratio_holds_for_any_most_favoured_group():
    lists, rows = market(11, users=40)
    figures = audit(table(lists), catalogue=ITEMS, groups=group_table(rows)).groups_found
    low, high = figures.share_bounds(0.99)
    rates = list(zip(low / figures.catalogue, high / figures.catalogue, strict=True))
    least, most = max(one for one, _ in rates), max(one for _, one in rates)
    found_low, found_high = figures.impact_bounds(0.99)
    assert found_low == pytest.approx([one / most for one, _ in rates])
    assert found_high == pytest.approx([min(1, one / least) for _, one in rates])
    impact = figures.impact(figures.rates)
    assert (found_low < impact).all()
    assert (impact <= found_high).all()


def test_exact_bounds_are_where_the_tails_say():
    low, high = exact_bounds(np.array([0.0, 3.0, 20.0]), 20, level=0.9)
    assert (low[0], high[2]) == (0, 1)
    assert stats.binom.sf(2, 20, low[1]) == pytest.approx(0.05)
    assert stats.binom.cdf(3, 20, high[1]) == pytest.approx(0.05)
    assert stats.binom.cdf(0, 20, high[0]) == pytest.approx(0.05)


def test_an_interval_of_shares_is_the_usual_one_where_there_is_much_to_see():
    shares, errors = np.array([0.3, 0.6]), np.array([0.001, 0.002])
    low, high = share_bounds(shares, errors, users=100_000)
    assert low == pytest.approx(shares - 1.96 * errors, abs=2e-5)
    assert high == pytest.approx(shares + 1.96 * errors, abs=2e-5)


def test_few_users_make_intervals_wider():
    shares, errors = np.array([0.3, 0.7]), np.array([0.05, 0.05])
    widths = [np.subtract(*share_bounds(shares, errors, users)[::-1])[0] for users in (4, 40, 4000)]
    assert widths == sorted(widths, reverse=True)


def test_a_group_that_nobody_saw_has_an_upper_bound():
    lists = [(user, [f"i{user % 20}"]) for user in range(300)]
    rows = [(f"i{n}", "seen" if n < 20 else "hidden", 1.0) for n in range(30)]
    found = {
        g.group: g for g in audit(table(lists), catalogue=ITEMS, groups=group_table(rows)).groups
    }
    assert found["hidden"].share_low == 0
    # Three in n, the usual rule for what was never seen at 95 %, one-sided; 3.7 two-sided.
    assert found["hidden"].reach_high == pytest.approx(3.7 / 300, rel=0.02)
    assert 0.001 < found["hidden"].share_high < 0.02


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"intersect": {"item_id": ["a"], "group": ["x"]}},
            ConfigError,
            "an intersection needs groups: intersect='dict'",
        ),
        ({"small_groups": 2}, ConfigError, "small_groups must be from 0 to 1: 2"),
        (
            {
                "groups": {"item_id": ["a"], "group": ["x"]},
                "intersect": {"item_id": ["b"], "group": ["y"]},
            },
            DataError,
            "no item is in a group of both tables",
        ),
        (
            {
                "groups": {"item_id": ["a", "b"], "group": ["x", "x + y"]},
                "intersect": {"item_id": ["a", "b"], "group": ["y + z", "z"]},
            },
            DataError,
            "the same name together: 'x + y + z'",
        ),
    ],
)
def test_mistakes_get_a_sentence(settings, error, message):
    with pytest.raises(error, match=message.replace("+", r"\+")) as told:
        audit(table([("u", ["a", "b"])]), catalogue=["a", "b"], **settings)
    assert told.value.hint
