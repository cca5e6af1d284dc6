"""Two audits side by side: numbers by hand, and intervals of the change."""

import json

import numpy as np
import pyarrow as pa
import pytest

from limelight._base.errors import ConfigError
from limelight.audit.audit import audit
from limelight.audit.parts import NO_CATALOGUE

BEFORE = pa.table(
    {
        "user_id": ["u", "u", "v", "v", "w", "w"],
        "item_id": ["a", "b", "a", "b", "a", "c"],
        "rank": [1, 2, 1, 2, 1, 2],
    }
)
AFTER = pa.table(
    {
        "user_id": ["v", "v", "u", "u", "x", "x"],
        "item_id": ["d", "a", "a", "b", "a", "b"],
        "rank": [1, 2, 1, 2, 1, 2],
    }
)
CATALOGUE = list("abcde")


def test_numbers_by_hand():
    result = audit(AFTER, against=BEFORE, catalogue=CATALOGUE)
    before = audit(BEFORE, catalogue=CATALOGUE)
    after = audit(AFTER, catalogue=CATALOGUE)
    changed = result.comparison
    for key, value in after.metrics.items():
        assert result.metrics[key] == value
        assert changed.metrics[f"{key}_before"] == before.metrics[key]
        assert changed.metrics[f"{key}_change"] == value - before.metrics[key]
    assert (changed.users, changed.lists, changed.users_in_both) == (3, 3, 2)
    assert (changed.items_entered, changed.items_left) == (1, 1)
    # u keeps both items, v one of two; w and x are in one file only.
    assert changed.metrics["overlap@2"] == 0.75
    total = before.exposure.sum()
    assert changed.gained[0].name == "d"
    assert changed.gained[0].change == pytest.approx(1 / total)
    assert [change.name for change in changed.lost] == ["c", "a"]
    assert changed.lost[0].change == pytest.approx(-before.exposure[2] / total)


def test_order_of_rows_does_not_matter():
    shuffled = AFTER.take([3, 5, 0, 2, 4, 1])
    one, other = (
        audit(lists, against=BEFORE, catalogue=CATALOGUE).comparison for lists in (AFTER, shuffled)
    )
    assert one.metrics == pytest.approx(other.metrics, abs=1e-14)
    assert one.gained == other.gained


def test_groups_are_compared():
    groups = pa.table({"item_id": list("abcd"), "group": ["x", "x", "y", "z"]})
    result = audit(AFTER, against=BEFORE, catalogue=CATALOGUE, groups=groups)
    changes = result.comparison.groups
    assert [change.name for change in changes] == ["z", "x", "y"]
    assert sum(change.change for change in changes) == pytest.approx(0)
    assert {change.name: change.after for change in changes} == pytest.approx(
        {group.group: group.exposure_share for group in result.groups}
    )


def test_lists_against_themselves():
    result = audit(AFTER, against=AFTER, catalogue=CATALOGUE)
    changed = result.comparison.metrics
    assert changed["overlap@2"] == 1
    for key, value in changed.items():
        if "change" in key:
            assert value == 0
    assert result.comparison.gained == result.comparison.lost == ()


def test_without_a_catalogue_items_of_both_files_count():
    result = audit(AFTER, against=BEFORE)
    assert result.items == 4
    assert result.notes == (NO_CATALOGUE,)
    numbers = pa.table({"user_id": ["u"], "item_id": [7], "rank": [1]})
    texts = pa.table({"user_id": ["u"], "item_id": ["7"], "rank": [1]})
    assert audit(numbers, against=texts).comparison.metrics["overlap@1"] == 1


def test_no_user_in_common():
    strangers = BEFORE.set_column(0, "user_id", pa.array([f"{u}!" for u in "uuvvww"]))
    result = audit(AFTER, against=strangers, catalogue=CATALOGUE)
    assert result.comparison.users_in_both == 0
    assert "overlap@2" not in result.comparison.metrics
    assert "gini@2_change_low" in result.comparison.metrics
    assert "Users in both: 0\n" in str(result)


def test_files_of_different_size():
    result = audit(AFTER, against=BEFORE[:2], catalogue=CATALOGUE)
    [note] = result.notes
    assert note.startswith("Numbers of lists differ: 1 (before), 3 (after).")
    assert "ll.gini_at" in note
    assert f"Note: {note}" in str(result)
    assert note in result.document().notes
    assert result.comparison.metrics["overlap@2"] == 1
    assert "gini@2_change_low" not in result.comparison.metrics


def test_the_shorter_lists_set_k():
    longer = pa.concat_tables([BEFORE, pa.table({"user_id": ["u"], "item_id": ["e"], "rank": [3]})])
    assert audit(AFTER, against=longer, catalogue=CATALOGUE).k == 2
    with pytest.raises(ConfigError, match="k is larger than the lists are long: 3 > 2"):
        audit(AFTER, against=longer, k=3, catalogue=CATALOGUE)


def test_json_and_text():
    groups = pa.table({"item_id": CATALOGUE, "group": list("xxyyz")})
    result = audit(AFTER, against=BEFORE, catalogue=CATALOGUE, groups=groups, merit=BEFORE)
    record = result.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    for key in ("gini@2_before", "gini@2_change", "gini@2_change_low", "overlap@2", "users_before"):
        assert isinstance(record[key], int | float)
    assert "merit_gini@2_change" in record
    assert record["group_changes"][0].keys() == {"name", "before", "after", "change"}
    text = str(result)
    assert "Against 3 users' lists before" in text
    assert "Items that entered the lists: 1; that left them: 1" in text
    [head] = [line for line in text.splitlines() if line.startswith("  group")]
    assert head.split() == [
        *("group", "before", "exposure", "change", "catalogue", "ratio", "impact", "reach")
    ]


def draw(generator, popularity, k=5):
    scores = popularity + generator.gumbel(size=popularity.shape)
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


def test_intervals_of_the_change_hold_the_truth():
    n_users, n_items = 120, 150
    generator = np.random.default_rng(5)
    fall = -np.log(np.arange(1, n_items + 1))

    def pair():
        # A user's taste is the same before and after, so that her two lists have much in common.
        taste = 2.0 * generator.normal(size=(n_users, n_items))
        return (table_of(draw(generator, skew * fall + taste)) for skew in (1.0, 0.8))

    runs = []
    for _ in range(120):
        before, after = pair()
        runs.append(audit(after, against=before, catalogue=range(n_items), top=0))
    for key in ("gini@5", "gini_uniform@5", "coverage@5", "top_share@5"):
        changes = [run.comparison.metrics for run in runs]
        truth = np.mean([change[f"{key}_change"] for change in changes])
        inside = [
            change[f"{key}_change_low"] <= truth <= change[f"{key}_change_high"]
            for change in changes
        ]
        assert np.mean(inside) >= 0.88, key


def test_pairing_makes_intervals_narrower():
    generator = np.random.default_rng(5)
    taste = 8.0 * generator.normal(size=(120, 150))
    before, after = (table_of(draw(generator, taste)) for _ in range(2))
    strangers = before.set_column(0, "user_id", pa.array(before["user_id"].to_numpy() + 1000))
    paired, alone = (
        audit(after, against=other, catalogue=range(150)).comparison.metrics
        for other in (before, strangers)
    )
    widths = [m["gini@5_change_high"] - m["gini@5_change_low"] for m in (paired, alone)]
    assert paired["gini@5_change"] == alone["gini@5_change"]
    assert widths[0] < 0.8 * widths[1]
