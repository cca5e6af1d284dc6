"""What a run has to show: every setting that was tried, to whom it gave exposure, and examples.

A report and its figures are made of an :class:`Exhibit` alone, long after the run and without its
data. :func:`build_exhibit` makes one from points and from a split or lists.
"""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.machine import command_line, package_version, processor
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.lists import ListCount, sizes_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from limelight._base.arrays import Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Ids
    from limelight.data.split import Split


N_EXAMPLES = 12
"""How many users serve as examples."""


class Compared(NamedTuple):
    """The shares of groups at two ends, what these are, and what to say of the widest apart."""

    shares: Any
    """By group its two shares; or changes, each with ``before`` and ``after``."""
    before: str = "before"
    after: str = "after"
    sentence: str = "{} goes from {} to {} of the exposure"


class ShownLists(NamedTuple):
    """What is shown of a setting's lists: exposure of items, example lists, trace of the fit."""

    exposure: Float64 | None = None
    """Of every item."""
    lists: Int32 | None = None
    """Of the example users, padded with -1."""
    trace: Mapping[str, Sequence[float]] = {}
    """By name, what was measured at the epochs of the fit."""


@dataclass(frozen=True, eq=False)
class ExhibitPoint:
    """One setting of a system."""

    method: str
    label: str
    figures: Mapping[str, float]
    """Such as "ndcg@20" and "ndcg@20_low"; "users" says of how many lists those of exposure are."""
    strength: float | None = None
    """How much exposure counts; points of a method are ordered by it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    on_front: bool = True
    shown: ShownLists = field(default_factory=ShownLists)


@dataclass(frozen=True, eq=False)
class ExampleUsers:
    """Users whose lists are shown, with what they did before and what they were found to like."""

    user_ids: Ids
    history: tuple[Int32, ...] = ()
    liked: tuple[Int32, ...] = ()

    @classmethod
    def of(cls, rows: Int64, part: HeldOut) -> ExampleUsers:
        """Take some rows of a held-out part."""
        history, liked = (
            tuple(matrix[row].indices.astype(np.int32) for row in rows)
            for matrix in (part.history, part.targets)
        )
        return cls(part.user_ids[rows], history, liked)


@dataclass(frozen=True, eq=False)
class AuditFindings:
    """What an audit found beside its figures; a section of the page for each that is not empty."""

    headline: str = ""
    """What the page says first; if empty, what the chosen point does."""
    summary: tuple[str, ...] = ()
    """Sentences below the headline."""
    changes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Of metrics such as "gini@20", the 95 % interval of their change against the base."""
    rules: Sequence[Mapping[str, Any]] = ()
    """Rules of a record: `rule`, `found`, `interval`, `verdict` and `result`, in words."""
    targets: Sequence[Mapping[str, Any]] = ()
    """What was asked for: `says`, `asked`, `found`, `percent`, `met` and the groups `missed`."""
    periods: Sequence[Mapping[str, Any]] = ()
    """Figures of each period, with the `groups` that are shown over time."""
    merit: Mapping[str, Any] = field(default_factory=dict)
    """`over` and `under`: the items furthest from their merit; `without`: how many have none."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A run, ready to be looked at."""

    kind: str
    """The command that made it."""
    title: str
    k: int
    """Length of the lists."""
    points: tuple[ExhibitPoint, ...]
    item_ids: Ids
    base: int | None = 0
    """The point that others are compared with: what happens without control."""
    chosen: int = 0
    """The point to show first."""
    titles: tuple[str, ...] | None = None
    """What to call the items, if not by their ids."""
    interactions: Int64 | None = None
    """How many users have each item in the training data."""
    groups: Groups | None = None
    floors: Mapping[Any, float] = field(default_factory=dict)
    """By group, the share of the exposure that it should have; below, that it may have."""
    caps: Mapping[Any, float] = field(default_factory=dict)
    findings: AuditFindings | None = None
    examples: ExampleUsers | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    """What was learnt from, in words."""
    made: Mapping[str, str] = field(default_factory=dict)
    """How it was made, in words."""
    notes: tuple[str, ...] = ()

    def counted(self, point: ExhibitPoint) -> ListCount:
        """Return of how many lists, and over how many items, the figures of a point are."""
        return ListCount.of({**point.figures, "items": len(self.item_ids)})


MOST_KEPT = 1 << 17
"""Up to so many items, the exposure that every strength of a search gave is kept for a page."""


