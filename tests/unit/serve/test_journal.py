"""A ledger on disk: whatever is cut off, damaged or full, it is whole, and counts nothing twice."""

import errno
import os
import shutil

import numpy as np
import pytest

from limelight._base.errors import ConfigError, DataError
from limelight.serve.ledger import journal as journals
from limelight.serve.ledger.buckets import UNIT
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.journal_files import (
    SNAPSHOT,
    STATE,
    FileHead,
    free_folder,
    load_snapshot,
    read_journal,
    save_snapshot,
)
from limelight.serve.ledger.ledger import Ledger

IDS = ["a", "b", "c", "d"]
DAY = 86_400.0


def a_list(*items):
    return np.array(items, dtype=np.int32)


def a_ledger(n_items=4, window=DAY):
    return Ledger(n_items, window=window)


def open_journal(folder, ledger, **more):
    """Open a journal whose thread never writes, so that a test says when that is done."""
    return Journal(folder, ledger, **{"item_ids": IDS, "flush_every": 1e6, "durable": True} | more)


def fill(ledger, start, stop):
    for number in range(start, stop):
        items = a_list(number % 4, (number + 1) % 4, -1)
        ledger.advance(1e9 + number)
        ledger.count(items, time=1e9 + number, plain=0.1, shown=0.2, event=str(number))


def crash(journal):
    """Leave a journal as a kill would: nothing is written any more."""
    journal._ended.set()
    journal._thread.join()
    journal._let_go()
    journal.ledger.witness = None


def same(one, other):
    assert one.totals.tolist() == other.totals.tolist()
    assert (one.lists, one.plain, one.shown) == (other.lists, other.plain, other.shown)


def reopened(folder, **more):
    ledger = a_ledger()
    with open_journal(folder, ledger, **more) as journal:
        return ledger, journal


def only_journal(folder):
    [path] = folder.glob("journal-*.log")
    return path


def test_what_was_flushed_survives_and_what_was_not_is_lost(tmp_path):
    ledger, expected = a_ledger(), a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 20)
    journal.flush()
    fill(expected, 0, 20)
    fill(ledger, 20, 25)
    crash(journal)
    found, again = reopened(tmp_path)
    same(found, expected)
    assert again.notes == ["taken up from the journal: 20 lists"]
    assert not found.count(a_list(0), time=found.time, event="19")
    assert found.count(a_list(0), time=found.time, event="20")


def test_without_durable_a_thread_flushes(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger, durable=False, flush_every=0.001)
    fill(ledger, 0, 20)
    journal.flush()
    while len(read_journal(only_journal(tmp_path)).records) < 20:
        os.sched_yield()
    crash(journal)
    same(reopened(tmp_path)[0], ledger)


def test_a_closed_journal_has_everything(tmp_path):
    ledger = a_ledger()
    with open_journal(tmp_path, ledger, durable=False):
        fill(ledger, 0, 9)
    fill(ledger, 9, 12)  # after the end, nobody takes notice
    found, journal = reopened(tmp_path)
    assert found.lists == 9
    journal.close()  # a second time


def test_wherever_a_journal_is_cut_off_a_prefix_of_the_lists_is_found(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path / "whole", ledger)
    fill(ledger, 0, 6)
    journal.flush()
    crash(journal)
    path = only_journal(tmp_path / "whole")
    content, size = path.read_bytes(), len(path.read_bytes())
    ends = [size - 56 * left for left in range(6, -1, -1)]
    for cut in [*range(0, 30, 7), *range(ends[0] - 3, size + 1, 5), *ends]:
        shutil.copytree(tmp_path / "whole", tmp_path / "cut")
        (tmp_path / "cut" / path.name).write_bytes(content[:cut])
        expected = a_ledger()
        fill(expected, 0, sum(end <= cut for end in ends[1:]))
        found, again = reopened(tmp_path / "cut")
        same(found, expected)
        is_torn = cut not in ends and cut > 0
        assert any("unfinished" in note for note in again.notes) == is_torn
        shutil.rmtree(tmp_path / "cut")


