"""What tuning found: the trials, the settings to take, and what test users say of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.documents import Document, Table, cut_middle
from limelight._base.errors import ConfigError, DataError
from limelight._base.files import atomic_file
from limelight._base.settings import check_integer, check_number
from limelight._base.text import count, first_words, moves, settings
from limelight.models.folder import load_model
from limelight.report.figures.style import save
from limelight.report.figures.tuning import tuning
from limelight.store.json import read_json

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pyarrow as pa

_MODEL, RECORD = "model", "tune.json"
_SAID = ("ndcg", "gini")


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what validation users said of them."""

    number: int
    round: int
    settings: dict[str, Any]
    ndcg: float
    """The mean over the folds of validation users; 0 where the fit collapsed."""
    gini: float
    epochs: int
    """Of this trial alone: it may have started from the factors of another."""
    seconds: float
    training_seconds: float = 0.0
    """Of the seconds, those in which the model was updated."""

    @classmethod
    def from_dict(cls, values: Any) -> Trial:
        """Read what ``dataclasses.asdict`` wrote; refuse anything else."""
        try:
            found = cls(**values)
            check_integer("number", found.number, least=0)
            check_integer("epochs", found.epochs, least=0)
            for name in ("ndcg", "gini", "seconds", "training_seconds"):
                check_number(name, getattr(found, name))
            dict(found.settings)
        except (TypeError, ValueError, ConfigError) as error:
            reason = getattr(error, "message", first_words(error))
            message = f"the folder holds a trial that limelight did not write: {reason}"
            raise DataError(message, hint="move the folder away to start anew") from error
        return found

    @property
    def series(self) -> str:
        """What it has in common with others of its round."""
        factors = self.settings.get("factors")
        return "trials" if factors is None else f"{factors} factors"


