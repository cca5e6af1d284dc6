"""Replicas over a real Valkey server, which is stopped, emptied and killed, as they are."""

import os
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.support.places import ROOT
from tests.support.valkey import valkey_server

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight.serve import ServeSettings
from limelight.serve.http.opening import open_arms
from limelight.serve.ledger.buckets import UNIT
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.ledger.parts import new_source
from limelight.serve.replicas import valkey as module
from limelight.serve.replicas.journaled import JournaledReplicas, journal_beside
from limelight.serve.replicas.replicas import Replicas
from limelight.serve.replicas.reports import Report
from limelight.serve.replicas.valkey import ValkeyTransport, public_address

IDS = ["a", "b", "c", "d"]
NOW, WINDOW, BUCKETS = 1e9, 1000.0, 4
WIDTH = WINDOW / BUCKETS
ENOUGH = 8
"""After so many rounds, what was lost was told again."""


@pytest.fixture(scope="module")
def server():
    with valkey_server() as found:
        yield found


@pytest.fixture
def name():
    return new_source()


class Group:
    """Processes that share a name on a server, by hand: no thread does it."""

    def __init__(self, url, name):
        self.url, self.name, self.open = url, name, []

    def transport(self, **more):
        return ValkeyTransport(
            self.url, namespace=self.name, width=WIDTH, n_buckets=BUCKETS, **more
        )

    def join(self, ledger=None, **more):
        ledger = a_ledger() if ledger is None else ledger
        given = {"item_ids": IDS, "every": 1e6} | more
        self.open.append(Replicas(ledger, self.transport(), **given))
        return self.open[-1]

    def kill(self, replica):
        """Let go of a process without a word, as a kill does."""
        replica._ended.set()
        replica._thread.join()
        replica.transport.close()
        self.open.remove(replica)

    def exchange(self, rounds=1):
        for _ in range(rounds):
            for replica in self.open:
                replica.flush()
                replica._exchange(at_once=True)
                replica.flush()

    def agree(self, lists):
        for replica in self.open:
            assert replica.error is None
            assert replica.ledger.lists == lists
            assert replica.ledger.totals.tolist() == self.open[0].ledger.totals.tolist()


@pytest.fixture
def group(server, name):
    found = Group(server.url, name)
    yield found
    for replica in found.open:
        replica.close()


def a_ledger(time=NOW):
    return Ledger(4, window=WINDOW, buckets=BUCKETS, time=time)


def count(replica, *items, time=NOW, event=None):
    items = np.array(items, dtype=np.int32)
    return replica.ledger.count(items, time=time, plain=0.5, shown=0.25, event=event)


@pytest.mark.parametrize("n_replicas", [2, 4])
def test_all_come_to_the_exact_sum(group, n_replicas):
    truth, chance = a_ledger(), np.random.default_rng(n_replicas)
    for _ in range(n_replicas):
        group.join()
    for _ in range(60):
        replica = group.open[chance.integers(n_replicas)]
        items, time = chance.integers(0, 4, 3), NOW - chance.uniform(0, 2 * WIDTH)
        count(replica, *items, time=time)
        truth.count(items.astype(np.int32), time=time, plain=0.5, shown=0.25)
        replica.flush()
        if chance.random() < 0.4:
            group.open[chance.integers(n_replicas)]._exchange()
    group.exchange(2)
    group.agree(60)
    for replica in group.open:
        assert replica.ledger.totals.tolist() == truth.totals.tolist()
        assert (replica.ledger.plain, replica.ledger.shown) == (truth.plain, truth.shown)


def test_news_are_small_and_hashes_are_read_only_where_news_are_missed(group, monkeypatch):
    one, two = group.join(), group.join()
    read = []
    whole = module.ValkeyTransport._whole
    monkeypatch.setattr(
        module.ValkeyTransport, "_whole", lambda self, hs: (read.extend(hs), whole(self, hs))[1]
    )
    for _ in range(5):
        count(one, 0)
        count(two, 1)
        group.exchange()
    assert not read
    group.exchange()
    one.transport._client.delete(one.transport._key("news"))
    for _ in range(2):
        count(one, 0)
        one.flush()
        one._exchange()
        one.transport._client.delete(one.transport._key("news"))
    group.exchange()
    assert len(read) == 1
    group.agree(12)


