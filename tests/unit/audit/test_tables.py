"""Every item and every group as a table, titles beside ids, and targets that are missed."""

import json

import numpy as np
import pyarrow as pa
import pytest

from limelight._base.errors import ConfigError
from limelight._base.text import percent
from limelight.audit.audit import audit
from limelight.audit.targets import missed_by

LISTS = pa.table({"user_id": [1, 1, 2, 2], "item_id": list("abac"), "rank": [1, 2, 1, 2]})
BEFORE = pa.table({"user_id": [1, 2], "item_id": ["b", "c"], "rank": [1, 1]})
FILMS = pa.table({"item_id": list("abcd"), "title": ["Alpha", "Beta", None, "Delta " * 20]})
GROUPS = pa.table({"item_id": list("abc"), "group": ["x", "y", "y"]})
MERIT = pa.table({"user_id": [1, 2, 3], "item_id": ["a", "b", "b"]})


def test_every_item_is_a_row():
    table = audit(LISTS, catalogue=FILMS).items_table()
    assert table.column_names == ["item_id", "title", "exposure", "share", "lists"]
    rows = table.to_pylist()
    assert [row["item_id"] for row in rows] == ["a", "b", "c", "d"]
    assert [row["lists"] for row in rows] == [2, 1, 1, 0]
    assert rows[0]["exposure"] == 2
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert (rows[1]["title"], rows[2]["title"]) == ("Beta", "")


def test_items_with_merit_and_with_what_they_had_before():
    result = audit(LISTS, catalogue=list("abcd"), merit=MERIT, against=BEFORE, k=1)
    table = result.items_table().to_pydict()
    assert "title" not in table
    assert table["merit"] == [1, 2, 0, 0]
    assert table["merit_share"] == pytest.approx([1 / 3, 2 / 3, 0, 0])
    assert table["share_before"] == pytest.approx([0, 0.5, 0.5, 0])
    change = np.subtract(table["share"], table["share_before"])
    assert table["change"] == pytest.approx(change)


def test_every_group_is_a_row_and_the_rest_comes_last():
    result = audit(LISTS, catalogue=list("abcd"), groups=GROUPS, against=BEFORE, k=1)
    rows = result.groups_table().to_pylist()
    assert [row["group"] for row in rows] == ["x", "y", None]
    assert [row["items"] for row in rows] == [1, 2, 1]
    assert [row["catalogue_share"] for row in rows] == [0.25, 0.5, 0.25]
    assert [row["exposure_share"] for row in rows] == [1, 0, 0]
    assert [row["share_before"] for row in rows] == [0, 1, 0]
    assert [row["change"] for row in rows] == [1, -1, 0]
    assert "cap" not in rows[0]


def test_groups_of_numbers_keep_their_type():
    groups = pa.table({"item_id": list("abcd"), "group": [7, 8, 8, 8]})
    table = audit(LISTS, catalogue=list("abcd"), groups=groups).groups_table()
    assert pa.types.is_integer(table.schema.field("group").type)


def test_without_groups_there_is_no_table():
    with pytest.raises(ConfigError, match="no groups to tabulate") as error:
        audit(LISTS).groups_table()
    assert "groups='...'" in error.value.hint


def test_titles_stand_beside_ids():
    result = audit(LISTS, catalogue=FILMS, against=LISTS[2:], merit=MERIT)
    assert (result.most_exposed[0].title, result.least_exposed[0].title[:5]) == ("Alpha", "Delta")
    record = result.to_dict()
    assert record["most_exposed"][0]["title"] == "Alpha"
    assert "title" not in next(one for one in record["most_exposed"] if one["item_id"] == "c")
    assert record["gained"][0]["title"] == "Beta"
    assert record["under_exposed"][0]["title"] == "Beta"
    text = str(result)
    assert "  item  title" in text
    assert "  a     Alpha" in text
    assert f"{('Delta ' * 20)[:39]}…" in text


def test_a_catalogue_without_titles_has_no_column_for_them():
    assert "title" not in str(audit(LISTS, catalogue=list("abcd")))


def test_targets_say_what_is_missed():
    result = audit(
        LISTS,
        catalogue=list("abcd"),
        groups=GROUPS,
        gini=0.2,
        min_coverage=0.5,
        group_cap=0.6,
        group_floor={"y": 0.1},
    )
    gini, coverage, cap, floor = result.targets
    assert (gini.met, coverage.met, cap.met, floor.met) == (False, True, False, True)
    assert gini.found == result["gini@2"]
    assert cap.found == result.groups[0].exposure_share
    assert [one.group for one in cap.missed] == ["x"]
    assert floor.asked is None
    assert missed_by(result.groups[0]) == pytest.approx(cap.found - 0.6)
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["targets"][2]["missed"] == [{"group": "x", "share": cap.found, "asked": 0.6}]
    assert record["groups"][0]["cap"] == 0.6
    assert "floor" not in record["groups"][0]
    first, second, *_ = str(result).splitlines()
    assert first == f"A target is missed: the Gini is {gini.found:.4f}, above 0.2."
    assert second == (
        f"A target is missed: x has {percent(cap.found, 2)} of the exposure, "
        "above the cap of 60.00 %."
    )
    assert "  Each group at most   60.00 %" in str(result)
    table = result.groups_table().to_pydict()
    assert table["cap"] == [0.6, 0.6, None]
    assert table["missed_by"] == pytest.approx([cap.found - 0.6, 0, 0])


def test_groups_outside_their_bounds_come_first_and_then_those_with_bounds():
    groups = pa.table({"item_id": list("abcd"), "group": list("wxyz")})
    result = audit(LISTS, catalogue=list("abcd"), groups=groups, group_floor={"z": 0.1, "y": 0.0})
    assert [group.group for group in result.groups] == ["z", "y", "w", "x"]


def test_twenty_studios_of_one_item_are_not_listed():
    items = [f"i{number}" for number in range(300)]
    names = ["large"] * 200 + [f"studio {number}" for number in range(100)]
    table = pa.table({"user_id": [1] * 3, "item_id": items[:3], "rank": [1, 2, 3]})
    text = str(audit(table, catalogue=items, groups=pa.table({"item_id": items, "group": names})))
    assert text.count("  studio ") == 4
    assert "(96 smaller groups left out)" in text


@pytest.mark.parametrize(
    ("wish", "message", "hint"),
    [
        ({"gini": 1.5}, "gini must be from 0 to 1: 1.5", "0.03 is a share"),
        ({"min_coverage": -1}, "min_coverage must be a finite number 0 or more: -1", "finite"),
        ({"group_cap": 0.5}, "a bound of groups needs groups: group_cap=0.5", "groups='...'"),
        (
            {"group_floor": {}, "groups": GROUPS},
            "no group has a bound: group_floor={}",
            "name some",
        ),
        (
            {"group_cap": {"q": 0.5}, "groups": GROUPS},
            "no item of the catalogue is in group 'q'",
            "name groups as",
        ),
    ],
)
def test_targets_that_cannot_be(wish, message, hint):
    with pytest.raises(ConfigError) as error:
        audit(LISTS, **wish)
    assert message in str(error.value)
    assert hint in error.value.hint
