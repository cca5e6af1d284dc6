"""A front as it was measured: its points, what they cost, which to take, and what it shows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.documents import Document, Table
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_choice, check_integer, check_number
from limelight._base.text import count, first_words, moves, percent, price
from limelight.metrics.exposure import top_share
from limelight.report.exhibit import ExhibitPoint, build_exhibit, not_beaten
from limelight.report.figures.front import front
from limelight.report.figures.inputs import Point as FigurePoint
from limelight.report.figures.inputs import Tradeoff
from limelight.report.figures.style import save
from limelight.report.page import write_page

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from limelight.data.split import Split
    from limelight.report.exhibit import Exhibit, ShownLists


_HEAD = (
    "point", "strength", "front", "nDCG", "Gini", "coverage",
    "test nDCG", "interval", "Gini", "coverage", "seconds",
)  # fmt: skip

_LOSS = 0.05
"""The share of nDCG that the best point may cost, unless another is given."""
_METRICS = ("ndcg", "ndcg_low", "ndcg_high", "gini", "coverage")
_PARTS = ("validation", "test")


class Cost(NamedTuple):
    """What all points of exADMM took, in units of the one fit that starts from scratch."""

    training: float
    """Of the seconds in which factors were updated, and nothing else."""
    wall_clock: float
    """Of all seconds: reading and writing models, lists and their measures as well."""


@dataclass(frozen=True)
class PointFigures:
    """Accuracy and exposure of the lists of some users."""

    ndcg: float
    ndcg_low: float
    ndcg_high: float
    """The bounds of the 95 % bootstrap interval."""
    gini: float
    coverage: float

    @classmethod
    def of(cls, figures: Mapping[str, float], k: int) -> PointFigures:
        """Take the measures of lists of a length from all figures of theirs."""
        return cls(**{name: figures[_key(name, k)] for name in _METRICS})

    def to_dict(self, k: int) -> dict[str, float]:
        """Return the measures under keys such as "ndcg@20" and "ndcg@20_low"."""
        return {_key(name, k): getattr(self, name) for name in _METRICS}


@dataclass(frozen=True)
class FrontierPoint:
    """A method at one strength."""

    method: str
    number: int
    """In which order the points of the method were found; the plain model is 0."""
    strength: float
    validation: PointFigures
    test: PointFigures
    seconds: float
    """Training for exADMM and for the plain model, making the lists for re-rankers."""
    wall_seconds: float
    """Everything that the point needed."""
    epochs: int
    """Of training; 0 for re-rankers."""
    on_front: bool = False
    """Whether no other point of the method is both more accurate and more even, for validation
    users."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FrontierPoint:
        """Read what ``dataclasses.asdict`` wrote; refuse anything else."""
        try:
            parts = {part: PointFigures(**values[part]) for part in _PARTS}
            point = cls(**{**values, **parts})
            check_integer("number", point.number, least=0)
            for name in ("strength", "seconds", "wall_seconds", "epochs"):
                check_number(name, getattr(point, name))
            for part in (point.validation, point.test):
                for name, value in asdict(part).items():
                    check_number(name, value, above=-math.inf)
        except (TypeError, KeyError, ConfigError) as error:
            reason = getattr(error, "message", first_words(error))
            message = f"the folder holds a point that limelight did not write: {reason}"
            raise DataError(message, hint="move the folder away to start anew") from error
        return point


