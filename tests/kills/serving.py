"""Kills services under load at random moments, and compares their ledgers with what clients saw.

One process with a journal, then two and four replicas over a Valkey server, which is stopped for a
while and started again, with what it held and empty. Every list has an id. With ``--durable``
nothing that a client was told is counted may be lost; without, a kill costs what was counted since
the last flush and nothing else. Nothing may be counted twice. Meanwhile a target is held.

    python -m tests.kills.serving --kills 200

Services run in forks of one process that has imported everything, so that kills hit the service and
not the imports.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.support.valkey import valkey_server

import limelight as ll
from limelight.cli import main
from limelight.serve import service  # noqa: F401 - so that forks have it
from limelight.serve.http import opening  # noqa: F401
from limelight.serve.ledger.buckets import event_key, place_units
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.replicas.replicas import Replicas
from limelight.serve.replicas.valkey import ValkeyTransport

N_USERS, N_ITEMS, K = 400, 150, 5
SLACK = 1.5
"""What a busy machine may need beyond the seconds between flushes to do one."""
GINI, NEAR = 0.35, 0.02
PAUSE = 0.002
KILLS_WHILE_AWAY = 3


class Nursery:
    """A process without threads that forks services."""

    def __init__(self):
        down, self._orders = os.pipe()
        self._pids, up = os.pipe()
        if not os.fork():
            self._serve(down, up)
        os.close(down)
        os.close(up)

    def _serve(self, orders, pids):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are killed
        os.close(self._orders)
        os.close(self._pids)
        for line in os.fdopen(orders):
            child = os.fork()
            if not child:
                os.close(pids)
                _run(json.loads(line))
            os.write(pids, f"{child}\n".encode())
        os._exit(0)

    def start(self, arguments, log):
        os.write(self._orders, json.dumps([*map(str, arguments), str(log)]).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += os.read(self._pids, 16)
        return int(answer)

    def close(self):
        os.close(self._orders)


def _run(given):
    """Be a service, in a fork."""
    *arguments, log = given
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    code = 70
    try:
        main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class Replica:
    """A service that is killed and started again at the same port."""

    def __init__(self, nursery, arguments, log):
        self._nursery, self._arguments, self.log = nursery, arguments, log
        with socket.create_server(("127.0.0.1", 0)) as place:
            self.port = place.getsockname()[1]
        self.pid, self.life = 0, 0
        self.killed = {}
        """When each life ended."""

    def start(self):
        arguments = ["serve", *self._arguments, "--port", self.port, "--no-log"]
        self.pid = self._nursery.start(arguments, self.log)
        self.life += 1
        while not self._is_ready():
            if not self.is_alive():
                raise SystemExit(f"a service did not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.01)

    def _is_ready(self):
        try:
            return self.ask("GET", "/health/ready") is not None
        except OSError:
            return False

    def is_alive(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self, number):
        self.killed[self.life] = time.monotonic()
        os.kill(self.pid, number)
        while self.is_alive():
            time.sleep(0.005)

    def ask(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            content = None if body is None else json.dumps(body)
            link.request(method, path, content, {"content-type": "application/json"})
            answer = link.getresponse()
            found = answer.read()
            return json.loads(found) if answer.status == 200 else None
        finally:
            link.close()


@dataclass
class Sent:
    """What a client knows of a list."""

    items: list
    replica: int
    life: int
    when: float
    tries: int = 1


@dataclass
class Log:
    """What clients sent, and what they were told is counted."""

    known: dict = field(default_factory=dict)
    unknown: dict = field(default_factory=dict)
    """Sent, and never answered."""
    longest: float = 0.0


class Client(threading.Thread):
    """Sends lists to services, one after the other, until it is stopped.

    Who is not answered asks again with the same id, elsewhere, if ``insists``; otherwise nobody
    knows what became of the list. While replicas cannot tell each other what they counted, one asks
    the same replica again.
    """

    stays = threading.Event()
    """Set while one asks the same replica again."""

    def __init__(self, name, replicas, *, reports, insists, seed):
        super().__init__(daemon=True)
        self.id, self._replicas, self._reports, self._insists = name, replicas, reports, insists
        self._chance, self.log = random.Random(seed), Log()
        self._links, self.stopped = {}, threading.Event()
        self.error = None

    def run(self):
        try:
            for number in itertools.count():
                if self.stopped.wait(PAUSE):
                    break
                self._send_one(f"{self.id}-{number}")
        except BaseException as error:
            self.error = error
        for link in self._links.values():
            link.close()

    def _send_one(self, id_):
        if self._reports:
            items = self._chance.sample(range(N_ITEMS), K)
            path, body = "/v1/shown", {"events": [{"id": id_, "items": items}]}
        else:
            items, path = [], "/v1/recommend"
            body = {"id": id_, "user": self._chance.randrange(N_USERS), "k": K}
        tries, place = 0, None
        while not self.stopped.is_set():
            if place is None or not (tries and self.stays.is_set()):
                place = self._chance.randrange(len(self._replicas))
            life, began = self._replicas[place].life, time.monotonic()
            try:
                answer = self._ask(place, path, body)
            except ConnectionRefusedError:  # it is not sent
                time.sleep(0.005)
                continue
            tries += 1
            sent = Sent(items, place, life, time.monotonic(), tries)
            if answer is not None:
                self.log.longest = max(self.log.longest, sent.when - began)
                sent.items = items or [one["id"] for one in answer["items"]]
                self.log.known[id_] = sent
                self.log.unknown.pop(id_, None)
                return
            self.log.unknown[id_] = sent
            if not self._insists:
                return

    def _ask(self, place, path, body):
        """Return an answer; None if there was none."""
        link = self._links.get(place)
        if link is None:
            port = self._replicas[place].port
            link = self._links[place] = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            link.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            answer = link.getresponse()
            content = answer.read()
        except ConnectionRefusedError:
            link.close()
            raise
        except (OSError, http.client.HTTPException):
            link.close()
            return None
        if answer.status in (429, 503):
            return None
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {content[:500]}")
        return json.loads(content)


@dataclass
class Load:
    """Clients that send to services."""

    clients: list

    @classmethod
    def begin(cls, replicas, *, n_clients, name="c", seed=0, **how):
        clients = [
            Client(f"{name}{number}", replicas, seed=1000 * seed + number, **how)
            for number in range(n_clients)
        ]
        for client in clients:
            client.start()
        return cls(clients)

    def end(self):
        log = Log()
        for client in self.clients:
            client.stopped.set()
            client.join()
            if client.error is not None:
                raise client.error
            log.known |= client.log.known
            log.unknown |= client.log.unknown
            log.longest = max(log.longest, client.log.longest)
        return log

    def n_known(self, place):
        return sum(
            sent.replica == place for c in self.clients for sent in list(c.log.known.values())
        )


# What is compared


def exposure_of(lists, item_numbers):
    totals, places = np.zeros(N_ITEMS, dtype=np.int64), place_units(K)
    for items in lists:
        np.add.at(totals, [item_numbers[item] for item in items], places[: len(items)])
    return totals


def compare(ledger, counted, n_others, item_numbers, *, what):
    """Check that a ledger holds some lists, and of others so many as it says, to the last unit."""
    n_more = ledger.lists - len(counted)
    rest = ledger.totals - exposure_of(counted, item_numbers)
    if not 0 <= n_more <= n_others:
        message = f"{what}: {ledger.lists} lists, of which clients know {len(counted)}"
        raise SystemExit(f"{message} and maybe {n_others} more")
    if (rest < 0).any() or rest.sum() != n_more * place_units(K).sum():
        raise SystemExit(f"{what}: exposure is not that of the lists: {rest.tolist()}")


def refuse_lost(lost, log, replicas, *, at_risk, durable, what):
    """Check that only what the last flush had not written is lost; returns the longest ago."""
    if durable and lost:
        raise SystemExit(f"{what}: lost though durable: {len(lost)}, e.g. {lost[:3]}")
    ages = [0.0]
    for id_ in lost:
        sent = log.known[id_]
        ended = replicas[sent.replica].killed.get(sent.life)
        if ended is None:
            raise SystemExit(f"{what}: lost without a kill: {id_}")
        ages.append(ended - sent.when)
    if max(ages) > at_risk:
        raise SystemExit(f"{what}: lost {max(ages):.2f} s before the kill, above {at_risk} s")
    return max(ages)


class World:
    """A model, a folder, and what starts services."""

    def __init__(self, place, *, flush=1.0, slack=SLACK):
        os.environ["XDG_STATE_HOME"] = str(place / "state")  # where replicas keep journals
        self.place, self.model, self.nursery = place, place / "model", Nursery()
        self.flush, self.at_risk = flush, flush + slack
        self._started = []
        data = ll.marketplace(N_USERS, N_ITEMS, 8000, seed=5).interactions
        fitted = ll.IALS(factors=8, epochs=3, num_threads=1).fit(data)
        fitted.save(self.model)
        assert len(fitted.item_ids) == N_ITEMS
        self.item_ids = fitted.item_ids
        self.numbers = {item: number for number, item in enumerate(fitted.item_ids.tolist())}

    def replica(self, ledger, *more, durable):
        flags = ["--durable"] if durable else []
        arguments = [self.model, "--ledger", ledger, "-k", K, "--flush-every", f"{self.flush:g}s"]
        found = Replica(self.nursery, [*arguments, *flags, *more], self.place / "log")
        self._started.append(found)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """End everything, also after a failure."""
        for replica in self._started:
            if replica.pid and replica.is_alive():
                replica.end(signal.SIGKILL)
        self.nursery.close()


def kill_one(world, kills, *, durable, reports, seed, tell=print):
    """Kill a process with a journal again and again; returns figures."""
    chance, folder = random.Random(seed), world.place / f"ledger-{durable}-{reports}"
    count = "shown" if reports else "served"
    what = f"one process, {count}{', durable' if durable else ''}"
    replica = world.replica(folder, "--window", "1d", "--count", count, durable=durable)
    replica.start()
    load = Load.begin([replica], n_clients=2, reports=reports, insists=reports, seed=seed)
    for number in range(kills):
        time.sleep(chance.uniform(0.0, 1.6 if number % 4 == 0 else 0.4))
        replica.end(signal.SIGKILL)
        replica.start()
    time.sleep(0.3)
    log = load.end()
    replica.end(signal.SIGTERM)
    ledger = Ledger(N_ITEMS, window=86_400.0, time=time.time())
    with Journal(folder, ledger, item_ids=world.item_ids):
        pass
    there = {id_ for id_ in (*log.known, *log.unknown) if event_key(id_) in ledger.events}
    counted = [sent.items for id_, sent in log.known.items() if id_ in there]
    others = sum(id_ in there for id_ in log.unknown)
    lost = [id_ for id_ in log.known if id_ not in there]
    if ledger.lists != len(there):
        raise SystemExit(f"{what}: {ledger.lists} lists of {len(there)} ids")
    compare(ledger, counted, others, world.numbers, what=what)
    at_risk = world.at_risk
    age = refuse_lost(lost, log, [replica], at_risk=at_risk, durable=durable, what=what)
    retried = sum(sent.tries > 1 for sent in log.known.values())
    tell(
        f"{what}: {kills} kills, {len(log.known):,} lists acknowledged, {len(lost)} lost "
        f"(the oldest {age:.2f} s before its kill), {retried} sent again, "
        f"{len(log.unknown)} of which nobody knows, none counted twice"
    )
    return Counter(kills=kills, known=len(log.known), lost=len(lost))


def kill_replicas(world, n_replicas, kills, away, *, durable, keeps, seed, tell=print):
    """Kill replicas, and the server that they share; returns figures."""
    chance = random.Random(seed)
    what = f"{n_replicas} replicas{', durable' if durable else ''}"
    with valkey_server(keeps=keeps) as server:
        replicas = [
            world.replica(
                server.url, "--window", "1d", "--count", "shown", durable=durable
            )
            for _ in range(n_replicas)
        ]  # fmt: skip
        for replica in replicas:
            replica.start()
        load = Load.begin(replicas, n_clients=3, reports=True, insists=durable, seed=seed)
        for number in range(kills):
            if number == kills // 2:
                doomed = chance if durable else None
                stop_server(server, replicas, load, away, world.flush, doomed=doomed, what=what)
            time.sleep(chance.uniform(0.0, 0.8))
            replica = chance.choice(replicas)
            replica.end(signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 0.5))
            replica.start()
        time.sleep(0.5)
        log = load.end()
        for replica in replicas:
            replica.end(signal.SIGTERM)
        ledger = read_shared(server.url, world)
    kills += KILLS_WHILE_AWAY if durable else 0
    lists, most = int(ledger.lists), len(log.known) + len(log.unknown)
    lost = max(len(log.known) - lists, 0)
    if lists > most:
        raise SystemExit(f"{what}: {lists} lists, and clients sent {most}")
    if durable:
        counted = [sent.items for sent in log.known.values()]
        compare(ledger, counted, len(log.unknown), world.numbers, what=what)
    else:
        sent = [one.items for one in (*log.known.values(), *log.unknown.values())]
        if (ledger.totals > exposure_of(sent, world.numbers)).any():
            raise SystemExit(f"{what}: an item has more exposure than clients gave it")
        at_risk = sum(is_at_risk(sent, replicas, world) for sent in log.known.values())
        if lost > at_risk:
            raise SystemExit(f"{what}: lost {lost}, and the last flushes had only {at_risk}")
    retried = sum(sent.tries > 1 for sent in log.known.values())
    tell(
        f"{what}: {kills} kills, a server that was {away:g} s away and came back "
        f"{'as it was' if keeps else 'empty'}, {len(log.known):,} lists acknowledged, {lost} lost, "
        f"{retried} sent again, {len(log.unknown)} of which nobody knows, "
        f"{'none counted twice' if durable else 'no item above what was sent'}; the longest answer "
        f"took {log.longest:.2f} s"
    )
    return Counter(kills=kills, known=len(log.known), lost=lost)


def is_at_risk(sent, replicas, world):
    """Tell whether a list was counted so shortly before a kill that it may be lost."""
    ended = replicas[sent.replica].killed.get(sent.life)
    return ended is not None and ended - sent.when < world.at_risk


def stop_server(server, replicas, load, seconds, flush, *, doomed, what):
    """Stop the server for a while; answers must go on, and all must come back to it.

    Replicas are killed meanwhile, too, if chance is given: those that keep a journal.
    """
    settle(replicas, flush)
    Client.stays.set()
    server.stop()
    before = [load.n_known(place) for place in range(len(replicas))]
    time.sleep(seconds)
    silent = [p for p, n in enumerate(before) if load.n_known(p) <= n]
    if silent:
        raise SystemExit(f"{what}: while the server was away, no answers came from {silent}")
    noted = [len(replica.ask("GET", "/v1/exposure")["notes"]) for replica in replicas]
    if not all(noted):
        raise SystemExit(f"{what}: a server that is away is not told of: {noted}")
    for _ in range(KILLS_WHILE_AWAY if doomed else 0):
        replica = doomed.choice(replicas)
        replica.end(signal.SIGKILL)
        replica.start()
        time.sleep(doomed.uniform(0.0, 0.5))
    server.start()
    settle(replicas, flush)
    Client.stays.clear()


def settle(replicas, flush):
    """Wait until all have heard of each other, of those that were killed, too."""
    time.sleep(3 * flush)
    while any(replica.ask("GET", "/v1/exposure")["notes"] for replica in replicas):
        time.sleep(0.1)
    time.sleep(8 * flush)


def read_shared(url, world):
    """Read the ledger as one more process would."""
    ledger = Ledger(N_ITEMS, window=86_400.0, time=time.time())
    transport = ValkeyTransport(
        url, namespace=world.model.name, width=ledger.width, n_buckets=ledger.n_buckets
    )
    with Replicas(ledger, transport, item_ids=world.item_ids) as shared:
        if shared.error is not None:
            raise shared.error
    return ledger


def hold_target(world, n_replicas, kills, *, seed, tell=print):
    """Kill replicas that hold a target; returns how far they are from it."""
    chance = random.Random(seed)
    with valkey_server() as server:
        replicas = [
            world.replica(
                server.url, "--window", "10m", "--count", "served", "--gini", GINI, durable=False
            )
            for _ in range(n_replicas)
        ]  # fmt: skip
        for replica in replicas:
            replica.start()
        load = Load.begin(replicas, n_clients=3, reports=False, insists=False, seed=seed)
        time.sleep(60)  # a window that begins to fill cannot be as even
        errors = []
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 2.0))
            replica = chance.choice(replicas)
            replica.end(signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 1.0))
            replica.start()
            errors += [r.ask("GET", "/v1/exposure")["gini"] - GINI for r in replicas]
        load.end()
        for replica in replicas:
            replica.end(signal.SIGTERM)
    worst, typical = float(np.abs(errors).max()), float(np.mean(np.abs(errors)))
    tell(
        f"{n_replicas} replicas hold a Gini of {GINI}: {kills} kills, off by {typical:.4f} in the "
        f"mean and {worst:.4f} at worst"
    )
    if worst > NEAR:
        raise SystemExit(f"the target was missed by {worst:.4f}, above {NEAR}")
    return worst


def run(kills, away, seed, tell=print):
    """Do all of it."""
    with tempfile.TemporaryDirectory() as temporary, World(Path(temporary)) as world:
        for durable in (False, True):
            kill_one(world, kills, durable=durable, reports=True, seed=seed, tell=tell)
        kill_one(world, kills // 4, durable=True, reports=False, seed=seed, tell=tell)
        for n_replicas in (2, 4):
            for durable, keeps in ((False, False), (True, True), (True, False)):
                kill_replicas(
                    world, n_replicas, kills // 5, away, durable=durable, keeps=keeps, seed=seed,
                    tell=tell,
                )  # fmt: skip
            hold_target(world, n_replicas, kills // 10, seed=seed, tell=tell)
    tell("every ledger whole, nothing counted twice, nothing lost that was promised")


def run_a_little(seed, tell=print):
    """Do some of it, in seconds, whatever the load of the machine is."""
    # How long before a kill something was counted that is lost, is not looked at: tests assert no
    # times.
    how = {"flush": 0.2, "slack": float("inf")}
    with tempfile.TemporaryDirectory() as temporary, World(Path(temporary), **how) as world:
        for durable in (False, True):
            kill_one(world, 2, durable=durable, reports=True, seed=seed, tell=tell)
        kill_replicas(world, 2, 2, 0.5, durable=True, keeps=False, seed=seed, tell=tell)
    tell("every ledger whole, nothing counted twice, nothing lost that was promised")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--away", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--little", action="store_true")
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    if given.little:
        run_a_little(given.seed)
    else:
        run(given.kills, given.away, given.seed)
