"""A log of requests answered again, offline, under a target: what would have happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.documents import Table
from limelight._base.errors import DataError, LimelightError
from limelight._base.progress import progress_bar
from limelight._base.text import count, moves, percent, price
from limelight.data.columns import TimeColumn, join, scan
from limelight.data.ids import IdColumn, positions
from limelight.data.names import need_column
from limelight.data.sources import TableSource, describe, open_parts, require_column
from limelight.data.times import shown
from limelight.serve.control import RequestControl
from limelight.serve.engine import Engine
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.requests import Request
from limelight.serve.start import start_of
from limelight.serve.targets.holder import LEAST, TargetHolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups
    from limelight.data.sources import Source
    from limelight.models.recommender import Recommender
    from limelight.serve.targets.goal import ServedGoal
    from limelight.serve.targets.history import WindowPoint
    from limelight.serve.targets.status import TargetStatus

_AT_ONCE = 32
"""How many requests are answered at the same exposure, at most; so is a thousandth of a window."""
_STEPS = 100
"""Of the progress bar."""
_NEAR = 0.01


class RequestLog(NamedTuple):
    """Who asked, and when, in seconds since 1970, the earliest first."""

    users: list[Any]
    times: Float64
    was_sorted: bool = True


def read_requests(
    source: Source, *, user: str | None = None, timestamp: str | None = None
) -> RequestLog:
    """Read a log of requests: a column of users, and one of times.

    Parameters
    ----------
    source
        A file, a folder of parts or a frame. Other columns are not looked at.
    user, timestamp
        Names of the columns; unless given, they are found under the usual names.

    Examples
    --------
    >>> log = read_requests(pa.table({"user": ["b", "a"], "time": [20, 10]}))
    >>> log.users, log.times, log.was_sorted
    (['a', 'b'], array([10., 20.]), False)
    """
    parts = open_parts(source)
    for name in (user, timestamp):
        if name is not None:
            require_column(parts[0], name)
    users = IdColumn(user or need_column(source, parts, "user", of="timestamp"))
    time_format = source.time_format if isinstance(source, TableSource) else None
    times = TimeColumn(timestamp or need_column(source, parts, "timestamp"), time_format)
    codes, values = join(scan(parts, [users, times]))
    seconds, ids = times.seconds(values), users.ids().to_pylist()
    order = np.argsort(seconds, kind="stable")
    if seconds[order[0]] == seconds[order[-1]] and len(order) > 1:
        message = f"all requests of {describe(parts)} have the same time: {shown(seconds[0])}"
        raise DataError(message, hint="name the column of times with timestamp='...'")
    was_sorted = bool((np.diff(seconds) >= 0).all())
    return RequestLog([ids[code] for code in codes[order].tolist()], seconds[order], was_sorted)


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """What a log of requests would have come to under a target."""

    goal: ServedGoal
    look_back: dict[str, float]
    """The window, or the half-life, in seconds."""
    status: TargetStatus
    """At the end."""
    n_requests: int
    n_failed: int
    """Requests that could not be answered."""
    span: tuple[float, float]
    """The first and the last time."""
    notes: tuple[str, ...] = field(default=())

    @property
    def points(self) -> tuple[WindowPoint, ...]:
        """What the window had over time."""
        return self.status.history

    @property
    def warm_up(self) -> float:
        """In how many seconds the ledger fills: one window, or three half-lives."""
        return self.look_back.get("window") or 3 * self.look_back["half_life"]

    @property
    def settled(self) -> tuple[WindowPoint, ...]:
        """The points after the ledger was filled."""
        return tuple(point for point in self.points if point.time >= self.span[0] + self.warm_up)

    def sentences(self) -> list[str]:
        """Say in plain words what would have happened."""
        start, end = (shown(time) for time in self.span)
        log = f"{count(self.n_requests, 'request')} from {start} to {end}, asked for {self.goal}."
        measured, settled = self.status.measure, self.settled
        if measured is None:
            return [log, "That is too few requests to measure anything."]
        plain = self.status.gini_plain
        gini = f"is {measured.gini:.3f}" if plain is None else f"{moves(plain, measured.gini)}"
        said = [
            f"With control, the Gini index of exposure {gini} at the end of the log, and "
            f"{percent(measured.coverage)} of the items are shown.",
            f"{price(measured.loss, 'the relevance', digits=2)}, at strength "
            f"{self.status.strength:.3g}.",
            log,
        ]
        if not settled:
            name = "window" if "window" in self.look_back else "time in which the ledger fills"
            said.append(
                f"The log is no longer than the {name}, so it cannot show whether the target "
                "would hold."
            )
        elif self.goal.gini is not None:
            # Strength cannot make exposure less even than plain lists are.
            off = np.array(
                [
                    0.0 if point.strength <= LEAST * 1.001 else abs(point.gini - self.goal.gini)
                    for point in settled
                ]
            )
            share = percent(float(np.mean(off <= _NEAR)), 0)
            said.append(
                f"Once the ledger was filled, the Gini index was within {_NEAR:g} of the target "
                f"{share} of the time, and at most {off.max():.3f} away."
            )
        if self.status.accounts:
            first = self.status.accounts[0]
            where = "Farthest beyond" if first.outside > 0 else "Nearest to"
            said.append(f"{where} its bound: {first.group!r} with {percent(first.share, 2)}.")
        return [*said, *self.status.notes, *self.notes]

    def table(self) -> pa.Table:
        """Return the points as a table: time, gini, coverage, loss, strength."""
        columns = list(zip(*self.points, strict=True)) or [()] * 5
        names = ("time", "gini", "coverage", "loss", "strength")
        return pa.table({n: pa.array(c, pa.float64()) for n, c in zip(names, columns, strict=True)})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        status = self.status.to_dict()
        del status["history"]
        return status | {
            "asked": status.pop("target"),
            **{f"{name}_seconds": seconds for name, seconds in self.look_back.items()},
            "requests": self.n_requests,
            "failed": self.n_failed,
            "first": self.span[0],
            "last": self.span[1],
            "notes": [*self.status.notes, *self.notes],
            "history": [point._asdict() for point in self.points],
        }

    def text(self) -> str:
        """Return the sentences, and below them a few of the points."""
        some = self.points[:: max(len(self.points) // 12, 1)]
        rows = [
            (shown(p.time), f"{p.gini:.3f}", percent(p.loss, 2), f"{p.strength:.3g}") for p in some
        ]
        table = Table(("time", "Gini", "loss", "strength"), rows).text() if rows else ""
        return f"{self}\n\n{table}".rstrip()

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def replay(  # noqa: PLR0913
    recommender: Recommender,
    log: RequestLog,
    goal: ServedGoal,
    *,
    window: float | None = None,
    half_life: float | None = None,
    k: int = 20,
    groups: Groups | None = None,
    threads: int = 1,
    show_progress: bool | None = None,
) -> ReplayResult:
    """Answer a log of requests by the code that serves them live, under a target.

    Parameters
    ----------
    recommender
        A model, or what ``load`` returned.
    log
        Who asked, and when.
    goal
        What is to be held.
    window, half_life
        Over how many seconds, or after how many of them a list counts half. One of them is given.
    k
        Length of the lists.
    groups
        Groups of items, for caps and floors.
    threads
        How many threads to use.
    show_progress
        Whether to show a progress bar; left out, where standard error is a terminal.
    """
    start = start_of(recommender, k=k, groups=groups, has_target=bool(goal.goals))
    control = RequestControl(start.config, start.strength)
    engine = Engine(recommender, k=k, control=control, threads=threads)
    first = float(log.times[0])
    ledger = Ledger(
        engine.n_items,
        window=window,
        half_life=half_life,
        groups=start.config.groups,
        time=first,
    )
    if start.exposure is not None and start.lists:
        ledger.start_from(start.exposure, start.lists, time=first)
    holder = TargetHolder(goal, control, ledger)
    failed = 0
    with progress_bar("replay", _STEPS, show=show_progress) as advance:
        for rows, steps in _batches(log.times, holder.window):
            time = float(log.times[rows.stop - 1])
            ledger.advance(time)
            asked = [Request(user=user) for user in log.users[rows]]
            answers = engine.answer(asked, ledger, time=time)
            failed += sum(isinstance(answer, LimelightError) for answer in answers)
            holder.tick(time)
            _repeat(advance, steps)
    return ReplayResult(
        goal=goal,
        look_back=given_seconds(window, half_life),
        status=holder.status(),
        n_requests=len(log.users),
        n_failed=failed,
        span=(first, float(log.times[-1])),
        notes=_notes(recommender, log, failed),
    )


def given_seconds(window: float | None, half_life: float | None) -> dict[str, float]:
    """Return the one of two that was given, by its name."""
    given = {"window": window, "half_life": half_life}
    return {name: seconds for name, seconds in given.items() if seconds is not None}


def _batches(times: Float64, window: float) -> Iterator[tuple[slice, int]]:
    """Cut a log into requests that are answered together; says how far the bar moves on."""
    start, n_times = 0, len(times)
    while start < n_times:
        last = int(np.searchsorted(times, times[start] + window / 1000, side="right"))
        stop = min(last, start + _AT_ONCE)
        yield slice(start, stop), _STEPS * stop // n_times - _STEPS * start // n_times
        start = stop


def _repeat(advance: Callable[..., None], times: int) -> None:
    for _ in range(times):
        advance()


def _notes(recommender: Recommender, log: RequestLog, failed: int) -> tuple[str, ...]:
    notes = [] if log.was_sorted else ["The log was out of order and was sorted by time."]
    known = positions(np.asarray(log.users), recommender.user_ids) >= 0
    if unknown := int(np.count_nonzero(~known)):
        example = log.users[int(np.argmin(known))]
        asked = count(unknown, "request")
        notes.append(
            f"{asked} came from users that the model does not know, such as {example!r}. They were "
            "answered as unseen users without a history, with what suits the average user."
        )
    if failed:
        notes.append(f"{count(failed, 'request')} could not be answered and were not counted.")
    return tuple(notes)