class ShownFrontier(NamedTuple):
    """What a front is of, the settings of its factor model, and who was shown what by point."""

    split: Split
    settings: Mapping[str, Any]
    lists: Mapping[FrontierPoint, ShownLists]


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """The trade-off between accuracy and exposure of one or more methods.

    Attributes
    ----------
    points : tuple of FrontierPoint
        Method by method, each from strength 0 up.
    at : int
        Length of the lists.
    notes : tuple of str
        What the reader should know.
    """

    points: tuple[FrontierPoint, ...]
    at: int
    notes: tuple[str, ...] = ()
    population: str = ""
    """Whose lists exposure is of, in words."""
    users: int = 0
    """How many of them were served to measure it."""
    shown: ShownFrontier | None = field(default=None, compare=False)
    """Who was shown what, for a report."""

    @property
    def methods(self) -> list[str]:
        """The methods, in the order in which they were asked for."""
        return list(dict.fromkeys(point.method for point in self.points))

    @property
    def cost(self) -> Cost | None:
        """What the points of exADMM took in all, over what the first took; None without exADMM."""
        found = [point for point in self.points if point.method == "exadmm"]
        if not found:
            return None
        training, wall = (
            sum(getattr(point, name) for point in found) / getattr(found[0], name)
            for name in ("seconds", "wall_seconds")
        )
        return Cost(training, wall)

    def best(self, method: str | None = None, max_ndcg_loss: float = _LOSS) -> FrontierPoint:
        """Return the point of the most even exposure that keeps the accuracy, for validation users.

        Parameters
        ----------
        method
            Whose points to look at; everybody's, unless given.
        max_ndcg_loss
            Share of the nDCG of the plain model that may be lost.
        """
        check_number("max_ndcg_loss", max_ndcg_loss)
        if method is not None:
            check_choice("method", method, self.methods)
        least = (1 - max_ndcg_loss) * self.points[0].validation.ndcg
        kept = [
            point
            for point in self.points
            if method in {None, point.method} and point.validation.ndcg >= least
        ]
        return min(kept, key=lambda point: point.validation.gini)

    def _headline(self) -> FrontierPoint:
        """Return what costs least, of all methods, among those about as even as the best.

        The most even point alone may cost three times what another method asks for the same Gini.
        """
        most_even = self.best().validation.gini
        even = [p for p in self.points if p.validation.gini <= most_even + _SAME_GINI]
        return max(even, key=lambda point: point.validation.ndcg)

    def to_table(self) -> pa.Table:
        """Return an Arrow table, one row a point."""
        import pyarrow as pa

        rows = [self._record(point) for point in self.points]
        for row in rows:
            for part in _PARTS:
                row |= {f"{part}_{name}": value for name, value in row.pop(part).items()}
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        cost = self.cost
        return {
            "at": self.at,
            "population": self.population,
            "users": self.users,
            "points": [self._record(point) for point in self.points],
            "cost": cost._asdict() if cost else None,
            "notes": list(self.notes),
        }

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the front for test users; the ending of the file's name says the format.

        Only points that validation users put on the front are drawn. Needs the extra ``plot``.

        Parameters
        ----------
        path
            Where to write the figure.
        """
        save(front(self), path)

    def tradeoff(self) -> Tradeoff:
        """Return the points that validation users put on the front, with test users' figures."""

        def drawn(point: FrontierPoint) -> FigurePoint:
            label = f"{point.strength:.2g}" if point.strength else ""
            return FigurePoint(point.test.gini, point.test.ndcg, label, self.users or None)

        series = {
            method: [drawn(p) for p in self.points if p.method == method and p.on_front]
            for method in self.methods
        }
        plain = {"no control": [drawn(self.points[0])]} if self.points else {}
        return Tradeoff(plain | series, f"nDCG@{self.at}")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page to look at: the front, who gains, who loses, what users get.

        Parameters
        ----------
        path
            Where to write the page.
        """
        write_page(self.exhibit(), path)

    def exhibit(self) -> Exhibit:
        """Return who was shown what, for a report; the plain model comes first, and once."""
        if self.shown is None:
            message = "this front has no lists to show"
            raise DataError(message, hint="pass what `ll.frontier` returned")
        split, settings, lists = self.shown
        kept = [self.points[0], *(point for point in self.points if point.number)]
        best = self._headline()
        return build_exhibit(
            "frontier",
            f"What even exposure costs: {' and '.join(_NAMES[m] for m in self.methods)}",
            self.at,
            [_point(point, self.at, settings, lists[point], self.users) for point in kept],
            split=split,
            seconds=sum(point.wall_seconds for point in kept),
            seed=settings.get("random_state"),
            chosen=kept.index(best) if best in kept else 0,
            notes=self.notes,
        )

    def __repr__(self) -> str:
        """Say what the best point gains and costs; show a table, and what the front cost."""
        lines = self._table().lines("  ") if self.points else []
        return "\n".join([*self.sentences(), self._title(), *lines, *self._notes()])

    def sentences(self) -> list[str]:
        """Say in plain words what the best point of all methods gains and what it costs."""
        if not self.points:
            return []
        best, plain, k = self._headline(), self.points[0], self.at
        n_points = count(len(self.points), "point")
        if not best.strength:
            kept = f"without losing more than {percent(_LOSS, 0)} of nDCG@{k}"
            return [f"None of {n_points} shares exposure more evenly {kept}."]
        gini = moves(plain.test.gini, best.test.gini)
        shown = moves(plain.test.coverage, best.test.coverage, percent)
        loss = 1 - best.test.ndcg / (plain.test.ndcg or 1.0)
        return [
            f"The best of {n_points} is {best.method} at strength {best.strength:.4g}: the "
            f"Gini@{k} of exposure {gini}, and the share of the items shown {shown}.",
            f"{price(loss, f'nDCG@{k}')} for test users. The best point is the most even one "
            f"that keeps at least {percent(1 - _LOSS, 0)} of nDCG@{k} for validation users.",
        ]

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        return Document(self._title(), [self._table()], self._notes())

    def _repr_html_(self) -> str:
        return self.document().html()

    def _table(self) -> Table:
        return Table(_HEAD, [_cells(point) for point in self.points])

    def _title(self) -> str:
        title = f"Frontier of {' and '.join(self.methods) or 'no method'}, lists of {self.at}"
        return f"{title}; exposure over {self.population}" if self.population else title

    def _notes(self) -> list[str]:
        of = f"exposure is measured with {self.users:,} of them"
        sampled = [of] if self.users and not self.population.startswith(f"{self.users:,} ") else []
        if self.cost is None:
            return [*sampled, *self.notes]
        cost = (
            f"exadmm: all points took {self.cost.training:.1f} times the training of one fit, "
            f"and {self.cost.wall_clock:.1f} times its wall-clock time"
        )
        return [*sampled, cost, *self.notes]

    def _record(self, point: FrontierPoint) -> dict[str, Any]:
        return asdict(point) | {part: getattr(point, part).to_dict(self.at) for part in _PARTS}


_SAME_GINI = 0.01
"""Ginis that differ by less are the same to a reader of a headline."""


def mark_front(points: Iterable[FrontierPoint]) -> list[FrontierPoint]:
    """Say which points of one method no other one beats in both, for validation users."""
    found = list(points)
    marks = not_beaten([(point.validation.ndcg, point.validation.gini) for point in found])
    return [replace(point, on_front=mark) for point, mark in zip(found, marks, strict=True)]


def _key(name: str, k: int) -> str:
    """Return the key of a measure, such as "ndcg@20_low"."""
    metric, _, bound = name.partition("_")
    return f"{metric}@{k}_{bound}" if bound else f"{metric}@{k}"


def _cells(point: FrontierPoint) -> tuple[str, ...]:
    low, high = point.test.ndcg_low, point.test.ndcg_high
    return (
        f"{point.method}-{point.number}" if point.number else point.method,
        f"{point.strength:.4g}",
        "yes" if point.on_front else "",
        *_short(point.validation),
        *_short(point.test)[:1],
        f"{low:.4f}-{high:.4f}",
        *_short(point.test)[1:],
        f"{point.seconds:.1f}",
    )


def _short(found: PointFigures) -> tuple[str, str, str]:
    return f"{found.ndcg:.4f}", f"{found.gini:.4f}", percent(found.coverage)


_NAMES = {
    "plain": "No control",
    "exadmm": "exADMM",
    "ease": "EASE",
    "best-response": "Best response",
    "online": "Online",
    "prices": "Prices",
}
_SHOWN_SETTINGS = ("factors", "regularization", "unobserved_weight", "random_state")
"""The settings of the factor model that a page shows."""


def _point(
    point: FrontierPoint, k: int, settings: Mapping[str, Any], shown: ShownLists, users: int
) -> ExhibitPoint:
    method = point.method if point.number else "plain"
    figures = point.test.to_dict(k) | ({"users": users} if users else {})
    if shown.exposure is not None:
        figures[f"top_share@{k}"] = top_share(shown.exposure)
    name = _NAMES[method]
    chosen = {name: settings[name] for name in _SHOWN_SETTINGS if name in settings}
    return ExhibitPoint(
        method=name,
        label=f"{name}, strength {point.strength:.3g}" if point.number else "no control",
        figures=figures,
        strength=point.strength,
        settings={"strength": point.strength, "epochs": point.epochs, **chosen},
        on_front=point.on_front,
        shown=shown,
    )