def test_a_write_whose_answer_was_lost_hides_nothing(group):
    one, two = group.join(), group.join()
    pipeline, client = one.transport._client.pipeline, one.transport._client

    class Cut:
        """A connection that is cut after the server has done it."""

        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def execute(self):
            self.inner.execute()
            raise OSError("cut")

    count(one, 0)
    one.flush()
    client.pipeline = lambda **how: Cut(pipeline(**how))
    one._exchange()
    assert "cut" in one.error.message
    client.pipeline = pipeline
    two._exchange()  # hears of the first attempt
    two.flush()
    assert two.ledger.lists == 1
    count(one, 1)
    group.exchange(2)
    group.agree(2)
    assert two.ledger.totals.tolist() == [UNIT, UNIT, 0, 0]


def test_a_process_that_was_killed_leaves_what_it_had_written(group):
    one, two = group.join(), group.join()
    count(one, 0)
    group.exchange()
    count(one, 1)
    one.flush()
    group.kill(one)
    three = group.join()
    count(three, 2)
    group.exchange(2)
    group.agree(2)
    assert two.ledger.totals.tolist() == [UNIT, 0, UNIT, 0]


def test_what_was_durable_and_never_announced_is_found(group):
    two, one = group.join(), group.join(durable=True)
    count(one, 0, event="x")
    one.flush()
    group.kill(one)
    three = group.join(durable=True)
    assert three.ledger.lists == 1
    three.learn(["x"])
    assert not count(three, 0, event="x")
    group.exchange(3)
    group.agree(1)
    # Also where some of it was announced.
    count(three, 1)
    group.exchange()
    count(three, 1)
    three.flush()
    group.kill(three)
    group.exchange(3)
    assert two.ledger.lists == 3


@pytest.mark.parametrize("has_journal", [True, False])
def test_a_process_comes_back_with_and_without_its_journal(group, tmp_path, has_journal):
    ledger = a_ledger()
    journal = Journal(tmp_path, ledger, item_ids=IDS, flush_every=1e6, durable=True)
    one, two = group.join(ledger), group.join()
    count(one, 0)
    group.exchange()
    count(one, 1)
    journal.flush()
    one.flush()
    group.kill(one)
    journal._ended.set()
    journal._thread.join()
    journal._let_go()
    ledger = a_ledger()
    if has_journal:
        journal = Journal(tmp_path, ledger, item_ids=IDS, flush_every=1e6)
    group.join(ledger)
    group.exchange(ENOUGH)
    group.agree(2 if has_journal else 1)
    journal.close() if has_journal else None
    assert two.ledger.totals.tolist() == [UNIT, UNIT if has_journal else 0, 0, 0]


@pytest.mark.parametrize("keeps", [True, False])
def test_a_server_that_was_away_gets_everything_again(keeps, name):
    with valkey_server(keeps=keeps) as server:
        group = Group(server.url, name)
        one, two, three = (group.join(durable=True) for _ in range(3))
        for replica in group.open:
            count(replica, 0, time=NOW - WIDTH)
            count(replica, 1)
        group.exchange(2)
        group.agree(6)
        group.kill(three)
        server.stop()
        for replica in group.open:
            count(replica, 2)
            replica.flush()
            assert "cannot be used" in replica.error.message
            assert "a kill of this process loses" in replica.status()["notes"][1]
        server.start()
        for replica in group.open:
            count(replica, 3)
        group.exchange(ENOUGH)
        late = group.join()
        group.exchange()
        group.agree(10)
        assert late.ledger.totals.tolist() == [3 * UNIT, 3 * UNIT, 2 * UNIT, 2 * UNIT]
        assert one.status()["notes"] == two.status()["notes"] == []
        for replica in group.open:
            replica.close()


def test_a_server_that_hangs_and_does_late_what_it_was_told(name):
    with valkey_server() as server:
        group = Group(server.url, name)
        one, two = group.join(durable=True), group.join()
        for replica in group.open:
            replica.transport._client.connection_pool.connection_kwargs["socket_timeout"] = 0.2
            replica.transport._client.connection_pool.disconnect()
        count(one, 0)
        group.exchange()
        os.kill(server.process.pid, signal.SIGSTOP)
        for item in (1, 1, 2):
            count(one, item)
            one._not_before = 0.0  # without a rest, so that more attempts wait in the server
            one.flush()
            assert "imeout" in one.error.message
        os.kill(server.process.pid, signal.SIGCONT)
        group.exchange(ENOUGH)
        group.agree(4)
        assert two.ledger.totals.tolist() == [UNIT, 2 * UNIT, UNIT, 0]
        for replica in group.open:
            replica.close()


