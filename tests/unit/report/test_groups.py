"""Dumbbells of the shares of groups."""

import numpy as np
import pyarrow as pa
import pytest

import limelight as ll
from limelight.rerank.methods.group_shares import GroupShare

pytest.importorskip("matplotlib")

LISTS = pa.table(
    {"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "rank": [1, 2, 1]}
)  # exposure: a 2, b 0.63, c 0
OLD = pa.table({"user_id": [1, 2], "item_id": ["c", "b"], "rank": [1, 1]})
STUDIOS = pa.table({"item_id": ["a", "b", "c"], "group": ["x", "y", "y"]})


def dots(ax):
    """Return names from top to bottom, and each collection's shares by its label."""
    shares = {c.get_label(): c.get_offsets()[:, 0].tolist() for c in ax.collections}
    return [label.get_text() for label in ax.get_yticklabels()], shares


def test_largest_group_on_top():
    ax = ll.plot.groups({"small": (0.1, 0.2), "large": (0.7, 0.5), "grown": (0.2, 0.3)})
    names, shares = dots(ax)
    assert names == ["large", "grown", "small"]
    assert shares == {"before": [0.7, 0.2, 0.1], "after": [0.5, 0.3, 0.2]}
    assert ax.get_ylim() == (2.5, -0.5)
    assert ax.get_title(loc="left") == "large goes from 70.0 % to 50.0 % of the exposure"


def test_some_of_many_groups_and_long_names():
    ax = ll.plot.groups({f"{n} {'x' * 50}\n": (n / 100, n / 100) for n in range(30)}, top=5)
    names, _ = dots(ax)
    assert [name[:3] for name in names] == ["29 ", "28 ", "27 ", "26 ", "25 "]
    assert {len(name) for name in names} == {40}
    assert ax.get_ylabel() == "The 5 largest of 30 groups"


def test_names_that_nobody_can_see():
    names, _ = dots(
        ll.plot.groups({"\u200b\u202e": (0.6, 0.5), " \t": (0.3, 0.3), "x": (0.1, 0.2)})
    )
    assert names == ["(no name)", "(no name)", "x"]


def test_long_titles_stay_inside():
    ax = ll.plot.groups({"The studio of many long words and names": (0.8, 0.6)})
    ax.figure.draw_without_rendering()
    title = ax._left_title.get_window_extent()
    assert title.x1 <= ax.figure.bbox.x1
    assert title.y1 <= ax.figure.bbox.y1


@pytest.mark.filterwarnings("error")
def test_letters_that_the_font_has_not_are_no_trouble(tmp_path):
    ll.plot.save(ll.plot.groups({"映画": (0.2, 0.4)}), tmp_path / "groups.png")


def test_wishes():
    rows = [
        GroupShare("capped", 0.5, 0.3, 0.0, 0.3),
        GroupShare("free", 0.4, 0.4, 0.0, 1.0),
        GroupShare("aimed", 0.1, 0.3, 0.25, 0.25),
        GroupShare("gone", 0.1, 0.0, 0.0, 0.0),
    ]
    _, shares = dots(ll.plot.groups(rows))
    assert sorted(shares["wish"]) == [0.0, 0.25, 0.3]


def test_results_of_group_targets():
    market = ll.marketplace(200, 40, 3000, n_providers=4)
    model = ll.Popularity().fit(market.interactions)
    method = ll.GroupShares(at_most=0.4)
    method.rerank(model.ranking(), k=5, groups=market.providers)
    rows = sorted(method.outcome_.shares, key=lambda row: -max(row.before, row.after))
    _, shares = dots(ll.plot.groups(method.outcome_.shares))
    assert shares["before"] == [row.before for row in rows]
    assert shares["after"] == [row.after for row in rows]
    result = ll.rerank(model, gini=0.3, k=5)
    changes = {c.id: (c.before, c.after) for c in result.group_changes(market.groups)}
    assert dots(ll.plot.groups(result.group_changes(market.groups))) == dots(
        ll.plot.groups(changes)
    )


def test_an_audit_sets_exposure_beside_items():
    found = ll.audit(LISTS, catalogue=["a", "b", "c"], groups=STUDIOS)
    ax = ll.plot.groups(found)
    names, shares = dots(ax)
    by_name = {group.group: group for group in found.groups}
    assert shares["share of the items"] == [by_name[name].catalogue_share for name in names]
    assert shares["share of the exposure"] == [by_name[name].exposure_share for name in names]
    assert "x has 33.3 % of the items" in ax.get_title(loc="left")


def test_an_audit_against_other_lists_is_before_and_after():
    found = ll.audit(LISTS, catalogue=["a", "b", "c"], groups=STUDIOS, against=OLD, k=1)
    names, shares = dots(ll.plot.groups(found))
    by_name = dict(zip(names, zip(shares["before"], shares["after"], strict=True), strict=True))
    assert by_name == {"x": (0.0, 1.0), "y": (1.0, 0.0)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "no groups to draw"),
        ([], "no groups to draw"),
        (ll.audit(LISTS), "no groups to draw: Audit"),
        ([0.3, 0.4], "not the shares of a group: 0.3"),
        (np.ones(3), "not the shares of a group"),
        (7, "not the shares of groups: 7"),
        ({"x": 0.3}, "a group needs two shares, before and after: 0.3"),
    ],
)
def test_what_cannot_be_drawn(wrong, message):
    with pytest.raises(ll.DataError, match=message):
        ll.plot.groups(wrong)


def test_no_groups_at_all_are_wished_for():
    with pytest.raises(ll.ConfigError, match="top"):
        ll.plot.groups({"x": (0.1, 0.2)}, top=0)
