"""Fails or kills commands at every system call that touches an output, and looks at what is left.

A shared object, faults.c, counts the calls below the folder that a command writes to. Each of them
is a point: there the process is killed, or the call fails because the disk is full, broken or not
to be written to. Afterwards every output must be the old one or the new one, whole; a command that
says that it failed must not have done all of its work, and one that says nothing must have.

    python -m tests.reliability.faults --every 1

Commands run in forks of one process that has imported everything. Clocks stand still in them, so
that the same command writes the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import importlib
import itertools
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.reliability.commands import (
    N_LISTS,
    Command,
    commands,
    count_list,
    make_inputs,
    serve_journal,
)

KILL = -1
FAULTS = {"kill": KILL, "full": errno.ENOSPC, "broken": errno.EIO, "forbidden": errno.EACCES}
APPLIES = {"kill": "coswturm", "full": "cswtrm", "broken": "coswturm", "forbidden": "cour" + "m"}
"""Which calls a fault can happen in: create, open, sync, write, truncate, unlink, rename, mkdir."""
WHOLE = {"config.json", "split.json", "exhibit.json", "export.json"}
"""A folder with one of these is one output; of any other, each file is."""
_SECONDS = 120


class Result(NamedTuple):
    """How a run under a fault ended."""

    code: int
    text: str


class Verdict(NamedTuple):
    """What is wrong with what a run has left; nothing, where it is as it should be."""

    bad: str = ""
    state: str = ""


def build(folder: Path) -> Path:
    """Compile the fault injector."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


class Clock:
    """A clock that goes on by as much at each look."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def __call__(self) -> float:
        return 1e9 + next(self._ticks) / 1024


def stop_clocks() -> None:
    """Let time be the same in every run."""
    from limelight.report import exhibit

    class Never(exhibit.datetime):  # type: ignore[misc, name-defined]
        @classmethod
        def now(cls, zone: Any = None) -> Any:
            return cls(2020, 1, 1, tzinfo=zone)

    exhibit.datetime = Never
    time.perf_counter = Clock()
    time.time = Clock()


def in_fork(work: Path, log: Path, run: Any, point: tuple[int, int], trace: Path | None) -> Result:
    """Run something in a fork, in a folder, with a fault at a point: a number and an error."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.chdir(work)
            sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            stop_clocks()
            signal.alarm(_SECONDS)
            file = -1 if trace is None else os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            ctypes.CDLL(None).faults_arm(os.fsencode(work), ctypes.c_long(point[0]), point[1], file)
            run()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return Result(os.waitstatus_to_exitcode(status), log.read_text(errors="replace"))