def test_sums_that_an_old_message_put_back_are_told_again(group):
    one, two = group.join(), group.join()
    count(one, 0)
    group.exchange()
    client, transport = one.transport._client, one.transport
    [told] = transport._own
    old = {key: client.dump(transport._key(key)) for key in (str(told), "index")}
    count(one, 0)
    count(one, 1)
    group.exchange()
    for key, content in old.items():
        client.restore(transport._key(key), 0, content, replace=True)
    count(one, 2)
    group.exchange(3)
    late = group.join()
    group.agree(4)
    assert late.ledger.totals.tolist() == two.ledger.totals.tolist() == [2 * UNIT, UNIT, UNIT, 0]


def test_a_connection_that_the_server_closed_costs_nothing(group):
    one = group.join(durable=True)
    group.transport()._client.client_kill_filter(_type="normal", skipme=True)
    count(one, 0)
    one.flush()
    assert one.error is None
    assert group.join().ledger.lists == 1


def test_a_server_that_drops_single_hashes_gets_them_again(group):
    one, two, three = group.join(), group.join(), group.join()
    for replica in group.open:
        count(replica, 0)
        count(replica, 0, time=NOW - WIDTH)
    group.exchange(2)
    group.kill(three)
    client = one.transport._client
    for key in client.scan_iter(match=f"*{{{group.name}*:1:4*", count=1000):
        client.delete(key)
    group.exchange(module._AUDIT + ENOUGH)
    late = group.join()
    group.exchange()
    group.agree(6)
    assert late.ledger.lists == two.ledger.lists == 6


def test_everything_expires(group):
    one = group.join(durable=True)
    one.write_state({"strength": 0.5})
    count(one, 0, event="x")
    group.exchange()
    client = one.transport._client
    found = {key: client.pttl(key) for key in client.scan_iter(match=f"*{group.name}*")}
    assert len(found) == 6  # a hash, the index, the news, events, the state, the format
    assert all(0 < left <= 1000 * max(WIDTH * (BUCKETS + 2), 1200) for left in found.values())
    assert group.join().read_state() == {"strength": 0.5}


def test_the_index_forgets_and_a_wrong_clock_does_not_empty_it(group):
    now = float(group.transport()._client.time()[0])
    one = group.join(a_ledger(now))
    count(one, 0, time=now)
    group.exchange()
    ahead = group.join(a_ledger(now + 10 * WINDOW))
    ahead._exchange(at_once=True)
    count(one, 1, time=now)
    one.flush()
    one._exchange()
    assert group.join(a_ledger(now)).ledger.lists == 2
    old = group.join(a_ledger(now - 5 * WINDOW))
    count(old, 0, time=now - 5 * WINDOW)
    old.flush()
    old._exchange(at_once=True)
    index = one.transport._client.hgetall(one.transport._key("index"))
    assert len(index) == 2
    one._exchange(at_once=True)
    assert len(one.transport._client.hgetall(one.transport._key("index"))) == 1


def test_processes_of_another_format_are_told_of(group, monkeypatch):
    one = group.join()
    group.exchange(2)
    assert one.status()["notes"] == []
    monkeypatch.setattr(module, "_FORMAT", 2)
    two = group.join()
    count(two, 0)
    two.flush()
    two._exchange()
    two._exchange()
    monkeypatch.undo()
    one._exchange()
    one.flush()
    assert one.ledger.lists == 0
    assert "another version of limelight" in one.status()["notes"][0]


@pytest.mark.parametrize("password", ["secret", "se/cr?et", "se@cret"])
def test_a_wrong_password_is_an_error_without_the_password(password, name):
    with valkey_server() as server:
        server.client().config_set("requirepass", "another one")
        group = Group(f"{server.url}?password={password}", name)
        one = group.join(durable=True)
        count(one, 0)
        one.flush()
        assert one.ledger.lists == 1
        assert "password" in one.error.message
        assert password not in f"{one.error}{one.status()}{one.error.hint}"
        one.close()
        right = Group(f"{server.url}?password=another one", name).join(durable=True)
        assert right.error is None
        right.close()


@pytest.mark.parametrize("url", ["redis://me:se?cret@host/0", "redis://host/0?password=a@cret"])
def test_no_part_of_a_password_is_in_an_address(url):
    assert "cret" not in public_address(url)


