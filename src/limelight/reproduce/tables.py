"""The paper's tables, with our figures beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.documents import Table
from limelight.reproduce.methods import FAIRREC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from limelight.reproduce.experiments import Experiment, Size

_COMPLEXITY = {
    "iALS": ("nnz d² + (users + items) d³", "(users + items) d"),
    "Mult-VAE": ("users x items x d", "items x d"),
    FAIRREC: ("users x items x (d + log K)", "users x candidates (the paper: users x items)"),
    "Multi-FR": ("nnz x items + users x items x d", "items x d"),
    "exADMM": (
        "nnz d² + items d³ (ours: items only; users nnz d + users d²)",
        "(users + items) d",
    ),
}


class Titled(NamedTuple):
    """A table of the paper, and what it shows."""

    title: str
    table: Table

    def markdown(self) -> str:
        """Write it for people, below its title."""
        return f"### {self.title}\n\n{self.table.markdown()}"


def titled(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Titled:
    """Make a table with all its columns to the left.

    Examples
    --------
    >>> print(titled("Sizes", ["data", "users"], [["ours", 3]]).markdown())
    ### Sizes
    <BLANKLINE>
    | data | users |
    |---|---|
    | ours | 3 |
    """
    return Titled(title, Table(header, rows, left=len(header)))


def statistics(experiment: Experiment, size: Size, *, made_up: bool) -> Titled:
    """Table 1: how large the data are."""
    ours = f"made up like {experiment.title}" if made_up else experiment.title
    rows = [["the paper's " + experiment.title, *experiment.size], [ours, *size]]
    return titled("Table 1. The data", ["data", "users", "items", "interactions"], rows)


def complexity(growth: Mapping[str, Mapping[str, float]]) -> Titled:
    """Table 2: how the work grows, as published and as measured."""
    whats = list(next(iter(growth.values())))
    header = ["method", "time", "memory", *(f"twice the {what}" for what in whats)]
    rows = [
        [name, *_COMPLEXITY[name], *(f"{measured[what]:.2f} x" for what in whats)]
        for name, measured in growth.items()
    ]
    return titled("Table 2. How the work grows", header, rows)


def accuracy(points: Mapping[str, Sequence[Mapping[str, Any]]], k: int) -> Titled:
    """Every measured point of Figure 1 at one cutoff."""
    header = ["method", f"nDCG@{k}", "95 % interval", f"Gini@{k}", f"coverage@{k}", "settings"]
    rows = []
    for name, series in points.items():
        for point in series:
            interval = f"{point[f'ndcg@{k}_low']:.4f} to {point[f'ndcg@{k}_high']:.4f}"
            figures = (f"{point[f'{metric}@{k}']:.4f}" for metric in ("gini", "coverage"))
            settings = ", ".join(f"{key} {value:.3g}" for key, value in point["settings"].items())
            rows.append([name, f"{point[f'ndcg@{k}']:.4f}", interval, *figures, settings])
    return titled(f"Test users at K = {k}", header, rows)


def seconds(experiment: Experiment, times: Mapping[str, Mapping[str, Any]]) -> Titled:
    """Table 3: training and inference."""
    header = ["method", "training", "seconds an epoch", "epochs that ran", "training / exADMM's"]
    for k in experiment.timed:
        header += [f"lists, K = {k}"]
    header += ["the paper: training", *(f"the paper: K = {k}" for k in experiment.timed)]
    own = times["exADMM"]["seconds"] if "exADMM" in times else None
    rows = []
    for name, time in times.items():
        published = experiment.times[name]
        mark = " (extrapolated)" if time.get("extrapolated") else ""
        rows.append(
            [
                name,
                f"{time['seconds']:.4g}{mark}",
                time.get("seconds_per_epoch"),
                time["epochs"],
                f"{time['seconds'] / own:.2f}" if own else None,
                *(time["inference"][str(k)] for k in experiment.timed),
                *(
                    "NA" if value is None else value
                    for value in (published.training, *published.inference)
                ),
            ]
        )
    return titled("Table 3. Seconds", header, rows)
