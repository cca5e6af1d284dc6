"""Models side by side on the held-out users of a split: accuracy, exposure, time to fit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from limelight._base.documents import Document, Table
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_choice, check_integer
from limelight._base.text import count
from limelight.data.split import Split
from limelight.metrics.evaluate import Evaluation, evaluate, figure
from limelight.models.recommender import Recommender

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limelight.models.base import Model

Part = Literal["validation", "test"]
_METRICS = {"nDCG": "ndcg", "recall": "recall", "Gini": "gini", "coverage": "coverage"}
_ON = ("validation", "test", "both")


class ComparedModel(NamedTuple):
    """One model on the held-out users of one part of a split."""

    name: str
    part: Part
    metrics: Evaluation
    seconds: float | None
    """What the fit took; None if nobody measured it."""


@dataclass(frozen=True)
class ModelComparison:
    """What :func:`compare` found: a table to print, and the figures behind it.

    Examples
    --------
    >>> found = ModelComparison([], k=20, notes=[])
    >>> print(found)
    0 models, lists of 20
    """

    rows: Sequence[ComparedModel]
    """In the order in which the models were given."""
    k: int
    notes: Sequence[str]

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        parts = list(dict.fromkeys(row.part for row in self.rows))
        head = [f"{name}@{self.k}" for name in _METRICS]
        tables = [
            Table(
                (f"{part} users", *head, "seconds to fit"),
                [self._cells(row) for row in self.rows if row.part == part],
            )
            for part in parts
        ]
        names = {row.name for row in self.rows}
        title = f"{count(len(names), 'model')}, lists of {self.k}"
        users = {row.part: row.metrics["users"] for row in self.rows}
        over = [f"Over {count(int(n), 'user')} of the {part} part." for part, n in users.items()]
        return Document(title, tables, [*over, *self.notes])

    def _cells(self, row: ComparedModel) -> tuple[str, ...]:
        cells = []
        for metric in _METRICS.values():
            key = f"{metric}@{self.k}"
            low, high = (row.metrics.get(f"{key}_{end}") for end in ("low", "high"))
            ends = None if low is None or high is None else (figure(key, low), figure(key, high))
            spread = f" [{ends[0]}, {ends[1]}]" if ends else ""
            cells.append(f"{figure(key, row.metrics[key])}{spread}")
        return row.name, *cells, "" if row.seconds is None else f"{row.seconds:.1f}"

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics of all models, ready for JSON."""
        models = [
            {"name": row.name, "part": row.part, "seconds": row.seconds, **row.metrics}
            for row in self.rows
        ]
        return {"k": self.k, "models": models, "notes": list(self.notes)}

    def __str__(self) -> str:
        title, tables, notes = self.document()
        return "\n\n".join([title, *(table.text() for table in tables), *notes])

    def _repr_html_(self) -> str:
        return self.document().html()


def compare(
    models: Iterable[Recommender] | Mapping[str, Recommender],
    split: Any,
    *,
    k: int = 20,
    on: Literal["validation", "test", "both"] = "validation",
    show_progress: bool | None = None,
) -> ModelComparison:
    """Fit models where they are not, and measure all of them on the same held-out users.

    Validation users are the default, because whoever picks the best of several models by their test
    users reports a figure that is too good: test users are for the one that was picked.

    Parameters
    ----------
    models
        Models, re-ranked or not, or a mapping of names to them. Those that have not been fitted are
        fitted to ``split.train``, and stay so. Names are made of the class and of the settings that
        differ from the defaults.
    split : Split
        What ``split_users`` returned.
    k
        Length of the lists.
    on
        Which held-out users: ``validation``, ``test`` or ``both``.
    show_progress
        Whether each fit shows a bar on standard error; None does so on a terminal.

    Returns
    -------
    ModelComparison
        nDCG and recall with their 95 % intervals, Gini, coverage and the seconds of each fit.

    Examples
    --------
    >>> import limelight as ll
    >>> split = ll.split_users(ll.marketplace(600, 100, 9000).interactions, validation=60, test=60)
    >>> found = ll.compare([ll.Popularity(), ll.IALS(factors=8), ll.IALS(factors=16)], split, k=10)
    >>> [row.name for row in found.rows]
    ['Popularity()', 'IALS(factors=8)', 'IALS(factors=16)']
    """
    named = _named(models)
    check_integer("k", k, least=1)
    check_choice("on", on, _ON)
    if not isinstance(split, Split):
        message = f"models are compared on a split, not on {type(split).__name__}"
        raise DataError(message, hint="make one with ll.split_users(data, validation=…, test=…)")
    parts: list[Part] = ["validation", "test"] if on == "both" else [on]
    for part in parts:
        if not getattr(split, part).targets.nnz:
            message = f"the {part} users of the split have no held-out items to find"
            raise DataError(message, hint="split again with more of them")
    rows, notes, fingerprint = [], [], split.train.fingerprint()
    for name, recommender in named.items():
        seconds = _fitted_in(recommender.model, split, show_progress=show_progress)
        if recommender.learned.fingerprint != fingerprint:
            notes.append(
                f"{name} was not fitted to the training part of this split. If it has seen the "
                "held-out users, its figures are too good."
            )
        for part in parts:
            # What a stream remembers of those whom it served must not change.
            found = evaluate(recommender.fresh(), getattr(split, part), k=k)
            rows.append(ComparedModel(name, part, found, seconds))
    return ModelComparison(rows, k, notes)


def _named(models: Any) -> dict[str, Recommender]:
    """Give every model a name of its own."""
    if isinstance(models, Recommender):
        models = [models]
    given = models.items() if isinstance(models, Mapping) else ((None, one) for one in models)
    named: dict[str, Recommender] = {}
    for own, model in given:
        if not isinstance(model, Recommender):
            message = f"only models can be compared, not {type(model).__name__}"
            raise ConfigError(message, hint="pass models such as ll.IALS(), or ll.load(folder)")
        name = usual = str(own) if own is not None else repr(model).split(" fitted to ")[0]
        number = 1
        while name in named:
            number += 1
            name = f"{usual} ({number})"
        named[name] = model
    if not named:
        message = "there are no models to compare: 0"
        raise ConfigError(message, hint="pass one or several models")
    return named


def _fitted_in(model: Model, split: Split, *, show_progress: bool | None) -> float | None:
    """Fit a model unless it is fitted; return the seconds of its fit, if they are known."""
    if model.is_fitted:
        return model.trace_[-1].seconds if model.trace_ else None
    started = time.perf_counter()
    model.fit(split.train, show_progress=show_progress)
    return time.perf_counter() - started