def not_beaten(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Tell of points of accuracy and Gini which of them no other one beats in both.

    Examples
    --------
    >>> not_beaten([(0.2, 0.8), (0.19, 0.6), (0.18, 0.7)])
    [True, True, False]
    """
    return [
        not any(other > accuracy and lower < gini for other, lower in points)
        for accuracy, gini in points
    ]


def with_front(points: Sequence[ExhibitPoint], accuracy: str, k: int) -> list[ExhibitPoint]:
    """Mark the points that no other one of their method beats; the first is that of no control."""

    def place(point: ExhibitPoint) -> tuple[float, float]:
        return point.figures[f"{accuracy}@{k}"], point.figures[f"gini@{k}"]

    marked: dict[int, bool] = {}
    for method in dict.fromkeys(point.method for point in points):
        rows = [0, *(n for n, one in enumerate(points) if n and one.method == method)]
        marks = not_beaten([place(points[row]) for row in rows])
        marked |= dict(zip(rows, marks, strict=True))
    return [replace(one, on_front=marked[n] or not n) for n, one in enumerate(points)]


def example_rows(lengths: Sequence[int] | Int64, count: int = N_EXAMPLES) -> Int64:
    """Choose users of all kinds, from those with the shortest history to the longest.

    ``lengths`` says how much is known of each user; users with 0 are left out if there are others.

    Examples
    --------
    >>> example_rows([5, 0, 9, 1, 7], count=3)
    array([3, 0, 2])
    """
    known = np.asarray(lengths)
    order = np.argsort(known, kind="stable")
    order = order[known[order] > 0] if known.any() else order
    places = np.linspace(0, len(order) - 1, min(count, len(order)))
    return np.asarray(order[np.unique(places.astype(np.int64))], dtype=np.int64)


def held_out_rows(part: HeldOut, count: int = N_EXAMPLES) -> Int64:
    """Choose example users of a held-out part among those who have something to find."""
    history, targets = (np.diff(matrix.indptr) for matrix in (part.history, part.targets))
    return example_rows(np.where(targets > 0, history + 1, 0), count)


def measure_lists(
    ids: Int32,
    part: HeldOut,
    k: int,
    trace: Sequence[Any] = (),
    everybody: Int32 | None = None,
) -> tuple[ShownLists, dict[str, float]]:
    """Measure the lists of held-out users (``ids``, users x k), and keep what can be shown.

    ``trace`` holds the records of the fit, as in ``model.trace_``. Exposure is that of
    ``everybody``, the lists of all who are served, if it is given.
    """
    lists = ListAccumulator(part.targets.shape[1], k)
    lists.update(ids, part.targets)
    figures, rows = lists.result(), held_out_rows(part)
    if everybody is not None:
        lists = ListAccumulator(part.targets.shape[1], k)
        lists.update(everybody)
        figures |= lists.result()
    return ShownLists(lists.exposure(), ids[rows, :k], trace_columns(trace)), figures


def trace_columns(trace: Sequence[Any]) -> dict[str, list[float]]:
    """Turn records of a fit into columns of numbers; what was not measured is not a number.

    Examples
    --------
    >>> from collections import namedtuple
    >>> Record = namedtuple("Record", "epoch objective feasibility")
    >>> trace_columns([Record(1, 9.0, None), Record(2, 8.0, None)])
    {'epoch': [1.0, 2.0], 'objective': [9.0, 8.0]}
    """
    if not trace:
        return {}
    names = getattr(trace[0], "_fields", None) or list(vars(trace[0]))
    columns = {name: [_number(getattr(record, name)) for record in trace] for name in names}
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else float("nan")


def how_made(*, seconds: float | None = None, seed: int | None = None) -> dict[str, str]:
    """Say in words by which command, with which versions, when and how long a result was made."""
    made = {}
    if command := command_line():
        made["Command"] = shlex.join(command)
    made["limelight"] = package_version()
    made["Python"] = f"{platform.python_version()}, NumPy {np.__version__}"
    made["Machine"] = f"{platform.system()} {platform.machine()}, {processor()[0]}"
    if seed is not None:
        made["Seed"] = str(seed)
    if seconds is not None:
        made["Took"] = f"{seconds:,.1f} seconds"
    made["Time"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return made


def about_data(split: Split) -> dict[str, str]:
    """Say in words what a run learnt from and was measured with."""
    train = split.train
    filled = train.nnz / max(train.n_users * train.n_items, 1)
    return {
        "Training users": f"{train.n_users:,}",
        "Items": f"{train.n_items:,}",
        "Interactions": f"{train.nnz:,}",
        "Filled": f"{100 * filled:.3g} % of all pairs",
        "Validation users": f"{split.validation.n_users:,}",
        "Test users": f"{split.test.n_users:,}",
    }


def build_exhibit(
    kind: str,
    title: str,
    k: int,
    points: Iterable[ExhibitPoint],
    *,
    split: Split | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    **others: Any,
) -> Exhibit:
    """Put together what a page shows of a run.

    Parameters
    ----------
    kind, title, k, points
        As in :class:`Exhibit`.
    split
        What the run learnt from. Its test users are the examples, and items, interactions and the
        words about the data are its own. Without a split, ``others`` say all of that.
    seconds, seed
        How long the run took, and its seed.
    others
        Further fields of :class:`Exhibit`, such as ``chosen`` and ``groups``.
    """
    if split is not None:
        interactions = split.train.matrix.getnnz(axis=0).astype(np.int64)
        of_split = {
            "item_ids": split.train.item_ids,
            "interactions": interactions,
            "examples": ExampleUsers.of(held_out_rows(split.test), split.test),
            "data": about_data(split),
        }
        others = of_split | others
    made = how_made(seconds=seconds, seed=seed)
    found = Exhibit(kind, title, k, tuple(points), made=made, **others)
    differ = sizes_note({point.label: found.counted(point) for point in found.points})
    return replace(found, notes=(*found.notes, differ)) if differ else found
