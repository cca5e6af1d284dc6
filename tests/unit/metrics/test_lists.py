"""Of how many lists and items a figure is, in words."""

import pytest

from limelight.metrics.lists import ListCount, over_all, sizes_note


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (ListCount(), ""),
        (ListCount(0), "0 users' lists"),
        (ListCount(1, 1), "1 user's list and 1 item"),
        (ListCount(1, lists=3), "1 user's 3 lists"),
        (ListCount(2000, 30, 2000), "2,000 users' lists and 30 items"),
        (ListCount(items=30), "30 items"),
    ],
)
def test_words(count, words):
    assert str(count) == words
    assert over_all([count, count]) == (f"over {words}" if words else "")


def test_figures_under_flat_keys():
    figures = {"users": 3, "items": 9, "gini@5": 0.5}
    assert ListCount.of(figures) == ListCount(3, 9)
    assert ListCount.of({"users": 3, "lists": 7}).n_lists == 7
    assert ListCount.of({}) == ListCount()


def test_sizes_that_are_about_the_same_get_no_note():
    assert sizes_note({}) == ""
    assert sizes_note({"a": ListCount(100, 9), "b": ListCount(110, 9), "c": ListCount()}) == ""
    assert over_all([ListCount(100, 9), ListCount(110, 9)]) == "over 100 to 110 lists and 9 items"


def test_other_catalogues_get_a_note_of_their_own():
    few, more = ListCount(100, 9), ListCount(100, 10)
    assert sizes_note({"few": few, "more": more}).startswith(
        "Numbers of items differ: 9 (few), 10 (more). Gini rises and coverage falls with every item"
    )
    both = sizes_note({"few": few, "between": ListCount(300, 9), "more": ListCount(500, 10)})
    assert both.startswith("Numbers of lists differ: 100 (few), 500 (more). ")
    assert "Numbers of items differ: 9 (few), 10 (more). " in both
    warning = ": part of the difference is their number"
    assert over_all([few, more]) == f"over 100 lists and 9 to 10 items{warning}"