def test_zeros_at_the_end_are_what_a_power_cut_leaves(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 6)
    journal.flush()
    crash(journal)
    with only_journal(tmp_path).open("ab") as file:
        file.write(bytes(5000))
    same(reopened(tmp_path)[0], ledger)


def test_a_damaged_record_before_others_is_an_error_that_says_where(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 6)
    journal.flush()
    crash(journal)
    path = only_journal(tmp_path)
    content = path.read_bytes()
    for place in (1, 5, 9, 40):  # the mark, the checksum, the length, the items
        at = len(content) - 3 * 56
        path.write_bytes(content[: at + place] + b"\xff" + content[at + place + 1 :])
        with pytest.raises(DataError, match=f"{path.name}.*byte {at:,}") as caught:
            reopened(tmp_path)
        assert "move it away" in caught.value.hint
    path.unlink()
    assert reopened(tmp_path)[0].lists == 0


def test_a_second_process_is_refused(tmp_path):
    with open_journal(tmp_path, a_ledger()):
        with pytest.raises(DataError, match="another process") as caught:
            open_journal(tmp_path, a_ledger())
        assert "redis://" in caught.value.hint
    reopened(tmp_path)


def test_processes_that_share_a_place_take_a_folder_each(tmp_path):
    first = free_folder(tmp_path)
    with open_journal(first, a_ledger()):
        second = free_folder(tmp_path)
        assert (first.name, second.name) == ("replica-0", "replica-1")
    assert free_folder(tmp_path) == first


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="something else"):
        open_journal(tmp_path, a_ledger())
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file"):
        open_journal(tmp_path / "file", a_ledger())


def test_a_newer_version_is_refused(tmp_path):
    with open_journal(tmp_path, a_ledger()):
        pass
    path = only_journal(tmp_path)
    newer = FileHead(9, "own", 1800.0, "x", version=99).to_bytes()
    path.write_bytes(newer)
    with pytest.raises(DataError, match="newer version"):
        reopened(tmp_path)
    path.write_bytes(b"something else\n")
    with pytest.raises(DataError, match="not a file of a ledger"):
        reopened(tmp_path)
    path.write_bytes(b"x" * 5000)
    with pytest.raises(DataError, match="not a file of a ledger"):
        reopened(tmp_path)


def test_a_long_journal_becomes_a_snapshot(tmp_path):
    ledger, expected = a_ledger(), a_ledger()
    journal = open_journal(tmp_path, ledger, most_bytes=600)
    for start in range(0, 300, 10):
        fill(ledger, start, start + 10)
        journal.flush()
        assert len(list(tmp_path.glob("journal-*.log"))) <= 3
    journal._saving.join()
    stored = load_snapshot(tmp_path)
    assert stored.head.generation > 1
    crash(journal)
    fill(expected, 0, 300)
    found, _ = reopened(tmp_path)
    same(found, expected)
    assert len(list(tmp_path.glob("journal-*.log"))) == 1


def test_a_kill_between_a_new_journal_and_its_snapshot_counts_nothing_twice(tmp_path, monkeypatch):
    ledger, copies = a_ledger(), []

    def copy():
        copies.append(tmp_path / f"kill-{len(copies)}")
        shutil.copytree(tmp_path / "a", copies[-1])

    def save(*parts):
        copy()
        save_snapshot(*parts)
        copy()  # the old journal is not deleted yet

    journal = open_journal(tmp_path / "a", ledger, most_bytes=600)
    monkeypatch.setattr(journals, "save_snapshot", save)
    for start in range(0, 60, 5):
        fill(ledger, start, start + 5)
        journal.flush()
        if journal._saving:
            journal._saving.join()
    crash(journal)
    monkeypatch.undo()
    found = [reopened(place)[0] for place in copies]
    assert len(found) >= 6
    for one in found:
        expected = a_ledger()
        fill(expected, 0, one.lists)
        same(one, expected)
    assert [one.lists for one in found] == sorted(one.lists for one in found)
    assert found[0].lists > 0


