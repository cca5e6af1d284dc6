"""Processes that share a ledger: whatever is lost, repeated or late, all come to the exact sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from limelight._base.errors import DataError
from limelight.serve.ledger.buckets import UNIT
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.ledger import MODEL, Ledger
from limelight.serve.ledger.parts import new_source
from limelight.serve.replicas import replicas as module
from limelight.serve.replicas.replicas import Replicas
from limelight.serve.replicas.reports import ReplicaNews
from limelight.serve.replicas.staleness import lists_at_same_prices

IDS = ["a", "b", "c", "d"]
NOW, WINDOW, BUCKETS = 1e9, 1000.0, 4
WIDTH = WINDOW / BUCKETS


class Shelf:
    """What processes put down for each other, in memory."""

    def __init__(self):
        self.kept, self.letters, self.events, self.state = {}, [], [], None


class Memory:
    """A transport whose failures a test decides on: which letters come, and which writes fail."""

    def __init__(self, shelf):
        self.shelf, self.name, self.picks, self.fails = shelf, new_source(), None, None
        self.wrote, self.lost, self.notes, self.n_writes = set(), set(), (), 0
        self.forget()

    def forget(self):
        self.is_first = True

    def close(self):
        pass

    def known_events(self, keys):
        if self.fails:
            raise DataError("away")
        return {key for _, key in self.shelf.events if key in keys}

    def write(self, reports, events, *, announce, state=None):
        if self.fails == "before":
            raise DataError("away")
        self.n_writes += bool(reports)
        for report in reports:
            place = (report.pair, self.name)
            known = self.shelf.kept.get(place)
            if known is None and report.pair in self.wrote:
                self.lost.add(report.pair)
            self.shelf.kept[place] = report.copy() if known is None else known.updated(report)
            self.shelf.letters.append((self.name, report.copy()))
            self.wrote.add(report.pair)
        self.shelf.events += events
        self.shelf.state = state or self.shelf.state
        if self.fails == "after":
            raise DataError("nobody knows")

    def read(self, oldest):
        if self.fails:
            raise DataError("away")
        shelf, others = self.shelf, []
        whole = frozenset()
        if self.is_first or self.picks is None:
            others = [report.copy() for (_, name), report in shelf.kept.items()]
            whole = frozenset(pair for pair, _ in shelf.kept)
        else:
            letters = [report.copy() for name, report in shelf.letters if name != self.name]
            others = [letters[pick % len(letters)] for pick in self.picks if letters]
        found = {pair for pair, name in shelf.kept if name == self.name}
        state = shelf.state if self.is_first else None
        lost = self.lost | (self.wrote - found)
        self.is_first, self.lost = False, set()
        return ReplicaNews(
            [report for report in others if report.bucket >= oldest],
            list(shelf.events),
            whole=frozenset(pair for pair in whole if pair[0] >= oldest),
            present=frozenset(pair for pair, _ in shelf.kept),
            lost=frozenset(pair for pair in lost if pair[0] >= oldest),
            state=state,
            notes=self.notes,
        )


def a_list(*items):
    return np.array(items, dtype=np.int32)


def a_ledger(time=NOW, n_items=4):
    return Ledger(n_items, window=WINDOW, buckets=BUCKETS, time=time)


def share(shelf, ledger=None, *, transport=None, **more):
    """Share a ledger, by hand: the thread never does it."""
    ledger = a_ledger() if ledger is None else ledger
    given = {"item_ids": IDS, "every": 1e6} | more
    OPEN.append(Replicas(ledger, transport or Memory(shelf), **given))
    return OPEN[-1]


OPEN = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPEN:
        OPEN.pop().close()


def exchange(*replicas, rounds=1):
    """Have every process write, read and take in, as its thread and its owner would."""
    for _ in range(rounds):
        for replica in replicas:
            replica.flush()
            replica._exchange(at_once=True)
            replica.flush()


def count(replica, *items, time=NOW, event=None):
    return replica.ledger.count(a_list(*items), time=time, plain=0.5, shown=0.25, event=event)


def same(one, other):
    assert one.totals.tolist() == other.totals.tolist()
    assert (one.lists, one.plain, one.shown) == (other.lists, other.plain, other.shown)


def agree(*replicas, lists):
    for replica in replicas:
        same(replica.ledger, replicas[0].ledger)
        assert replica.ledger.lists == lists


def test_each_has_what_all_counted():
    shelf = Shelf()
    one, two, three = (share(shelf) for _ in range(3))
    count(one, 0, 1)
    count(two, 1)
    exchange(one, two, three)
    count(three, 3, time=NOW - WIDTH)
    exchange(one, two, three, rounds=2)
    agree(one, two, three, lists=3)
    assert one.ledger.totals.tolist()[1:] == [round(UNIT / np.log2(3)) + UNIT, 0, UNIT]


def test_nothing_is_told_twice_and_nothing_is_told_that_did_not_change():
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    for _ in range(5):
        count(one, 0)
        exchange(one, two)
    exchange(one, two, rounds=20)
    assert (one.transport.n_writes, two.transport.n_writes) == (5, 0)
    agree(one, two, lists=5)


ACTIONS = st.one_of(
    st.tuples(st.just("count"), st.integers(0, 2), st.lists(st.integers(0, 3), max_size=4)),
    st.tuples(st.just("flush"), st.integers(0, 2), st.none()),
    st.tuples(
        st.just("exchange"), st.integers(0, 2), st.none() | st.lists(st.integers(0, 99), max_size=5)
    ),
    st.tuples(st.just("fail"), st.integers(0, 2), st.sampled_from(["before", "after"])),
    st.tuples(st.just("clock"), st.integers(0, 2), st.floats(0.0, 3 * WIDTH)),
    st.tuples(st.just("restart"), st.integers(0, 2), st.none()),
    st.tuples(st.just("turn"), st.integers(0, 2), st.none()),
    st.tuples(st.just("wipe"), st.just(0), st.none()),
)


class Trio:
    """Three processes, each with a clock and a catalogue of its own."""

    def __init__(self):
        self.shelf, self.clocks, self.counted = Shelf(), [NOW] * 3, []
        self.orders = [list(IDS) for _ in range(3)]
        self.replicas = [share(self.shelf) for _ in range(3)]

    def do(self, action, who, more):
        self.replicas[who].ledger.advance(self.clocks[who])
        getattr(self, action)(who, self.replicas[who], more)

    def count(self, who, replica, items):
        numbers = a_list(*(self.orders[who].index(IDS[item]) for item in items))
        replica.ledger.count(numbers, time=self.clocks[who])
        self.counted.append((items, self.clocks[who]))

    def flush(self, who, replica, _):
        replica.flush()

    def clock(self, who, replica, seconds):
        self.clocks[who] += seconds

    def wipe(self, who, replica, _):
        self.shelf.kept.clear()

    def turn(self, who, replica, _):
        """Go on with the same items in another order."""
        replica.flush()
        self.orders[who].reverse()
        replica.ledger.renumber(a_list(3, 2, 1, 0), 4)
        replica.renumbered(self.orders[who])

    def restart(self, who, replica, _):
        replica.close()
        OPEN.remove(replica)
        ledger = a_ledger(self.clocks[who])
        self.replicas[who] = share(self.shelf, ledger, item_ids=self.orders[who])

    def exchange(self, who, replica, picks, fails=None):
        replica.transport.picks, replica.transport.fails = picks, fails
        replica._exchange(at_once=True)
        replica.transport.picks = replica.transport.fails = None

    def fail(self, who, replica, fails):
        self.exchange(who, replica, None, fails)


@examples(300)
@given(st.lists(ACTIONS, max_size=40))
def test_whatever_is_lost_repeated_or_late_all_come_to_the_exact_sum(actions):
    trio = Trio()
    for action in actions:
        trio.do(*action)
    end = max(trio.clocks)
    truth = a_ledger(end)
    for items, time in trio.counted:
        truth.count(a_list(*items), time=time)
    for replica in trio.replicas:
        replica.ledger.advance(end)
    exchange(*trio.replicas, rounds=2 * module._PATIENCE + 2)
    for replica, order in zip(trio.replicas, trio.orders, strict=True):
        found = dict(zip(order, replica.ledger.totals.tolist(), strict=True))
        assert [found[item] for item in IDS] == truth.totals.tolist()
        assert replica.ledger.lists == truth.lists
        replica.close()
    OPEN.clear()


def test_a_process_that_was_killed_loses_what_it_had_not_written(tmp_path):
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    count(one, 0)
    exchange(one, two)
    count(one, 1)  # and is killed
    again = share(shelf)
    count(again, 2)
    exchange(again, two, rounds=2)
    agree(again, two, lists=2)
    assert two.ledger.totals.tolist() == [UNIT, 0, UNIT, 0]


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_journal_and_the_others_may_each_know_more(tmp_path, is_told_first):
    shelf, ledger = Shelf(), a_ledger()
    journal = Journal(tmp_path, ledger, item_ids=IDS, flush_every=1e6, durable=True)
    one, two = share(shelf, ledger), share(shelf)
    for first in (True, False):
        count(one, 0)
        if first == is_told_first:
            exchange(one)
        else:
            journal.flush()
    journal._ended.set()
    journal._thread.join()
    journal._let_go()  # as a kill does
    ledger = a_ledger()
    with Journal(tmp_path, ledger, item_ids=IDS, flush_every=1e6):
        again = share(shelf, ledger)
        count(again, 0)
        exchange(again, two, rounds=2 * module._PATIENCE)
        agree(again, two, lists=3)


def test_journals_of_single_processes_can_be_shared_later(tmp_path):
    shelf, replicas = Shelf(), []
    for number in range(2):
        ledger = a_ledger()
        with Journal(tmp_path / str(number), ledger, item_ids=IDS):
            ledger.count(a_list(number), time=NOW)
        ledger = a_ledger()
        with Journal(tmp_path / str(number), ledger, item_ids=IDS):
            replicas.append(share(shelf, ledger))
    exchange(*replicas, rounds=2 * module._PATIENCE)
    agree(*replicas, lists=2)


def test_an_item_that_comes_back_gets_what_it_had():
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    count(one, 3)
    one.flush()
    one.ledger.renumber(a_list(0, 1, 2, -1), 3)
    one.renumbered(IDS[:3])
    count(one, 0)
    exchange(one, two)
    assert two.ledger.totals.tolist() == [UNIT, 0, 0, UNIT]
    one.flush()
    one.ledger.renumber(a_list(0, 1, 2), 4)
    one.renumbered(IDS)
    count(one, 3)
    exchange(one, two, rounds=2)
    agree(one, two, lists=3)
    assert one.ledger.totals.tolist() == [UNIT, 0, 0, 2 * UNIT]


def test_a_reload_without_a_flush_loses_only_items_that_are_gone():
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    count(one, 3, 0)
    one.ledger.renumber(a_list(-1, 2, 1, 0), 3)
    one.renumbered(["d", "c", "b"])
    exchange(one, two)
    assert two.ledger.totals.tolist() == [0, 0, 0, UNIT]
    assert two.ledger.lists == 1


def test_processes_may_have_different_catalogues():
    shelf = Shelf()
    one = share(shelf, a_ledger(n_items=2), item_ids=[2, 1])
    two = share(shelf, a_ledger(n_items=3), item_ids=["1", "2", "3"])
    count(one, 0)
    count(two, 2)
    exchange(one, two, rounds=2)
    assert one.ledger.totals.tolist() == [UNIT, 0]
    assert two.ledger.totals.tolist() == [0, UNIT, UNIT]
    assert one.ledger.lists == two.ledger.lists == 2


def test_what_a_model_had_shown_is_told_once_for_all():
    shelf = Shelf()
    one = share(shelf)
    one.ledger.start_from(np.array([8.0, 0, 0, 0]), 8, time=NOW)
    exchange(one, rounds=2 * module._PATIENCE)
    two = share(shelf)
    assert two.ledger.lists == 8
    assert {source for _, source in shelf.kept} == {one.transport.name}
    assert {source for (_, source), _ in shelf.kept} == {MODEL}


def test_an_event_counts_once_wherever_it_is_reported():
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    assert count(one, 0, event="x")
    exchange(one, two)
    assert not count(two, 0, event="x")
    three = share(shelf)
    assert not count(three, 0, event="x")


def test_with_durable_an_event_is_known_at_once():
    shelf = Shelf()
    one, two = share(shelf, durable=True), share(shelf, durable=True)
    assert count(one, 0, event="x")
    one.flush()
    two.learn(["x", "y", None])
    assert not count(two, 0, event="x")
    assert count(two, 0, event="y")
    two.transport.fails = "before"
    two.learn(["z"])  # nobody can say
    assert count(two, 0, event="z")
    assert two.error is not None
    late = share(shelf)
    late.transport.fails = "before"
    late.learn(["x"])  # without durable it does not ask
    assert late.error is None


def test_with_durable_it_is_there_when_flush_returns():
    shelf = Shelf()
    one = share(shelf, durable=True)
    count(one, 0)
    one.flush()
    assert share(shelf).ledger.lists == 1


def test_a_clock_that_is_ahead_loses_nothing():
    shelf = Shelf()
    ahead, two = share(shelf, a_ledger(NOW + 3 * WIDTH)), share(shelf)
    count(ahead, 0, time=NOW + 3 * WIDTH)
    exchange(ahead, two)
    assert two.ledger.lists == 0
    assert two.status()["notes"] == ["the clock of another process is ahead: 750 s"]
    two.ledger.advance(NOW + 2 * WIDTH)
    two.flush()
    assert two.ledger.lists == 1
    assert two.status()["notes"] == []


def test_a_ledger_without_a_clock_takes_in_what_is_there_once_it_has_one():
    shelf = Shelf()
    one = share(shelf)
    count(one, 0)
    exchange(one)
    two = share(shelf, a_ledger(0.0))
    two.ledger.advance(NOW)
    two.flush()
    assert two.ledger.lists == 1


def test_what_left_the_window_is_not_told_any_more():
    shelf = Shelf()
    one = share(shelf)
    count(one, 0)
    one.flush()
    one.ledger.advance(NOW + 2 * WINDOW)
    exchange(one, rounds=8)
    assert not shelf.kept


def test_a_thread_does_it_all():
    shelf = Shelf()
    with share(shelf, every=0.001) as one, share(shelf, every=0.001) as two:
        for number in range(50):
            count(one if number % 2 else two, number % 4)
            one.flush()
            two.flush()
        while one.ledger.lists < 50 or two.ledger.lists < 50:
            one.flush()
            two.flush()
    same(one.ledger, two.ledger)
    one.close()  # a second time


def test_much_is_written_in_portions(monkeypatch):
    monkeypatch.setattr(module, "_MOST_AT_A_TIME", 3)
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    for number in range(3):
        count(one, 0, 1, 2, 3, time=NOW - number * WIDTH)
    exchange(one, two)
    assert one.transport.n_writes == 6
    agree(one, two, lists=3)


def test_much_that_was_lost_is_told_in_the_course_of_several_readings(monkeypatch):
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    for number in range(3):
        count(one, 0, 1, time=NOW - number * WIDTH)
    exchange(one, two)
    monkeypatch.setattr(module, "_MOST_AT_A_TIME", 1)
    shelf.kept.clear()
    exchange(one)
    assert len(shelf.kept) < 3
    exchange(one, two, rounds=8)
    assert len({pair for pair, _ in shelf.kept}) == 3
    agree(one, two, lists=3)


def test_a_transport_may_not_know_what_is_there():
    shelf = Shelf()
    one = share(shelf)
    one.ledger.start_from(np.array([8.0, 0, 0, 0]), 8, time=NOW)
    read = one.transport.read
    one.transport.read = lambda oldest: read(oldest)._replace(present=None)
    count(one, 1)
    exchange(one, rounds=3 * module._PATIENCE)
    assert {source for (_, source), _ in shelf.kept} == {one.ledger.source}
    one.transport.read = read


def test_a_fault_in_what_others_told_does_not_end_the_thread():
    shelf = Shelf()
    one, two = share(shelf), share(shelf)
    count(one, 0)
    exchange(one)
    kept, shelf.kept = shelf.kept, {1: 2}  # no such thing can be unpacked
    two._exchange(at_once=True)
    assert "cannot be read" in two.error.message
    shelf.kept = kept
    exchange(two)
    agree(one, two, lists=1)
    assert two.error is None


def test_while_others_are_away_it_rests_longer_and_longer(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    one = share(Shelf())
    one.transport.fails = "before"
    attempts = []
    write = one.transport.write
    one.transport.write = lambda *a, **k: (attempts.append(clock[0]), write(*a, **k))
    while clock[0] < 60:
        one._exchange()
        clock[0] += 0.01
    rests = np.diff(attempts)
    assert rests[0] < 0.2
    assert 2.4 < rests[-1] < 7.6
    assert len(attempts) < 30


def test_status_says_how_old_the_news_is_and_what_is_wrong(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    shelf = Shelf()
    one = share(shelf, every=1.0, durable=True)
    one.transport.notes = ("something to know",)
    one._exchange()
    one.flush()
    clock[0] = 2.5
    # 2 % of 20 places among 500 candidates, of a window of 1000 s.
    assert one.staleness_bound() == pytest.approx(0.8)
    assert one.status()["stale_seconds"] == 2.5
    assert one.status()["notes"] == ["something to know"]
    one.transport.fails = "before"
    one._exchange()
    clock[0] = 40.0
    assert one.status()["notes"] == [
        "something to know",
        "away",
        "until then, a kill of this process loses what it counts",
        "figures of other processes are older than 0.8 s: 40 s old",
    ]
    never = Memory(shelf)
    never.fails = "before"
    other = share(shelf, transport=never, every=1.0)
    assert other.status()["stale_seconds"] is None
    assert other.status()["notes"][-1].endswith("older than 0.8 s: nothing was heard")


def test_status_says_that_the_clock_is_wrong():
    one = share(Shelf())
    one.flush(NOW - 2 * WINDOW)
    assert "clock is before" in one.status()["notes"][0]


def test_the_start_says_how_old_prices_may_become():
    shelf = Shelf()
    often, rarely = share(shelf, every=0.5), share(shelf, every=1.0)
    said = "shares its ledger every 0.5 s; prices may be 0.8 s old"
    assert often.status()["start_notes"] == [said]
    assert rarely.start_note().endswith("0.8 s old: write more often, or take a longer window")


def test_the_bound_follows_lists_groups_and_traffic():
    assert lists_at_same_prices(0, 20, 500) == 1
    assert lists_at_same_prices(1e6, 20, 10) == 20_000
    assert lists_at_same_prices(1e6, 20, 500, n_groups=100) == 500
    one = share(Shelf())
    assert one.staleness_bound(rate=100.0) == pytest.approx(0.01)


def test_what_is_kept_beside_the_sums_is_found_by_the_next():
    shelf = Shelf()
    with share(shelf) as one:
        assert one.read_state() is None
        one.write_state({"strength": 0.5})
    assert share(shelf).read_state() == {"strength": 0.5}
    for rubbish in ("{", "[]", "[" * 100_000):
        shelf.state = rubbish
        assert share(shelf).read_state() is None


def test_a_state_that_could_not_be_written_is_written_later():
    shelf = Shelf()
    one = share(shelf)
    one.write_state({"strength": 0.5})
    one.transport.fails = "before"
    one._exchange(at_once=True)
    one.transport.fails = None
    one._exchange(at_once=True)
    assert share(shelf).read_state() == {"strength": 0.5}