def outputs(folder: Path, leaves: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read every output that can be seen: a file, or a folder that is one output."""
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith(".checkpoint") or path.name in leaves:
            continue
        if path.is_file():
            found[path.name] = path.read_bytes()
        elif any((path / name).is_file() for name in WHOLE) or _are_parts(path):
            files = sorted(file for file in path.rglob("*") if file.is_file())
            found[path.name] = {str(file.relative_to(path)): file.read_bytes() for file in files}
        else:
            inside = outputs(path, leaves)
            found |= {f"{path.name}/{name}": content for name, content in inside.items()}
    return found


def _are_parts(folder: Path) -> bool:
    files = list(folder.iterdir())
    return bool(files) and all(file.name.startswith("part-") for file in files)


class Trial:
    """A command, the folder that it writes to, and what stands there before and afterwards."""

    def __init__(self, name: str, command: Command, place: Path) -> None:
        self.name, self.command = name, command
        self._inputs, self.folder = place / "inputs", place / "work" / name.replace(" ", "-")
        self.folder.mkdir(parents=True)
        self._log, self._old = self.folder / "log", self.folder / "old"
        self._old.mkdir()
        for name_there, source in command.given.items():
            shutil.copytree(self._inputs / source, self._old / name_there)
        self.work = self.folder / "work"
        if command.before is not None:
            self._whole(command.before)
            shutil.rmtree(self._old)
            shutil.copytree(self.work, self._old)
        self.old = outputs(self._old, command.leaves)
        self.calls = self._whole(command.arguments)
        self.new = outputs(self.work, command.leaves)
        again = self._whole(command.arguments)
        changed = _differing(self.new, outputs(self.work, command.leaves))
        if changed or len(again) != len(self.calls):
            raise SystemExit(f"{name} does not do the same again: {changed}, {len(again)} calls")
        if self.new == self.old:
            raise SystemExit(f"{name} writes what was there before")

    def _whole(self, arguments: list[Any]) -> str:
        """Run a command undisturbed; return the letters of its calls."""
        trace = self.folder / "trace"
        self.reset()
        ended = self.run(arguments, (0, 0), trace)
        if ended.code:
            raise SystemExit(f"{self.name} failed by itself ({ended.code}):\n{ended.text}")
        return trace.read_text().replace("\n", "")

    def reset(self) -> None:
        """Put back what stood there before."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self._old, self.work)

    def run(
        self, arguments: list[Any], point: tuple[int, int], trace: Path | None = None
    ) -> Result:
        """Run a command under a fault."""
        from limelight.cli import main

        given = [str(argument) for argument in arguments]
        return in_fork(self.work, self._log, lambda: main(given), point, trace)

    def at(self, number: int, fault: str) -> Verdict:
        """Let a fault happen at a call, and judge what is left."""
        self.reset()
        ended = self.run(self.command.arguments, (number, FAULTS[fault]))
        return self.judge(ended, fault)

    def judge(self, ended: Result, fault: str) -> Verdict:
        """Say whether everything is old or new, and whether the command says which."""
        found = outputs(self.work, self.command.leaves)
        names = found.keys() | self.old.keys() | self.new.keys()
        strange = [
            name
            for name in sorted(names)
            if found.get(name) not in (self.old.get(name), self.new.get(name))
        ]
        if strange:
            return Verdict(f"neither old nor new: {', '.join(strange)}")
        state = "new" if found == self.new else "old" if found == self.old else "partly new"
        if fault == "kill":
            return Verdict(state=state)
        last, bad = ended.text.strip()[-300:], ""
        if "Traceback" in ended.text or ended.code not in (0, 1):
            bad = f"exit code {ended.code}: {last}"
        elif ended.code == 0 and state != "new":
            bad = f"it says nothing, and its output is {state}"
        elif ended.code == 1 and state == "new":
            bad = f"it is all there: {last}"
        return Verdict(bad, state)

    def goes_on(self) -> Verdict:
        """Run the command once more after a kill: it must come to the same."""
        ended = self.run([*self.command.arguments, *self.command.resume], (0, 0))
        if ended.code:
            return Verdict(f"cannot be repeated after a kill: {ended.text.strip()[-300:]}")
        found = outputs(self.work, self.command.leaves)
        if changed := _differing(found, self.new):
            return Verdict(f"comes to something else after a kill: {changed}")
        left = [path.name for path in self.work.rglob(".*")]
        return Verdict(f"left behind: {left}" if left else "", "new")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Name the outputs in which two runs differ, down to the file."""
    found = []
    for name in sorted(one.keys() | other.keys()):
        ours, theirs = one.get(name), other.get(name)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            found += [f"{name}/{file}" for file in _differing(ours, theirs)]
        elif ours != theirs:
            found.append(name)
    return found


class JournalTrial:
    """A service that counts lists: none that it has told of may be lost, none may count twice."""

    def __init__(self, place: Path) -> None:
        self.name, self.folder = "serve's journal", place / "work" / "journal"
        self.folder.mkdir(parents=True)
        self.work, self._log, self._told = (self.folder / n for n in ("work", "log", "told"))
        trace = self.folder / "trace"
        if self._run((0, 0), trace).code:
            raise SystemExit(f"the journal failed by itself:\n{self._log.read_text()}")
        self.calls = trace.read_text().replace("\n", "")

    def _run(self, point: tuple[int, int], trace: Path | None = None) -> Result:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self._told.write_bytes(b"")
        told = os.open(self._told, os.O_WRONLY | os.O_APPEND)
        try:
            return in_fork(
                self.work,
                self._log,
                lambda: serve_journal(self.work / "ledger", lambda n: os.write(told, bytes([n]))),
                point,
                trace,
            )
        finally:
            os.close(told)

    def at(self, number: int, fault: str) -> Verdict:
        """Let a fault happen at a call, take the journal up again, and compare."""
        from limelight._base.errors import LimelightError
        from limelight.serve.ledger.journal import Journal
        from limelight.serve.ledger.ledger import Ledger

        self._run((number, FAULTS[fault]))
        safe = max(self._told.read_bytes(), default=0)
        last = (self._log.read_text().strip().splitlines() or [""])[-1]
        if "Traceback" in self._log.read_text() and "hint: " not in last:
            return Verdict(f"a traceback: {last}")
        found, expected = Ledger(4, window=86_400.0), Ledger(4, window=86_400.0)
        ids = ["a", "b", "c", "d"]
        try:
            with Journal(self.work / "ledger", found, item_ids=ids, flush_every=1e6):
                pass
        except LimelightError as error:
            return Verdict(f"cannot be taken up: {error}")
        if not safe <= found.lists <= min(safe + 1, N_LISTS):
            return Verdict(f"{found.lists} lists after {safe} were told of")
        for one in range(found.lists):
            count_list(expected, one)
        if found.totals.tolist() != expected.totals.tolist():
            return Verdict("the exposure is not that of the lists")
        return Verdict(state="new" if found.lists == N_LISTS else "old")


def import_all() -> None:
    """Import what commands import, once, because each of them runs in a fork."""
    import limelight

    left_out = ("limelight.lab", "limelight.models.neural", "limelight.cluster.ray")
    for module in pkgutil.walk_packages(limelight.__path__, "limelight."):
        if not module.name.startswith(left_out) and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg", "voyager"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def points(calls: str, every: int, first: int = 0) -> list[tuple[int, str]]:
    """List the points of a command: the number of a call, from 1, and what happens in it."""
    found = [
        (number, fault)
        for number, call in enumerate(calls, start=1)
        for fault, where in APPLIES.items()
        if call in where
    ]
    return found[first % max(every, 1) :: every]


def run(wanted: list[str], every: int, most: int | None = None, tell: Any = print) -> Counter[str]:
    """Try all points of the commands whose names begin so; return how many were bad, by command."""
    bad: Counter[str] = Counter()
    total = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        (place / "inputs").mkdir()
        import_all()
        make_inputs(place / "inputs")
        known: dict[str, Any] = dict(commands(place / "inputs"))
        known["serve's journal"] = None
        for number, (name, command) in enumerate(known.items()):
            if wanted and not any(name.startswith(one) for one in wanted):
                continue
            trial = JournalTrial(place) if command is None else Trial(name, command, place)
            states: Counter[str] = Counter()
            chosen = points(trial.calls, every, first=number)
            chosen = chosen[:: max(1, len(chosen) // most)][:most] if most else chosen
            for turn, (call, fault) in enumerate(chosen):
                verdict = trial.at(call, fault)
                if not verdict.bad and fault == "kill" and turn % 5 == 0 and command is not None:
                    verdict = trial.goes_on()
                states["BAD" if verdict.bad else verdict.state] += 1
                if verdict.bad:
                    bad[name] += 1
                    tell(f"  {name}, call {call} ({trial.calls[call - 1]}), {fault}: {verdict.bad}")
            total += len(chosen)
            tell(f"{name}: {len(trial.calls)} calls, {len(chosen)} points, {dict(states)}")
            shutil.rmtree(trial.folder)
    tell(f"{total} points, {sum(bad.values())} bad")
    return bad


def main() -> None:
    """Start again with the fault injector loaded, and try what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="how the names of commands begin; all if none")
    parser.add_argument("--every", type=int, default=1, help="try every n-th point")
    parser.add_argument("--most", type=int, default=None, help="at most so many points a command")
    given = parser.parse_args()
    if "FAULTS" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = str(build(Path(folder)))
            env = {**os.environ, "LD_PRELOAD": library, "FAULTS": "1", "NO_COLOR": "1"}
            command = [sys.executable, "-m", "tests.reliability.faults", *sys.argv[1:]]
            raise SystemExit(subprocess.run(command, env=env, check=False).returncode)
    os.environ.pop("LD_PRELOAD")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    raise SystemExit(bool(run(given.names, given.every, given.most)))


if __name__ == "__main__":
    main()