@dataclass(frozen=True, eq=False)
class TuneResult:
    """Trials, and the settings that validation users prefer.

    Attributes
    ----------
    settings : dict
        The settings to take: those found, and those that were given.
    model : Model
        A model with these settings, fitted to the training users from scratch:
        ``ll.ExADMM(**found.settings).fit(split.train)`` has the same bits.
    default : dict
        The settings to compare with: those given, and what "auto" comes to.
    trials : tuple of Trial
        What was tried, in order.
    best : Trial
        The best of those with the most factors.
    folds : int
        How many times validation users were asked in a trial, each time for other items of theirs.
        The nDCG of a trial is the mean; so it differs from that of ``ll.evaluate``.
    measured : dict
        Accuracy and exposure of models fitted from scratch, "tuned" and by "default".
        "validation" and "test" are what ``ll.evaluate`` says of the users of the split, "folds" is
        the nDCG that trials have, by which one of the two was taken.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(600, 100, 9000).interactions
    >>> found = ll.tune(data, trials=4, at=10)
    >>> found.measured["tuned"]["test"]["ndcg@10"] > 0
    True
    """

    trials: tuple[Trial, ...]
    best: Trial
    model: Any
    settings: dict[str, Any]
    default: dict[str, Any]
    at: int
    folds: int
    measured: Mapping[str, Mapping[str, Mapping[str, float]]]
    notes: tuple[str, ...] = ()

    def unfitted(self) -> Any:
        """Return a model with the settings found, to be fitted to other data."""
        return type(self.model)(**self.settings)

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.settings))
        head = ("trial", *names, f"trial nDCG@{self.at}", f"Gini@{self.at}", "epochs", "seconds")
        rows = [
            (
                f"{trial.number + 1}{' *' if trial is self.best else ''}",
                *(trial.settings.get(name) for name in names),
                f"{trial.ndcg:.4f}",
                f"{trial.gini:.3f}",
                trial.epochs,
                f"{trial.seconds:.1f}",
            )
            for trial in self.trials
        ]
        shown, gap = cut_middle(rows, "trials")
        return Document(
            f"{type(self.model).__name__}: {count(len(self.trials), 'trial')}",
            [Table(head, shown), self._comparison()],
            [*gap, *self._meaning(), *self.notes, f"best: {settings(self.settings)}"],
        )

    def _meaning(self) -> list[str]:
        """Say what the figures are of."""
        folds = "" if self.folds == 1 else f", the mean of {self.folds} folds of their items"
        return [
            f"trial nDCG@{self.at}: of validation users{folds}, after a short fit to compare with.",
            "tuned, default: models fitted from scratch with these settings, measured as "
            "`limelight evaluate` does; the nDCG of the folds decides between them.",
        ]

    def _comparison(self) -> Table:
        """Compare what was found with where it started, for validation and test users."""
        keys = {f"nDCG@{self.at}": f"ndcg@{self.at}", f"Gini@{self.at}": f"gini@{self.at}"}
        shown = [("folds", next(iter(keys)))]
        shown += [(part, name) for part in ("validation", "test") for name in keys]
        rows = [
            (name, *(f"{found[part][keys[figure]]:.4f}" for part, figure in shown))
            for name, found in self.measured.items()
        ]
        return Table(("", *(" ".join(column) for column in shown)), rows)

    def __str__(self) -> str:
        """Show the trials, what test users say, and the settings to take."""
        document = self.document()
        tables = "\n\n".join(table.text() for table in document.tables)
        return "\n".join([*self.sentences(), document.title, tables, "", *document.notes])

    def sentences(self) -> list[str]:
        """Say in plain words whether better settings were found, and what they change."""
        tuned, default = (self.measured[name]["test"] for name in ("tuned", "default"))
        tried, (accuracy, gini) = (
            count(len(self.trials), "trial"),
            (f"{m}@{self.at}" for m in _SAID),
        )
        if self.settings == self.default:
            return [
                f"None of {tried} beats the settings that were given: nDCG@{self.at} is "
                f"{default[accuracy]:.4f} for test users."
            ]
        return [
            f"The best settings of {tried} were taken. Compared with the defaults, for test users, "
            f"nDCG@{self.at} {moves(default[accuracy], tuned[accuracy], '{:.4f}'.format)}, and the "
            f"Gini of exposure {moves(default[gini], tuned[gini])}."
        ]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.document().html()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the model, as JSON."""
        return {
            "model": type(self.model).__name__,
            "at": self.at,
            "settings": self.settings,
            "default": self.default,
            "folds": self.folds,
            "best": self.best.number,
            "trials": [asdict(trial) for trial in self.trials],
            "measured": {
                name: {part: dict(figures) for part, figures in parts.items()}
                for name, parts in self.measured.items()
            },
            "notes": list(self.notes),
        }

    def to_table(self) -> pa.Table:
        """Return the trials as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(
            [{**asdict(trial), **trial.settings, "settings": None} for trial in self.trials]
        ).drop_columns(["settings"])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the trials in their order; return axes, or write a file where a path is given."""
        axes = tuning(self.trials, at=self.at, folds=self.folds)
        if path is not None:
            save(axes, path)
        return axes

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``tune.json``, ``tune.parquet``, ``tune.png`` and ``model`` to a folder."""
        save_result(self, Path(folder), run={})


def save_result(
    found: TuneResult, folder: Path, *, run: Mapping[str, Any], is_drawn: bool = True
) -> None:
    """Write what was found, and what the search was of, so that the same one finds it again."""
    import pyarrow.parquet as pq

    found.model.save(folder / _MODEL)
    with atomic_file(folder / "tune.parquet") as temporary:
        pq.write_table(found.to_table(), temporary)
    try:
        if is_drawn:
            found.plot(folder / "tune.png")
    except ConfigError as error:
        # Without matplotlib the figures are still there as numbers.
        object.__setattr__(found, "notes", (*found.notes, f"No figure: {error.hint}"))
    # The last file to be written: where it is, the others are.
    with atomic_file(folder / RECORD) as temporary:
        text = json.dumps({**found.to_dict(), "run": dict(run)}, indent=1)
        temporary.write_text(text + "\n", encoding="utf-8")


def load_result(folder: Path) -> tuple[dict[str, Any], TuneResult]:
    """Read what a search was of, and what it found."""
    try:
        record = read_json(folder / RECORD)
        trials = tuple(Trial.from_dict(trial) for trial in record["trials"])
        found = {name: record[name] for name in ("settings", "default", "at", "folds", "measured")}
        run, best, notes = record["run"], trials[record["best"]], tuple(record["notes"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"cannot read {str(folder / RECORD)!r}: {first_words(error)}"
        raise DataError(message, hint="choose another folder, or move this one away") from error
    model = load_model(folder / _MODEL)
    return run, TuneResult(trials=trials, best=best, model=model, notes=notes, **found)
