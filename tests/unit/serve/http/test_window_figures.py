"""What the audit of the window says, and lists that are remembered for it."""

from __future__ import annotations

import numpy as np
import pytest

from limelight.metrics.exposure import gini
from limelight.serve.http.exposure import accounts_of, extremes, figures_of, floor_for
from limelight.serve.http.recent import RecentList, RecentLists
from limelight.serve.requests import Answer

DRAW = np.random.default_rng(0)


def test_figures_are_those_of_an_audit():
    exposure = DRAW.pareto(1.0, 500)
    exposure[:100] = 0
    found = figures_of(exposure)
    assert found.gini == pytest.approx(gini(exposure))
    assert found.coverage == pytest.approx(0.8)
    shares, held = np.array(found.lorenz).T
    assert (shares[0], held[0], shares[-1], held[-1]) == (0, 0, 1, 1)
    assert (np.diff(held) >= 0).all()
    # The area between the curve and the diagonal is what the Gini index is, up to its corners.
    area = np.sum((held[1:] + held[:-1]) / 2 * np.diff(shares))
    assert 1 - 2 * area == pytest.approx(found.gini, abs=0.01)


def test_the_floor_needs_a_list():
    assert floor_for(0.5, 5, 100) is None
    assert floor_for(1.0, 5, 100) == pytest.approx(0.95, abs=0.02)
    assert floor_for(1e6, 5, 100) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("top", [0, 1, 7, 50, 1000])
def test_extremes_are_those_of_a_sort(top):
    exposure = DRAW.integers(0, 9, 50).astype(float)
    ids = np.array([f"i{n}" for n in range(50)], dtype=object)
    most, least = extremes(exposure, ids, ["title" if n % 2 else "" for n in range(50)], top)
    kept = min(top, 50)
    assert [item.exposure for item in most] == sorted(exposure, reverse=True)[:kept]
    assert [item.exposure for item in least] == sorted(exposure)[:kept]
    for item in most:
        number = int(item.id[1:])
        assert item.exposure == exposure[number]
        assert item.title == ("title" if number % 2 else None)


def test_accounts_name_the_largest_and_those_below_their_floor():
    totals = np.array([1.0, 5.0, 3.0, 0.5, 0.5])
    found = accounts_of(totals, 10.0, list("abcde"), (0.4, 0.09), 2)
    assert [(one.group, one.share) for one in found] == [
        ("b", 0.5),
        ("c", 0.3),
        ("e", 0.05),
        ("d", 0.05),
    ]
    assert {(one.cap, one.floor) for one in found} == {(0.4, 0.09)}
    assert accounts_of(totals, 0.0, list("abcde"), (None, None), 2) == []
    assert accounts_of(np.empty(0), 1.0, [], (None, None), 2) == []


def answer(*numbers):
    items = np.array(numbers, dtype=np.int32)
    return Answer(list(numbers), items, items.astype(np.float32), "user", plain=4.0, shown=3.0)


def test_only_so_many_lists_are_remembered():
    recent = RecentLists(3)
    for n in range(5):
        recent.add(str(n), answer(n))
    recent.add("3", answer(9))
    recent.add("5", answer(5))
    assert len(recent) == 3
    assert [recent.find(str(n)) is not None for n in range(6)] == [0, 0, 0, 1, 1, 1]
    assert recent.find("3").numbers.tolist() == [9]


def test_a_part_of_a_list_has_its_part_of_the_relevance():
    found = RecentList(np.arange(3, dtype=np.int32), 4.0, 3.0)
    assert found.part(3) == found.part(9) == (4.0, 3.0)
    plain, shown = found.part(1)
    assert plain == pytest.approx(4.0 / (1 + 0.63093 + 0.5), rel=1e-4)
    assert shown / plain == pytest.approx(0.75)
    assert found.part(0) == (0.0, 0.0)


def test_lists_of_one_catalogue_before_are_remembered():
    recent = RecentLists()
    recent.add("a", answer(0, 2, -1, 1))
    recent.renumber(np.array([5, -1, 3], dtype=np.int32))
    recent.add("b", answer(4))
    assert recent.find("a").numbers.tolist() == [5, 3, -1, -1]
    assert recent.find("a").plain == 4.0
    assert recent.find("b").numbers.tolist() == [4]
    recent.renumber(np.arange(6, dtype=np.int32))
    assert recent.find("a") is not None, "nothing has another number"
    recent.renumber(np.roll(np.arange(6, dtype=np.int32), 1))
    assert recent.find("a") is None
    assert recent.find("b").numbers.tolist() == [3]