def test_a_chain_of_journals_without_its_snapshot_is_read_in_order(tmp_path, monkeypatch):
    ledger, expected = a_ledger(), a_ledger()
    journal = open_journal(tmp_path, ledger, most_bytes=600)

    def full(*_):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(journals, "save_snapshot", full)
    for start in range(0, 100, 10):
        fill(ledger, start, start + 10)
        journal.flush()
        if journal._saving:
            journal._saving.join()
    journal.flush()
    assert "No space left" in str(journal.error)
    assert len(list(tmp_path.glob("journal-*.log"))) > 3
    crash(journal)
    monkeypatch.undo()
    fill(expected, 0, 100)
    same(reopened(tmp_path)[0], expected)


def test_another_catalogue_gets_what_its_items_had(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 5)
    with open_journal(tmp_path / "beside", a_ledger()):
        pass
    journal.flush()
    crash(journal)
    other = a_ledger(3)
    with open_journal(tmp_path, other, item_ids=["d", "new", "a"]) as again:
        assert other.totals.tolist() == [ledger.totals[3], 0, ledger.totals[0]]
        assert other.lists == 5
        assert "the catalogue has changed; 2 items are gone" in again.notes
    back = a_ledger()
    with open_journal(tmp_path, back):
        assert back.totals.tolist() == [ledger.totals[0], 0, 0, ledger.totals[3]]


def test_integers_and_their_spelling_are_the_same_items(tmp_path):
    ledger = a_ledger(2)
    with open_journal(tmp_path, ledger, item_ids=np.array([7, 8])):
        ledger.count(a_list(1), time=1e9)
    other = a_ledger(2)
    with open_journal(tmp_path, other, item_ids=["8", "9"]):
        assert other.totals.tolist() == [UNIT, 0]


def test_without_ids_another_catalogue_is_refused(tmp_path):
    with open_journal(tmp_path, a_ledger(4), item_ids=None):
        pass
    with pytest.raises(DataError, match="4 items"):
        open_journal(tmp_path, a_ledger(5), item_ids=None)
    with pytest.raises(ConfigError, match="2 ids"):
        open_journal(tmp_path, a_ledger(5), item_ids=["a", "b"])


def test_a_reload_is_kept_at_once(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 5)
    ledger.renumber(a_list(2, 1, 0, -1), 3)
    journal.renumbered(["c", "b", "a"])
    ledger.count(a_list(0), time=ledger.time)
    journal.flush()
    crash(journal)
    found = a_ledger(3)
    with open_journal(tmp_path, found, item_ids=["c", "b", "a"]):
        same(found, ledger)


def test_what_a_model_had_shown_is_kept_with_the_next_list(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    ledger.start_from(np.array([1.0, 2.0, 0.0, 0.5]), 10, time=1e9)
    ledger.count(a_list(2), time=1e9)
    ledger.count(a_list(3), time=1e9)
    journal.flush()
    crash(journal)
    same(reopened(tmp_path)[0], ledger)


def test_another_window_takes_over_what_is_not_too_old(tmp_path):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)
    fill(ledger, 0, 5)
    journal.flush()
    crash(journal)
    other = Ledger(4, window=7 * DAY)
    with open_journal(tmp_path, other):
        same(other, ledger)
    halving = Ledger(4, half_life=DAY)
    with open_journal(tmp_path, halving):
        assert halving.lists == pytest.approx(5)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_on_a_full_or_broken_disk_counting_goes_on(tmp_path, monkeypatch, number):
    ledger = a_ledger()
    journal = open_journal(tmp_path / "a", ledger)
    fill(ledger, 0, 5)
    journal.flush()
    write = os.write

    def half(file, content):
        if len(content) > 20:
            return write(file, bytes(content[:20]))
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", half)
        for start in range(5, 50, 5):
            fill(ledger, start, start + 5)
            journal.flush()
            assert os.strerror(number) in str(journal.error)
            assert journal.error.hint
        shutil.copytree(tmp_path / "a", tmp_path / "kill")
    assert reopened(tmp_path / "kill")[0].lists == 5
    journal.flush()
    assert journal.error is None
    crash(journal)
    same(reopened(tmp_path / "a")[0], ledger)


