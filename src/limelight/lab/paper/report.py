"""The paper's tables and figures of a run, as Markdown, CSV, PNG and SVG, and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.files import atomic_file
from limelight._base.machine import available_threads, package_version, processor
from limelight.data.split import SPLIT_SEED
from limelight.lab import tables
from limelight.lab.paper.journal import trials_table
from limelight.lab.paper.plan import label
from limelight.metrics.lists import ListCount, over_all
from limelight.report.exhibit import ExhibitPoint, build_exhibit
from limelight.report.figures.exposures import lorenz
from limelight.report.figures.front import front
from limelight.report.figures.inputs import Point
from limelight.report.figures.style import MUTED, PALETTE, STYLE, load_matplotlib, save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from limelight._base.documents import Table
    from limelight.data import Split
    from limelight.lab.paper.plan import ReproductionPlan
    from limelight.lab.paper.run import Findings
    from limelight.lab.paper.tuning import Search
    from limelight.report.exhibit import Exhibit, ShownLists


REPORT = "report.md"
TRIALS = "trials.csv"
PROTOCOL = "the paper's protocol: exposure of test users' lists alone"
"""What all figures of exposure are of, here: those of other users are not counted."""


def write_report(
    plan: ReproductionPlan, found: Findings, folder: Path, searches: Sequence[Search] = ()
) -> Path:
    """Write everything into a folder; return the file to read first."""
    folder.mkdir(parents=True, exist_ok=True)
    experiment = plan.experiment
    title = f"{experiment.title}-like marketplace" if plan.made_up else experiment.title
    parts = [f"# The paper's experiments on {title}", _about(plan), "## Data"]
    sizes = tables.statistics(experiment, found.size, made_up=plan.made_up)
    parts.append(_table(folder, "table1", "Table 1. The data", sizes))
    planned = tables.planned(found.forecasts, found.trials, found.decisions)
    parts += ["## What was run", _PLANNED, _table(folder, "planned", "Methods", planned)]
    _write(folder / TRIALS, trials_table(searches).csv())
    parts += _tradeoff_parts(found, folder, title)
    if found.exposures:
        k = experiment.cutoffs[-1]
        drawn = distribution(found.exposures, f"Figure 2. {title}, K = {k}")
        _figure(folder, "figure2", drawn)
        parts += ["## What the exposure weight does", _FIGURE_2, "![Figure 2](figure2.svg)"]
        table = tables.weights(found.exposures, k)
        parts.append(_table(folder, "figure2", "Test users at every exposure weight", table))
    if found.times:
        table = tables.seconds(experiment, found.times)
        parts += ["## Time", _TABLE_3, _table(folder, "table3", "Table 3. Seconds", table)]
        table, title = tables.complexity(found.growth, found.times), "Table 2. How the work grows"
        parts += ["## Growth", _TABLE_2, _table(folder, "table2", title, table)]
    return _write(folder / REPORT, "\n\n".join(parts) + "\n")


def _tradeoff_parts(found: Findings, folder: Path, title: str) -> list[str]:
    """Write Figure 1 and its tables; return their part of the report."""
    over = f"Exposure is {measured_over(found)}."
    parts = ["## Accuracy against exposure", f"{_FIGURE_1} {over}", "![Figure 1](figure1.svg)"]
    _figure(folder, "figure1", tradeoffs(found.points, f"Figure 1. {title}"))
    for k, points in found.points.items():
        table = tables.accuracy(points, k, found.marks)
        parts.append(_table(folder, f"figure1-{k}", f"Test users at K = {k}", table))
    if any(found.paired.values()):
        parts += ["## Who finds more at the same evenness", _TABLE_4]
    for k, apart in found.paired.items():
        if apart:
            table = tables.paired(apart, k)
            parts.append(_table(folder, f"table4-{k}", f"Table 4. Beside exADMM, K = {k}", table))
    return parts


_PLANNED = (
    "What one setting was expected to take, timed on some of the users before the start, and how "
    f"many settings were tried, for re-rankers at all K together. All of them are in "
    f"[{TRIALS}]({TRIALS}), with their figures for the validation users."
)

_FIGURE_1 = (
    "Settings were chosen on the validation users: the most accurate one for each K or, for "
    "methods that control exposure, all that no other beats in both accuracy and evenness. FairRec "
    "and BestResponse start from the best iALS for each K. FairRec's lists have a length of their "
    "own and are cut to K; its guarantee is a share of the most that such lists can give every "
    "item, and may be a fraction; with `forced` 1 what was guaranteed comes first, as in the "
    "published code. Fits of iALS and exADMM end where the objective stands still. The test users "
    "were looked at afterwards, once for each point below. The Gini counts the whole catalogue, "
    "with the weight 1 / log2(rank + 1); the broken line is the least Gini that so many lists can "
    "have. Intervals are bootstrapped over the test users. nDCG@100, recall@20 and recall@50 are "
    "those of the same models, to compare with what others report; re-rankers make lists of one "
    "length."
)

_TABLE_4 = (
    "Each method at the most accurate of its points above that is no more unequal, both by the "
    "validation users; figures are those of the test users. Differences of nDCG are those of the "
    "same users, and so are their intervals, which are bootstrapped: a method finds more than "
    "exADMM as published if its interval lies above 0. The Gini indices of two methods at one "
    "level differ as far as their points do."
)

_FIGURE_2 = (
    "The published settings with the paper's exposure weights, and with some in between where "
    "those do nothing or all they can. Left: the share of the exposure that the "
    "items hold together, less what they hold without control, items in that order. Right: each "
    "model's own Lorenz curve. Lists are those of the test users here, too."
)

_TABLE_3 = (
    "By the clock on the wall, the fastest of up to three. Training runs for as many epochs as the "
    "paper's (iALS and exADMM 50, Mult-VAE 200, Multi-FR 500) without stopping early; where it was "
    "cut short, the rest is extrapolated and marked so. d is the length of the vectors, or the "
    "width of a network's layers; times are divided by exADMM's where d is the same. Lists are "
    "those of all test users; FairRec's are made with its largest guarantee. The paper names no "
    "machine."
)

_TABLE_2 = (
    "Left what the paper states, with our changes; right how much longer an epoch of ours takes "
    "(for FairRec: the lists of all users) when one thing of a small marketplace doubles. Memory "
    "is measured on the data above: by how much one epoch (for FairRec: the lists of the test "
    "users) raises the peak of a process that may hold freed memory."
)


def measured_over(found: Findings) -> str:
    """Say of how many lists the figures are, and by what protocol."""
    points = [one for methods in found.points.values() for some in methods.values() for one in some]
    counts = (ListCount(one.get("users"), found.size.items) for one in points)
    return f"{over_all(counts)}, by {PROTOCOL}"


def _about(plan: ReproductionPlan) -> str:
    experiment, networks = plan.experiment, ""
    if plan.latent_width != plan.width:
        networks = f" ({plan.latent_width} in the layers of networks)"
    limit = f"a budget of {plan.budget:g} minutes"
    if plan.trials is not None:
        limit = f"{plan.trials:,} settings for each method and, of re-rankers, each K"
    text = (
        f"{plan.width} factors{networks}; {experiment.held_out:,} users held out for validation "
        f"and as many for the test; {limit}; seed {plan.seed}, and {SPLIT_SEED} for the split."
    )
    if plan.epochs:
        text += f" No model was trained for more than {plan.epochs:,} epochs."
    name, _ = processor()
    threads = plan.threads or available_threads()
    text += f" limelight {package_version()}, {threads} threads on: {name}."
    if plan.made_up:
        text += (
            " The data are made up, in the size of the published ones: times and growth can be "
            "compared with the paper's, accuracy cannot."
        )
    return text


def _table(folder: Path, name: str, title: str, table: Table) -> str:
    """Write a table for programs; return it for people, below its title."""
    _write(folder / f"{name}.csv", table.csv())
    return f"### {title}\n\n{table.markdown()}"


def _figure(folder: Path, name: str, drawn: Axes) -> None:
    for kind in ("png", "svg"):
        save(drawn, folder / f"{name}.{kind}")


def _write(path: Path, text: str) -> Path:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def tradeoffs(points: Mapping[int, Mapping[str, Sequence[Mapping[str, Any]]]], title: str) -> Axes:
    """Draw Figure 1: accuracy against the inequality of exposure, one panel for each cutoff."""
    mpl = load_matplotlib()
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(points), title)
        for ax, (k, methods) in zip(panels, points.items(), strict=True):
            series = {
                label(name): [
                    Point(
                        one[f"gini@{k}"], one[f"ndcg@{k}"], "", one.get("users"), one.get("items")
                    )
                    for one in measured
                ]
                for name, measured in methods.items()
            }
            front(series, title=f"K = {k}", accuracy=f"nDCG@{k}", ax=ax)
            for line in ax.get_legend_handles_labels()[0][len(PALETTE) :]:
                line.set(marker="s", linestyle=(0, (2, 1)))  # its colour has a line already
            floor = next(iter(methods.values()))[0][f"gini_floor@{k}"]
            ax.axvline(floor, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
            ax.annotate(
                "floor", (floor, 1), (4, -4), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", color=MUTED,
            )  # fmt: skip
            ax.get_legend().remove()
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6))
    first: Axes = panels[0]
    return first


def distribution(exposures: Mapping[float, Sequence[float]], title: str) -> Axes:
    """Draw Figure 2: what exposure weights, the first of them 0, do to the exposure of the items.

    On the left as the paper does, against no control: items stand in the order of their exposure
    without it, and a curve is the share of the exposure that the first items hold together, less
    what they hold without it. On the right the Lorenz curves, each with its own order.
    """
    mpl = load_matplotlib()
    names = {weight: f"{weight:.0e}" if weight else "0" for weight in exposures}
    with mpl.rc_context(STYLE):
        _, (left, right) = _panels(2, title)
        base = np.asarray(next(iter(exposures.values())))
        order = np.argsort(base, kind="stable")
        items = np.arange(1, len(base) + 1) / len(base)
        held = np.cumsum(base[order]) / base.sum()
        for number, (weight, exposure) in enumerate(exposures.items()):
            own = np.asarray(exposure)
            gained = np.cumsum(own[order]) / own.sum() - held
            left.plot(items, gained, color=PALETTE[number], label=names[weight])
        left.set(xlim=(0, 1), xlabel="Items, from the least to the most exposed without control")
        left.set_ylabel("Share of the exposure, less without control")
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        left.legend(title="exposure weight")
        left.set_title("What the less exposed items gain")
        lorenz({names[weight]: own for weight, own in exposures.items()}, ax=right)
        right.set_title("Lorenz curves")
    first: Axes = left
    return first


def _panels(count: int, title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * count, 4.8), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure, np.atleast_1d(figure.subplots(1, count))


_BASE, _CHOSEN = "iALS", label("exADMM")


def exhibit_of(
    plan: ReproductionPlan,
    found: Findings,
    split: Split,
    shown_at: Callable[[Mapping[str, Any]], ShownLists],
) -> Exhibit:
    """Put together what a page shows: all methods at the longest lists."""
    k = max(found.points)
    points = [
        _point(name, one, k, shown_at(one))
        for name, measured in found.points[k].items()
        for one in sorted(measured, key=lambda one: -one[f"gini@{k}"])
    ]
    names = [point.method for point in points]
    base = names.index(_BASE) if _BASE in names else None
    return build_exhibit(
        "reproduce",
        f"The paper's experiments: {plan.experiment.title}{'-like' * plan.made_up}",
        k,
        points,
        split=split,
        base=base,
        chosen=names.index(_CHOSEN) if _CHOSEN in names else base or 0,
        notes=(f"{PROTOCOL[0].upper()}{PROTOCOL[1:]}.",),
    )


def _point(name: str, one: Mapping[str, Any], k: int, shown: ShownLists) -> ExhibitPoint:
    figures = {key: value for key, value in one.items() if f"@{k}" in key or key == "users"}
    settings = one["settings"]
    dials = ("exposure_weight", "scale", "strength", "preference", "exposure_strength")
    strength = next((settings[dial] for dial in dials if dial in settings), None)
    text = label(name) if strength is None else f"{label(name)}, {strength:.3g}"
    return ExhibitPoint(label(name), text, figures, strength, settings, shown=shown)
