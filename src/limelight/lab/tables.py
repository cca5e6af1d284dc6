"""Tables of benchmarks, and the paper's with our figures beside the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from limelight._base.documents import Table
from limelight.lab.paper.plan import FAIRREC, label
from limelight.metrics.exposure import coverage, gini

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limelight.lab.bench.records import Entry, Race
    from limelight.lab.paper.experiments import DataSize, Experiment, Time
    from limelight.lab.paper.paired import Difference


T = TypeVar("T")
_EXADMM = ("nnz d² + items d³ (ours: items only; users nnz d + users d²)", "(users + items) d")
_COMPLEXITY = {
    "iALS": ("nnz d² + (users + items) d³", "(users + items) d", "users, items"),
    "Mult-VAE": ("users x items x d", "items x d", "users"),
    FAIRREC: (
        "users x items x (d + log K)",
        "users x candidates (the paper: users x items)",
        "neither (ours: what users like best is found in parallel, turns are not)",
    ),
    "Multi-FR": ("nnz x items + users x items x d", "items x d", "users"),
    "exADMM": (*_EXADMM, "users, items"),
    "exADMM-exact": (
        "not in the paper (ours: nnz d² + (users + items) d³)",
        "not in the paper (ours: (users + items) d)",
        "not in the paper (ours: users, items)",
    ),
}


def statistics(experiment: Experiment, size: DataSize, *, made_up: bool) -> Table:
    """Table 1: how large the data are."""
    ours = f"made up like {experiment.title}" if made_up else experiment.title
    published = "the paper's" if experiment.is_published else "our count of"
    rows = [[f"{published} {experiment.title}", *experiment.size], [ours, *size]]
    return Table(["data", "users", "items", "interactions"], rows, left=4)


def complexity(
    growth: Mapping[str, Mapping[str, float]], times: Mapping[str, Mapping[str, Any]]
) -> Table:
    """Table 2: how the work grows, as published and as measured, and the memory that it takes."""
    whats = list(next(iter(growth.values())))
    header = ["method", "time", "memory", "in parallel over", "memory measured"]
    header += [f"twice the {what}" for what in whats]
    rows = [
        [
            label(name),
            *_COMPLEXITY[name],
            mebibytes(times[name]["bytes"]),
            *(f"{measured[what]:.2f} x" for what in whats),
        ]
        for name, measured in growth.items()
    ]
    return Table(header, rows, left=len(header))


def accuracy(
    points: Mapping[str, Sequence[Mapping[str, Any]]], k: int, marks: Mapping[str, str]
) -> Table:
    """Every measured point of Figure 1 at one cutoff, with what others report beside it."""
    header = ["method", f"nDCG@{k}", "95 % interval", f"Gini@{k}", f"coverage@{k}"]
    header += ["nDCG@100", "recall@20", "recall@50", "epochs", "settings"]
    rows = []
    for name, series in points.items():
        mark = f" ({marks[name]})" if name in marks else ""
        for point in series:
            interval = f"{point[f'ndcg@{k}_low']:.4f} to {point[f'ndcg@{k}_high']:.4f}"
            figures = (f"{point[f'{metric}@{k}']:.4f}" for metric in ("gini", "coverage"))
            standard = point.get("standard", {})
            further = (
                f"{standard[metric]:.4f}" if metric in standard else ""
                for metric in ("ndcg@100", "recall@20", "recall@50")
            )
            settings = ", ".join(f"{key} {value:.3g}" for key, value in point["settings"].items())
            start = [f"{label(name)}{mark}", f"{point[f'ndcg@{k}']:.4f}", interval, *figures]
            rows.append([*start, *further, point.get("epochs"), settings])
    return Table(header, rows, left=len(header))


def paired(differences: Sequence[Difference], k: int) -> Table:
    """Who finds more at the same evenness: differences from exADMM over the same test users."""
    header = ["Gini, validation", "method", f"nDCG@{k}", f"Gini@{k}"]
    header += [f"exADMM: nDCG@{k}", f"exADMM: Gini@{k}", "difference", "95 % interval"]
    rows = [
        [
            f"at most {one.level:g}",
            label(one.name),
            *(f"{value:.4f}" for value in (one.accuracy, one.gini)),
            *(f"{value:.4f}" for value in (one.base_accuracy, one.base_gini)),
            f"{one.difference:+.4f}",
            f"{one.low:+.4f} to {one.high:+.4f}",
        ]
        for one in differences
    ]
    return Table(header, rows, left=len(header))


def weights(exposures: Mapping[float, Sequence[float]], k: int) -> Table:
    """What Figure 2 draws, in numbers."""
    rows = []
    for weight, given in exposures.items():
        exposure = np.asarray(given)
        rows.append([f"{weight:g}", f"{gini(exposure):.4f}", f"{coverage(exposure):.4f}"])
    return Table(["exposure weight", f"Gini@{k}", f"coverage@{k}"], rows, left=3)


def planned(
    forecasts: Mapping[str, Any], trials: Mapping[str, int], decisions: Mapping[str, Any]
) -> Table:
    """What each method was expected to take, how many settings it tried, and what was cut."""
    header = [
        "method",
        "a setting",
        "an epoch",
        "memory",
        "settings tried",
        "shortened or left out",
    ]
    rows = [
        [
            label(name),
            duration(one.seconds),
            "" if one.epoch is None else duration(one.epoch),
            mebibytes(one.n_bytes),
            trials.get(name, 0),
            decisions[name].left_out or decisions[name].mark,
        ]
        for name, one in forecasts.items()
    ]
    return Table(header, rows, left=len(header))


def seconds(experiment: Experiment, times: Mapping[str, Mapping[str, Any]]) -> Table:
    """Table 3: training and inference.

    Times are compared with exADMM's only where a method has vectors of the same length.
    """
    header = ["method", "d", "training", "seconds an epoch", "epochs that ran"]
    header += ["training / exADMM's", *(f"lists, K = {k}" for k in experiment.timed)]
    if experiment.times:
        header += ["the paper: training", *(f"the paper: K = {k}" for k in experiment.timed)]
    own = times["exADMM"]["seconds"] if "exADMM" in times else None
    d = times["exADMM"]["d"] if "exADMM" in times else None
    rows = []
    for name, time in times.items():
        mark = " (extrapolated)" if time.get("extrapolated") else ""
        row = [
            label(name),
            time["d"],
            f"{time['seconds']:.4g}{mark}",
            time.get("seconds_per_epoch"),
            time["epochs"],
            f"{time['seconds'] / own:.2f}" if own and time["d"] == d else None,
            *(time["inference"][str(k)] for k in experiment.timed),
        ]
        if experiment.times:
            published = experiment.times.get(name)
            row += ["not timed"] * 3 if published is None else _published(published)
        rows.append(row)
    return Table(header, rows, left=len(header))


def _published(time: Time) -> list[Any]:
    return ["NA" if value is None else value for value in (time.training, *time.inference)]


def details(races: Sequence[Race]) -> str:
    """Write one line for each entry, and only columns that say something.

    Examples
    --------
    >>> from limelight.lab.bench.records import Entry, Race
    >>> race = Race("exact", "ml-1m", (Entry("limelight", 0.1), Entry("irspack", 0.4)), factors=64)
    >>> print(details([race]))
    | data | factors | threads | who | time | ratio |
    |---|---|---|---|--:|--:|
    | ml-1m | 64 | 1 | limelight | 100 ms |  |
    | ml-1m | 64 | 1 | irspack | 400 ms | 0.25 |
    """
    entries = [_cells(race, entry) for race in races for entry in race.entries]
    heads = [head for head in entries[0] if any(cells[head] for cells in entries)]
    rows = [[cells[head] for head in heads] for cells in entries]
    return Table(heads, rows, left=heads.index("who") + 1).markdown()


def _cells(race: Race, entry: Entry) -> dict[str, str]:
    """Say by column what is known of an entry; what was not measured is blank."""
    return {
        "data": race.data,
        "factors": _written(race.factors, str),
        "threads": str(race.threads),
        "what": race.part,
        "who": entry.who,
        "time": _written(entry.seconds, duration),
        "memory": _written(entry.n_bytes, mebibytes),
        "ratio": "" if entry is race.entries[0] else f"{race.ratio(entry):.2f}",
        "GFLOP/s": _written(race.rate(entry), giga),
        "of peak": _written(race.share_of_peak(entry), "{:.0%}".format),
        "objective": _written(entry.objective, six_digits),
        "nDCG@20": _written(entry.ndcg, "{:.4f}".format),
    }


def _written(value: T | None, write: Callable[[T], str]) -> str:
    return "" if value is None else write(value)


def glance(races: Sequence[Race]) -> str:
    """Write the ratios of a job that ran at several numbers of factors, one column for each.

    Examples
    --------
    >>> from limelight.lab.bench.records import Entry, Race
    >>> race = Race("exact", "ml-1m", (Entry("limelight", 0.1), Entry("irspack", 0.4)), factors=64)
    >>> print(glance([race]))
    | data | threads | against | 64 factors |
    |---|---|---|--:|
    | ml-1m | 1 | irspack | 0.25 |
    """
    sizes = sorted({race.factors for race in races if race.factors})
    lines: dict[tuple[str, str, str], dict[int | None, str]] = {}
    for race in races:
        for entry in race.entries[1:]:
            line = lines.setdefault((race.data, str(race.threads), entry.who), {})
            line[race.factors] = f"{race.ratio(entry):.2f}"
    heads = ["data", "threads", "against", *(f"{size} factors" for size in sizes)]
    rows = [(*start, *(line.get(size, "") for size in sizes)) for start, line in lines.items()]
    return Table(heads, rows, left=3).markdown()


def duration(seconds: float) -> str:
    """Write a time with three digits.

    Examples
    --------
    >>> duration(0.01234), duration(12.34)
    ('12.3 ms', '12.3 s')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms"


def mebibytes(n_bytes: float) -> str:
    """Write a number of bytes in MiB, with one decimal."""
    return f"{n_bytes / 2**20:,.1f} MiB"


def giga(rate: float) -> str:
    """Write operations a second in billions."""
    return f"{rate / 1e9:.1f}"


def six_digits(value: float) -> str:
    """Write an objective with at least six digits, and no exponent.

    Examples
    --------
    >>> six_digits(0.7227421), six_digits(1027370.0)
    ('0.722742', '1,027,370')
    """
    return f"{value:,.0f}" if value >= 1e5 else f"{value:.6g}"
