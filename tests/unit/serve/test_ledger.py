"""Whole numbers in a window: the same in every order, forgotten when they are old."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from limelight._base.errors import ConfigError
from limelight.data.groups import Groups
from limelight.serve.ledger.buckets import GROUP_UNIT, UNIT, EventIds, event_key, place_units
from limelight.serve.ledger.ledger import MODEL, Ledger
from limelight.serve.ledger.parts import SourcePart, spread_evenly

HOUR = 3600.0


def a_list(*items):
    return np.array(items, dtype=np.int32)


def overlapping(n_items=6):
    """Every item in group 0 by a third, and in group 1 or 2 by the rest."""
    items = np.repeat(np.arange(n_items), 2)
    groups = np.stack([np.zeros(n_items, int), 1 + np.arange(n_items) % 2], axis=1).ravel()
    weights = np.tile([1 / 3, 2 / 3], n_items)
    return Groups(items, groups, weights, ["all", "even", "odd"], 0)


def same(one, other):
    assert one.totals.tolist() == other.totals.tolist()
    assert one.group_totals.tolist() == other.group_totals.tolist()
    assert (one.lists, one.plain, one.shown) == (other.lists, other.plain, other.shown)


def test_places_count_as_they_are_seen():
    ledger = Ledger(5, window=HOUR)
    assert ledger.count(a_list(4, -1, 2, 99), time=10.0, plain=2.5, shown=2.0)
    assert ledger.totals.tolist() == [0, 0, UNIT // 2, 0, UNIT]
    assert (ledger.lists, ledger.plain, ledger.shown, ledger.time) == (1, 2.5, 2.0, 10.0)
    assert (ledger.totals[a_list(4, 0)] / UNIT).tolist() == [1.0, 0.0]


def test_a_list_may_be_long_empty_or_repeat_an_item():
    ledger = Ledger(2, window=HOUR)
    ledger.count(a_list(*[1] * 300), time=1.0)
    ledger.count(a_list(), time=1.0)
    assert ledger.totals.tolist() == [0, place_units(300).sum()]
    assert ledger.lists == 2


@pytest.mark.parametrize("relevance", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_relevance_that_is_no_number_spoils_no_sum(relevance):
    ledger = Ledger(2, window=HOUR)
    ledger.count(a_list(0), time=1.0, plain=relevance, shown=relevance)
    assert np.isfinite([ledger.plain, ledger.shown]).all()
    ledger.advance(3 * HOUR)
    assert (ledger.plain, ledger.shown) == (0, 0)


def test_what_left_the_window_is_forgotten_to_the_last_unit():
    ledger = Ledger(6, window=HOUR, groups=overlapping(), buckets=4)
    ledger.count(a_list(0, 1), time=100.0, plain=0.1)
    ledger.count(a_list(1, 2), time=1000.0, plain=0.2)
    assert not ledger.advance(3599.0)
    assert ledger.advance(3700.0)
    assert ledger.lists == 1
    assert ledger.totals[0] == 0
    assert ledger.totals[1] == UNIT
    assert ledger.advance(9 * HOUR)
    assert not ledger.totals.any()
    assert not ledger.group_totals.any()
    assert (ledger.lists, ledger.plain) == (0, 0)


def test_a_clock_that_was_ahead_is_told_of():
    ledger = Ledger(2, window=HOUR, buckets=4, time=9 * HOUR)
    assert ledger.clock_notes(8.5 * HOUR) == []
    [note] = ledger.clock_notes(7 * HOUR)
    assert note.endswith("before the ledger's window, by 7,200 s")
    assert not ledger.count(a_list(0), time=7 * HOUR)


def test_time_does_not_go_back():
    ledger = Ledger(2, window=HOUR, buckets=4, time=2 * HOUR)
    assert not ledger.advance(10.0)
    assert ledger.count(a_list(0), time=2 * HOUR - 1000)
    assert not ledger.count(a_list(0), time=HOUR - 1)
    assert (ledger.time, ledger.lists) == (2 * HOUR, 1)


def test_a_late_list_is_forgotten_with_its_own_bucket():
    ledger = Ledger(2, window=HOUR, buckets=4)
    ledger.count(a_list(0), time=HOUR)
    ledger.count(a_list(1), time=HOUR - 1000)
    ledger.advance(2 * HOUR - 900)
    assert ledger.totals.tolist() == [UNIT, 0]


@pytest.mark.parametrize("time", [1e12, 1e300, float("inf"), float("nan")])
def test_one_clock_that_is_wrong_does_not_wipe_the_window(time):
    ledger = Ledger(2, window=HOUR)
    ledger.count(a_list(0), time=1000.0)
    assert ledger.count(a_list(1), time=time)
    assert ledger.lists == 2
    assert ledger.time <= 1000 + 2 * ledger.width


def test_a_ledger_that_is_behind_catches_up():
    ledger = Ledger(2, window=HOUR)
    for _ in range(40):
        ledger.count(a_list(0), time=1000.0 if ledger.lists == 0 else 2500.0)
    assert ledger.time == 2500.0


def test_the_first_time_sets_the_clock_also_after_a_long_rest():
    ledger = Ledger(2, window=HOUR)
    ledger.count(a_list(0), time=1.7e9)
    assert ledger.time == 1.7e9
    ledger.advance(1.8e9)
    ledger.count(a_list(0), time=1.9e9)
    assert (ledger.time, ledger.lists) == (1.9e9, 1)


def test_an_event_is_counted_once_within_the_window():
    ledger = Ledger(2, window=HOUR)
    assert ledger.count(a_list(0), time=1.0, event="a")
    assert not ledger.count(a_list(0), time=2000.0, event="a")
    assert ledger.count(a_list(0), time=2000.0, event="b")
    ledger.advance(2 * HOUR)
    assert ledger.count(a_list(0), time=2 * HOUR, event="a")
    counted = [ledger.count(a_list(0), time=2 * HOUR, event=event) for event in ("c", "c", None)]
    assert counted == [True, False, True]


def test_ids_of_events_are_many_but_not_without_bound():
    events = EventIds(most=60_000)
    keys = [event_key(str(number)) for number in range(100_000)]
    for number, key in enumerate(keys):
        assert key not in events
        events.add(number // 25_000, key)
    assert all(key in events for key in keys[::997])
    events.close(0)
    assert len(events) == 50_000
    assert keys[49_999] not in events
    assert all(key in events for key in keys[50_000::997])
    assert sorted(events.keys()) == [2, 3]


def test_groups_follow_from_items_in_whole_numbers():
    ledger = Ledger(6, window=HOUR, groups=overlapping())
    ledger.count(a_list(0, 1, 2), time=1.0)
    third, rest = round(GROUP_UNIT / 3), round(2 * GROUP_UNIT / 3)
    one, two, three = place_units(3).tolist()
    assert ledger.group_totals.tolist() == [
        third * (one + two + three) // GROUP_UNIT,
        rest * (one + three) // GROUP_UNIT,
        rest * two // GROUP_UNIT,
    ]


def test_with_a_half_life_exposure_halves():
    ledger = Ledger(2, half_life=HOUR)
    ledger.count(a_list(0), time=10 * HOUR, plain=1.0)
    ledger.advance(11 * HOUR)
    assert ledger.totals[0] == pytest.approx(UNIT / 2)
    assert (ledger.lists, ledger.plain) == (pytest.approx(0.5), pytest.approx(0.5))
    ledger.count(a_list(1), time=10 * HOUR)
    assert ledger.totals[1] == pytest.approx(UNIT / 2)
    ledger.advance(24 * HOUR)
    assert ledger.totals.tolist() == [0, 0]
    assert ledger.lists == 0


def test_what_a_model_had_shown_is_forgotten_in_the_course_of_a_window():
    exposure = np.array([0.0, 10.0, 1 / 3])
    ledger = Ledger(3, window=48 * HOUR, time=1e9)
    ledger.start_from(exposure, 7, time=1e9)
    assert ledger.totals.tolist() == np.rint(exposure * UNIT).tolist()
    assert ledger.lists == 7
    ledger.advance(1e9 + 24 * HOUR)
    assert (ledger.totals[a_list(1)] / UNIT) == pytest.approx(5.0, abs=1e-5)
    ledger.advance(1e9 + 48 * HOUR)
    assert not ledger.totals.any()
    assert ledger.lists == 0


def test_with_a_half_life_as_much_counts_as_a_model_had_shown():
    ledger = Ledger(2, half_life=HOUR)
    ledger.start_from(np.array([4.0, 0.0]), 1000, time=1e9)
    assert (ledger.totals[a_list(0)] / UNIT) == pytest.approx(4.0, rel=1e-4)
    assert ledger.lists == pytest.approx(1000, rel=0.01)


def test_another_catalogue_keeps_what_its_items_had():
    ledger = Ledger(6, window=HOUR, groups=overlapping(), buckets=4)
    ledger.count(a_list(0, 1), time=1.0)
    ledger.count(a_list(5, 1), time=1000.0)
    ledger.merge(1, "other", SourcePart(a_list(1), np.array([5]), 1))
    before = ledger.totals.copy()
    ledger.renumber(a_list(-1, 3, 0, 2, -1, 1), 8, overlapping(8))
    assert ledger.totals.tolist() == [0, before[5], 0, before[1], 0, 0, 0, 0]
    assert ledger.lists == 3
    assert ledger.group_totals[1] == 0
    ledger.count(a_list(7), time=1000.0)
    ledger.advance(10 * HOUR)
    assert not ledger.totals.any()


def test_a_state_comes_back():
    ledger = Ledger(6, window=HOUR, groups=overlapping())
    for number in range(50):
        items = a_list(number % 6, (number + 1) % 6)
        ledger.advance(100.0 * number)
        ledger.count(items, time=100.0 * number, plain=0.3, event=str(number))
    ledger.merge(ledger.bucket_of(4000.0), "other", SourcePart(a_list(2), np.array([9]), 3, 4, 5))
    other = Ledger(6, window=HOUR, groups=overlapping(), source="next")
    other.restore(ledger.state())
    same(other, ledger)
    assert not other.count(a_list(0), time=ledger.time, event="49")
    assert {source for _, source, part in other.parts() if part.lists} == {"own", "other"}


def test_a_state_of_a_window_of_another_length_loses_only_what_is_too_old():
    ledger = Ledger(6, window=HOUR)
    for number in range(36):
        ledger.advance(100.0 * number)
        ledger.count(a_list(number % 6), time=100.0 * number, event=str(number))
    longer, shorter = Ledger(6, window=7 * HOUR), Ledger(6, window=HOUR / 2)
    longer.restore(ledger.state())
    shorter.restore(ledger.state())
    same(longer, ledger)
    assert 0.4 * ledger.lists < shorter.lists < 0.6 * ledger.lists
    assert not shorter.count(a_list(0), time=3500.0, event="35")


def test_what_changed_is_told_once():
    ledger = Ledger(4, window=HOUR, buckets=4)
    ledger.count(a_list(3, 1), time=1.0)
    ledger.track()
    [(bucket, part)] = ledger.take_changes().items()
    assert (bucket, part.items.tolist(), part.lists) == (0, [1, 3], 1)
    assert ledger.take_changes() == {}
    ledger.count(a_list(3), time=2.0)
    ledger.count(a_list(0), time=1000.0)
    ledger.count(a_list(3), time=3.0)
    changes = ledger.take_changes()
    assert changes[0].items.tolist() == [3]
    assert changes[0].amounts.tolist() == [3 * UNIT]
    assert (changes[0].lists, changes[1].lists) == (3, 1)


def test_a_new_name_keeps_what_was_counted_under_the_old_one():
    ledger = Ledger(4, window=HOUR)
    ledger.track()
    ledger.count(a_list(3), time=1.0)
    ledger.rename("second")
    assert ledger.take_changes() == {}
    ledger.count(a_list(3), time=1.0)
    assert ledger.totals[3] == 2 * UNIT
    parts = {source: part.amounts.tolist() for _, source, part in ledger.parts()}
    assert parts == {"own": [UNIT], "second": [UNIT]}


def test_a_source_whose_clock_is_wrong_is_not_listened_to():
    ledger = Ledger(4, window=HOUR, time=1000.0)
    part = SourcePart(a_list(1), np.array([5]), 1)
    now = ledger.bucket_of(1000.0)
    assert not ledger.merge(now + 3, "other", part)
    assert not ledger.merge(now - 48, "other", part)
    assert ledger.merge(now + 1, "other", part)
    assert ledger.totals[1] == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"window": 1.0, "half_life": 1.0},
        {"window": 0},
        {"window": float("nan")},
        {"half_life": -1.0},
        {"window": 1.0, "buckets": 0},
    ],
)
def test_a_window_must_make_sense(wrong):
    with pytest.raises(ConfigError) as caught:
        Ledger(3, **wrong)
    assert caught.value.hint


def test_pieces_add_up_to_the_whole():
    exposure = np.arange(50) / 7
    pieces = list(spread_evenly(exposure, 123, 48, 1.0))
    whole = np.rint(exposure * UNIT).astype(np.int64)
    np.testing.assert_array_equal(sum(piece.of(ITEMS_OF_50) for piece in pieces), whole)
    assert sum(piece.lists for piece in pieces) == 123
    assert min(piece.amounts.min() for piece in pieces) >= 0


ITEMS_OF_50 = np.arange(50, dtype=np.int32)
LISTS = st.lists(
    st.tuples(
        st.lists(st.integers(-1, 5), min_size=0, max_size=4),
        st.floats(0, 2 * HOUR),
        st.integers(0, 9),
        st.floats(-1, 3),
    ),
    max_size=30,
)


@given(LISTS, st.randoms(use_true_random=False))
@examples(100)
def test_the_order_of_lists_does_not_matter(lists, chance):
    ledgers = []
    for _ in range(2):
        ledger = Ledger(6, window=HOUR, groups=overlapping(), buckets=5, time=2 * HOUR)
        kept = [ledger.count(a_list(*items), time=t, plain=r) for items, t, _, r in lists]
        ledgers.append(ledger)
        assert ledger.lists == sum(kept)
        chance.shuffle(lists)
    same(*ledgers)


@given(LISTS, st.data())
@examples(100)
def test_however_sources_are_merged_the_sums_are_those_of_one_ledger(lists, data):
    def a_ledger(source):
        return Ledger(6, window=HOUR, groups=overlapping(), buckets=5, time=2 * HOUR, source=source)

    whole, replicas = a_ledger("whole"), [a_ledger(name) for name in "abc"]
    reports = []
    for replica in replicas:
        replica.track()
    for items, time, who, relevance in lists:
        whole.count(a_list(*items), time=time, shown=relevance)
        replica = replicas[who % 3]
        replica.count(a_list(*items), time=time, shown=relevance)
        if who > 6:
            reports += [(b, replica.source, part) for b, part in replica.take_changes().items()]
    for replica in replicas:
        reports += [(b, replica.source, part) for b, part in replica.take_changes().items()]
    for replica in replicas:
        order = data.draw(st.permutations(reports * 2)) if reports else []
        for bucket, source, part in order:
            if source != replica.source:
                replica.merge(bucket, source, part)
        same(replica, whole)
    assert MODEL not in {source for _, source, _ in whole.parts()}
