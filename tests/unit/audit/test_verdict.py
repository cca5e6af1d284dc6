"""The first sentences of an audit say what changed, and whether it may be chance."""

import numpy as np
import pyarrow as pa

from limelight.audit.audit import audit


def table_of(ids):
    n_users, k = ids.shape
    columns = np.repeat(np.arange(n_users), k), ids.ravel(), np.tile(np.arange(1, k + 1), n_users)
    return pa.table(dict(zip(("user_id", "item_id", "rank"), columns, strict=True)))


SAME = table_of(np.tile([0, 1], (40, 1)))
SPREAD = table_of(np.arange(80).reshape(40, 2) % 20)


def first_lines(*args, **options):
    return str(audit(*args, catalogue=range(20), **options)).split("\n")[:2]


def test_a_plain_audit():
    first, second = first_lines(SAME)
    assert first.startswith("Exposure audit over 40 users' lists and 20 items, ranks 1 to 2: the G")
    assert second == (
        "Half of the exposure goes to 1 item, 5.00 % of all; 18 items (90.00 %) are in no list."
    )


def test_more_even():
    first, second = first_lines(SPREAD, against=SAME)
    assert first.startswith("Exposure is more even than before: the Gini fell by 0.")
    assert first.endswith("more than chance explains.")
    assert second.startswith("The lists show 100.00 % of the items, 10.00 % before")


def test_less_even():
    assert first_lines(SAME, against=SPREAD)[0].startswith("Exposure is less even than before")


def test_no_change():
    first, second = first_lines(SAME, against=SAME)
    assert first.startswith("Exposure is as even as before: the Gini stayed at 0.9")
    assert second == "The lists show 10.00 % of the items, as before."


def test_one_user_and_files_of_different_size():
    first, second = first_lines(SPREAD, against=SPREAD[:2])
    assert "one user cannot tell whether that is chance" in first
    assert "there was 1 list before and there are 40 now" in second


def test_chance():
    moved = pa.concat_tables(
        [SAME[:78], table_of(np.array([[0, 2]])).set_column(0, "user_id", pa.array([39, 39]))]
    )
    assert "which may be chance" in first_lines(moved, against=SAME)[0]


def test_large_groups_come_before_tiny_ones_of_high_ratio():
    groups = pa.table({"item_id": range(20), "group": ["tiny"] + ["large"] * 19})
    found = audit(SPREAD, catalogue=range(20), groups=groups)
    assert [group.group for group in found.groups] == ["large", "tiny"]