@pytest.mark.parametrize("url", ["redis://:cret@host:x/0", "redis://:cret@host/0?strange=cret"])
def test_an_address_that_cannot_be_is_refused_without_its_password(url):
    with pytest.raises(ConfigError, match="not the address of a server: redis://host") as caught:
        ValkeyTransport(url, namespace="", width=1.0, n_buckets=1)
    assert "cret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("url", "told"),
    [("http://me:secret@host", "'http'"), ("me:secret@host", "no scheme"), ("", "no scheme")],
)
def test_another_kind_of_address_is_refused(url, told):
    with pytest.raises(ConfigError, match=told) as caught:
        public_address(url)
    assert "secret" not in str(caught.value)


RUBBISH = [
    b"",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"+OK\r\n",
    b"*-1\r\n" * 50,
    b":1\r\n" * 50,
    bytes(range(256)) * 20,
]


@pytest.mark.parametrize("answer", RUBBISH, ids=range(len(RUBBISH)))
def test_a_server_that_answers_rubbish_is_a_server_that_is_away(answer, name):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.2)
                try:
                    while connection.recv(1 << 16) and answer:
                        connection.sendall(answer)
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        group = Group(f"redis://127.0.0.1:{listener.getsockname()[1]}/0", name)
        one = Replicas(
            a_ledger(), group.transport(timeout=0.3), item_ids=IDS, every=1e6, durable=True
        )
        count(one, 0)
        one.flush()
        one.learn(["x"])
        one._exchange(at_once=True)
        assert one.ledger.lists == 1
        assert isinstance(one.error, DataError)
        one.close()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize(
    ("field", "value"),
    [("lists", -1), ("lists", "x"), ("i:a", 1 << 63), ("i:a", -5), ("plain", "1" * 40)],
)
def test_sums_that_cannot_be_are_not_added(group, field, value):
    one, two = group.join(), group.join()
    count(one, 0)
    one.flush()
    one._exchange()
    client = one.transport._client
    [key] = client.scan_iter(match=f"*{group.name}*:1:4*", count=1000)
    client.hset(key, field, value)
    three = group.join()
    assert three.ledger.lists == 0
    assert "cannot be used" in three.error.message
    two._exchange()  # which heard of it by the news
    two.flush()
    assert two.ledger.lists == 1


@pytest.mark.parametrize("news", [b"{", b"[]", b'["x",[[1]],[]]', b'["x",[],[[1]]]', b"null"])
def test_news_that_cannot_be_are_an_error(group, news):
    one = group.join()
    client = one.transport._client
    client.xadd(one.transport._key("news"), {"news": news})
    one._exchange()
    assert "cannot be used" in one.error.message


def test_keys_of_another_kind_are_an_error(group):
    one = group.join()
    one.transport._client.set(one.transport._key("index"), "something")
    one._exchange()
    assert "WRONGTYPE" in one.error.message
    one.transport._client.delete(one.transport._key("index"))


def test_a_large_report_goes_in_portions(group, monkeypatch):
    monkeypatch.setattr(module, "_FIELDS", 7)
    transport, reader = group.transport(), group.transport()
    amounts = {str(item): item + 1 for item in range(100)}
    transport.write([Report(4, "x", amounts, 3, 2, 1)], [], announce=True)
    [report] = reader.read(0).reports
    assert report == Report(4, "x", amounts, 3, 2, 1)


def test_addresses_with_options_are_read_as_any(group):
    group.url += "?decode_responses=True&protocol=3"
    one, two = group.join(), group.join()
    count(one, 0)
    group.exchange(2)
    assert two.ledger.lists == 1


def a_durable_one(group, tmp_path):
    ledger = a_ledger()
    journal = journal_beside(tmp_path, group.url, ledger, item_ids=IDS, flush_every=1e6)
    replica = group.join(ledger, durable=True)
    return replica, journal, JournaledReplicas(replica, journal)


def crash(group, replica, journal):
    group.kill(replica)
    journal._ended.set()
    journal._thread.join()
    journal._let_go()


