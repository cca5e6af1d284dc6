"""What re-rankers came to: points, fronts, their scores, tables and pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.documents import Table
from limelight._base.errors import DataError
from limelight._base.files import atomic_file
from limelight.lab.fronts import front
from limelight.metrics.lists import ListCount, over_all
from limelight.report.figures.style import STYLE, colour, load_matplotlib, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


LEAST_ACCURACY = 0.85
WHOLE, FRACTIONAL = "FairRec, whole", "FairRec"
_FOR_PROVIDERS = "ManifoldRank"
"""What methods are compared with where FairRec, which knows items alone, is not among them."""
_PANEL = 3.6  # inches
_SHOWN = 9  # points of FairRec's front at which others are compared with it, at most


class RerankedPoint(NamedTuple):
    """Accuracy and inequality of the lists of one strength."""

    strength: float
    ndcg: float
    gini: float
    more: dict[str, float] = {}  # noqa: RUF012 - never changed
    """Of providers: how evenly they are treated."""


@dataclass
class Fronts:
    """Points of each method for one fit of the model, and those of the plain lists."""

    base: RerankedPoint
    points: dict[str, list[RerankedPoint]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Of the processor, by method."""

    def of(self, method: str) -> list[RerankedPoint]:
        """Return the points of a method that none of its others beats, plain lists included."""
        points = [self.base, *self.points[method]]
        return front(points, lambda point: point.ndcg, lambda point: point.gini)

    def score(self, method: str) -> float:
        """Return the mean of 1 - Gini at accuracies from 85 to 100 % of the plain lists'."""
        return front_score([self.base, *self.points[method]], self.base.ndcg)

    def gini_at(self, method: str, accuracy: float) -> float:
        """Return the Gini index at a share of the plain lists' accuracy."""
        found = self.of(method)
        return _interpolate(accuracy * self.base.ndcg, [(p.ndcg, p.gini) for p in found])

    def more_at(self, method: str, name: str, accuracy: float) -> float:
        """Return another figure at a share of the plain lists' accuracy."""
        found = [(point.ndcg, point.more[name]) for point in self.of(method)]
        return _interpolate(accuracy * self.base.ndcg, found)

    def accuracy_at(self, method: str, gini: float) -> float:
        """Return the share of the plain lists' accuracy at a Gini index; NaN if out of reach."""
        found = self.of(method)
        if gini < found[0].gini:
            return float("nan")
        return _interpolate(gini, [(p.gini, p.ndcg / self.base.ndcg) for p in found])

    def lowest(self, method: str) -> float:
        """Return the lowest Gini index."""
        return min(point.gini for point in self.of(method))


def _interpolate(at: float, curve: list[tuple[float, float]]) -> float:
    return float(np.interp(at, *np.array(sorted(curve)).T))


def front_score(points: list[RerankedPoint], base: float) -> float:
    """Score a front, linear between the points that no other point beats.

    Examples
    --------
    >>> front_score([RerankedPoint(0, 1.0, 1.0), RerankedPoint(1, 0.85, 0.5)], base=1.0)
    0.25
    """
    best = front(points, lambda point: point.ndcg, lambda point: point.gini)
    accuracy = np.array([point.ndcg / base for point in best])
    evenness = np.array([1 - point.gini for point in best])
    grid = np.linspace(LEAST_ACCURACY, 1, 1001)
    return float(np.round(np.mean(np.interp(grid, accuracy, evenness)), 12))


@dataclass
class BenchRecord:
    """All runs on one data set, and how they were made."""

    name: str
    users: int
    items: int
    about: dict[str, Any] = field(default_factory=dict)
    runs: list[Fronts] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        """The methods that all runs have."""
        return [m for m in self.runs[0].points if all(m in run.points for run in self.runs)]

    @property
    def bars(self) -> list[str]:
        """What the methods are compared with, if it is among them: FairRec, or another."""
        found = [bar for bar in (FRACTIONAL, WHOLE) if bar in self.methods]
        return found or [bar for bar in (_FOR_PROVIDERS,) if bar in self.methods]

    def mean(self, figure: str, method: str, *at: Any) -> float:
        """Return the mean of a figure over the runs."""
        return float(np.mean([getattr(run, figure)(method, *at) for run in self.runs]))

    def to_dict(self) -> dict[str, Any]:
        """Return what to write down."""
        runs = [vars(run) for run in self.runs]
        return {"name": self.name, "users": self.users, "items": self.items, **self.about} | {
            "runs": runs
        }

    @classmethod
    def of(cls, written: dict[str, Any]) -> BenchRecord:
        """Take what was written down."""
        rest = dict(written)
        runs = [
            Fronts(
                RerankedPoint(*run["base"]),
                {m: [RerankedPoint(*p) for p in points] for m, points in run["points"].items()},
                run.get("seconds", {}),
            )
            for run in rest.pop("runs")
        ]
        return cls(rest.pop("name"), rest.pop("users"), rest.pop("items"), rest, runs)