def test_a_disk_that_takes_nothing_for_long_costs_no_memory(tmp_path, monkeypatch):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger, most_bytes=600)

    def full(*_):
        raise OSError(errno.ENOSPC, "")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        for start in range(0, 200, 10):
            fill(ledger, start, start + 10)
            journal.flush()
            assert len(journal._buffer) < 3000
    journal.flush()
    assert journal.error is None
    crash(journal)
    same(reopened(tmp_path)[0], ledger)


def test_a_folder_that_cannot_be_written_is_found_at_the_start(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DataError, match="No space left"):
        open_journal(tmp_path, a_ledger())
    monkeypatch.undo()
    reopened(tmp_path)


def test_a_damaged_snapshot_is_an_error(tmp_path):
    with open_journal(tmp_path, a_ledger()) as journal:
        fill(journal.ledger, 0, 9)
    content = (tmp_path / SNAPSHOT).read_bytes()
    for cut in (0, 9, len(content) // 2, len(content) - 1):
        (tmp_path / SNAPSHOT).write_bytes(content[:cut])
        with pytest.raises(DataError) as caught:
            reopened(tmp_path)
        assert SNAPSHOT in str(caught.value)
    (tmp_path / SNAPSHOT).unlink()
    with pytest.raises(DataError, match="is gone"):
        reopened(tmp_path)


def test_seconds_between_flushes_must_make_sense(tmp_path):
    with pytest.raises(ConfigError, match="above 0"):
        open_journal(tmp_path, a_ledger(), flush_every=0)


def test_what_holds_the_target_is_kept_beside_the_lists(tmp_path):
    with open_journal(tmp_path, a_ledger()) as journal:
        assert journal.read_state() is None
        journal.write_state({"strength": 0.5})
    _, again = reopened(tmp_path)
    assert again.read_state() == {"strength": 0.5}
    assert again.status() == {"notes": [], "start_notes": []}


def test_a_thread_writes_what_holds_the_target_when_it_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "_STATE_EVERY", 0.0)
    journal = open_journal(tmp_path, a_ledger(), durable=False, flush_every=0.001)
    for strength in (0.1, 0.2):
        journal.write_state({"strength": strength})
        while journal.read_state() != {"strength": strength}:
            os.sched_yield()
    crash(journal)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert reopened(tmp_path)[1].read_state() == {"strength": 0.2}


@pytest.mark.parametrize("damaged", ["", "{", "[]", "null", "[" * 100_000, "\x00"])
def test_a_damaged_state_is_left_out_with_a_note(tmp_path, damaged):
    reopened(tmp_path)
    (tmp_path / STATE).write_text(damaged)
    _, again = reopened(tmp_path)
    assert again.read_state() is None
    [note] = again.status()["start_notes"]
    assert "state.json was left out" in note


def test_status_says_that_the_clock_is_wrong(tmp_path):
    ledger = a_ledger()
    with open_journal(tmp_path, ledger) as journal:
        fill(ledger, 0, 1)
        journal.flush(1e9)
        assert journal.status()["notes"] == []
        journal.flush(1e9 - 2 * DAY)
        assert "clock is before" in journal.status()["notes"][0]


def test_status_says_what_is_not_on_disk(tmp_path, monkeypatch):
    ledger = a_ledger()
    journal = open_journal(tmp_path, ledger)

    def full(*_):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(journals, "write_all", full)
    fill(ledger, 0, 1)
    journal.flush()
    (tmp_path / STATE).mkdir()  # nothing can be put in its place
    journal.write_state({"strength": 0.5})
    journal._state.write()
    lists, state = journal.status()["notes"]
    assert lists.startswith("The ledger could not be written: cannot write")
    assert state.startswith("The state of the target could not be written: cannot write")
    monkeypatch.undo()
    (tmp_path / STATE).rmdir()
    journal.close()
    assert journal.status()["notes"] == []


def test_every_ledger_of_a_folder_has_a_name_of_its_own(tmp_path):
    one, two = a_ledger(), a_ledger()
    with open_journal(tmp_path / "a", one), open_journal(tmp_path / "b", two):
        assert one.source != two.source
    assert reopened(tmp_path / "a")[0].source == one.source