def test_with_a_journal_beside_a_kill_while_the_server_is_away_loses_nothing(tmp_path, name):
    with valkey_server() as server:
        group = Group(server.url, name)
        other = group.join()
        replica, journal, both = a_durable_one(group, tmp_path)
        count(replica, 0, event="x")
        both.flush(NOW)
        assert not journal.durable, "what the server has need not be on disk"
        server.stop()
        count(replica, 1, event="y")
        both.flush(NOW)
        assert journal.durable
        assert both.status()["notes"] == [replica.error.message]
        crash(group, replica, journal)
        replica, journal, both = a_durable_one(group, tmp_path)
        assert replica.ledger.lists == 2
        assert not count(replica, 1, event="y")
        count(replica, 2)
        both.flush(NOW)
        crash(group, replica, journal)
        server.start()
        replica, journal, both = a_durable_one(group, tmp_path)
        both.write_state({"strength": 0.5})
        group.exchange(ENOUGH)
        group.agree(3)
        assert other.ledger.totals.tolist() == [UNIT, UNIT, UNIT, 0]
        replica.ledger.renumber(np.array([3, 2, 1, 0], dtype=np.int32), 4)
        both.renumbered(IDS[::-1])
        both.learn(["z"])
        both.close()
        group.open.remove(replica)
        replica, journal, both = a_durable_one(group, tmp_path)
        assert replica.ledger.lists == 3
        assert both.read_state() == {"strength": 0.5}
        both.close()
        other.close()


def test_processes_take_a_journal_each_and_one_of_another_server_is_not_taken(tmp_path):
    places = []
    for address in ("redis://a", "redis://a", "redis://b"):
        journal = journal_beside(
            tmp_path / "model", address, a_ledger(), item_ids=IDS, flush_every=1e6
        )
        places.append(journal)
    one, two, other = (journal.folder for journal in places)
    assert (one.name, two.name, other.name) == ("replica-0", "replica-1", "replica-0")
    assert one.parent == two.parent != other.parent
    for journal in places:
        journal.close()


def test_a_durable_service_keeps_a_journal_if_it_can(tmp_path, monkeypatch, server):
    data = ll.marketplace(100, 30, 1000, seed=8).interactions
    ll.IALS(factors=4, epochs=1, num_threads=1).fit(data).save(tmp_path / "model")
    given = {"ledger": server.url, "k": 5, "durable": True}
    settings = ServeSettings({new_source(): str(tmp_path / "model")}, **given)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    [arm] = open_arms(settings).values()
    assert isinstance(arm.keeper, JournaledReplicas)
    arm.keeper.close()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    [arm] = open_arms(settings).values()
    assert "no journal beside the ledger: cannot write" in arm.keeper.status()["start_notes"][1]
    arm.keeper.close()


def test_what_a_fit_had_shown_counts_once_for_all_replicas(tmp_path, name):
    data = ll.marketplace(300, 60, 4000, seed=8).interactions
    model = ll.IALS(factors=8, epochs=2, num_threads=1)
    fitted = ll.fit_to(data, gini=0.5, at=5, model=model, serve="stream", show_progress=False)
    fitted.model.save(tmp_path / name)
    with valkey_server() as server:
        settings = ServeSettings({"model": str(tmp_path / name)}, ledger=server.url, k=5)
        [one] = open_arms(settings).values()
        n_lists = one.ledger.lists
        assert n_lists > 0
        one.keeper.close()
        [two] = open_arms(settings).values()
        assert two.ledger.lists == n_lists
        two.keeper.close()
        server.stop()
        [three] = open_arms(settings).values()
        assert three.ledger.lists == 0
        server.start()
        three.keeper.close()


COUNTING = """
import sys, itertools
import numpy as np
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.replicas.replicas import Replicas
from limelight.serve.replicas.valkey import ValkeyTransport
url, name, who = sys.argv[1:]
ledger = Ledger(4, window=1000.0, buckets=4, time=1e9)
transport = ValkeyTransport(url, namespace=name, width=ledger.width, n_buckets=4)
replicas = Replicas(ledger, transport, item_ids=list("abcd"), every=0.05, durable=True)
for number in itertools.count():
    ledger.count(np.array([number % 4], dtype=np.int32), time=1e9, event=f"{who}-{number}")
    replicas.flush()
    print(number + 1, flush=True)
"""


def test_what_real_processes_acknowledged_before_a_kill_is_there(group):
    command = [sys.executable, "-c", COUNTING, group.url, group.name]
    known = most = 0
    children = [
        subprocess.Popen([*command, str(who)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for who in range(2)
    ]
    for child in children:
        for _ in range(30):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        told = child.communicate()[0].split()
        known += max(30, int(told[-1]) if told else 0)
        most += 1
    one = group.join()
    assert known <= one.ledger.lists <= known + most