def score_table(record: BenchRecord, at: float = 0.95) -> Table:
    """Tabulate the score of every method, over that of a bar, and the Gini at some accuracy."""
    methods, bars = record.methods, record.bars
    more = list(record.runs[0].base.more)
    heads = ["method", "score", *(f"/ {bar}" for bar in bars), f"Gini at {at:.2%} nDCG"]
    rows = []
    for method in methods:
        mean = record.mean("score", method)
        ratios = [f"{mean / record.mean('score', bar):.3f}" for bar in bars]
        cells = [f"{mean:.4f}", *ratios, f"{record.mean('gini_at', method, at):.4f}"]
        cells += [f"{record.mean('more_at', method, name, at):.4f}" for name in more]
        rows.append((method, *cells, f"{record.mean('lowest', method):.4f}"))
    return Table((*heads, *more, "lowest Gini"), rows)


def front_table(record: BenchRecord) -> Table | None:
    """Tabulate nDCG, relative to the plain lists', at the Gini indices of FairRec's front.

    There is no table where neither FairRec nor its substitute for providers was run, or where it
    was no better than the plain lists.
    """
    points = record.runs[0].of(record.bars[0]) if record.bars else []
    first = [point.gini for point in points if point.strength][::-1]
    if not first:
        return None
    ginis = [first[n] for n in np.unique(np.linspace(0, len(first) - 1, _SHOWN).astype(int))]
    rows = []
    for method in record.methods:
        # A mean over the runs that reach it, as a front may end a little earlier in another fit.
        found = np.array([[run.accuracy_at(method, g) for g in ginis] for run in record.runs])
        some = ~np.isnan(found)
        means = np.where(some, found, 0).sum(axis=0) / np.maximum(some.sum(axis=0), 1)
        cells = [f"{m:.3f}" if s else "-" for m, s in zip(means, some.any(axis=0), strict=True)]
        rows.append((method, *cells))
    return Table(("nDCG at a Gini of", *(f"{gini:.3f}" for gini in ginis)), rows)


def write_records(records: Sequence[BenchRecord], path: Path) -> None:
    """Write all points to a JSON file, whole or not at all."""
    written = {"rerankers": [record.to_dict() for record in records]}
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(written, indent=1), encoding="utf-8")


def read_records(path: Path) -> list[BenchRecord]:
    """Read what :func:`write_records` wrote."""
    try:
        return [BenchRecord.of(one) for one in json.loads(path.read_bytes())["rerankers"]]
    except (ValueError, KeyError, TypeError) as error:
        message = f"no points of re-rankers: {str(path)!r}"
        hint = "give a file that `limelight bench rerankers -o` wrote"
        raise DataError(message, hint=hint) from error


def draw(records: Sequence[BenchRecord], output: Path) -> None:
    """Draw nDCG against Gini of every re-ranker, all fits together, over the whole range."""
    mpl = load_matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL * len(records), _PANEL), layout="constrained")
        panels = figure.subplots(1, len(records), squeeze=False)[0]
        for ax, record in zip(panels, records, strict=True):
            _draw_panel(ax, record)
        panels[0].legend(loc="lower left", fontsize="small")
        save(panels[0], output)


def _draw_panel(ax: Any, record: BenchRecord) -> None:
    for number, method in enumerate(record.methods):
        for run in record.runs:
            points = sorted([run.base, *run.points[method]], key=lambda point: -point.gini)
            ginis, accuracy = [p.gini for p in points], [p.ndcg / run.base.ndcg for p in points]
            label = method if run is record.runs[0] else None
            line = {"color": colour(number), "linewidth": 1, "markersize": 3}
            ax.plot(ginis, accuracy, ".-", label=label, **line)
    ax.axhspan(LEAST_ACCURACY, 1, color="#888888", alpha=0.12, linewidth=0)
    ax.invert_xaxis()
    ax.set_title(record.name)
    over = over_all([ListCount(record.users, record.items)])
    ax.set_xlabel(f"Gini of exposure (right: more even)\n{over}".rstrip())
    ax.set_ylabel("nDCG, plain lists = 1")
