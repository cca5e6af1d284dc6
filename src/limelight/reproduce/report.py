"""Tables and figures of a run, as Markdown, CSV, PNG and SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._atomic import atomic_file
from limelight.report.figures import save
from limelight.reproduce import pictures, tables

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from limelight.reproduce.run import Findings, Plan

REPORT = "report.md"


def write_report(plan: Plan, found: Findings, folder: Path) -> Path:
    """Write everything into a folder; return the file to read first."""
    folder.mkdir(parents=True, exist_ok=True)
    experiment = plan.experiment
    title = f"{experiment.title}-like marketplace" if plan.made_up else experiment.title
    parts = [f"# The paper's experiments on {title}", _about(plan), "## Data"]
    parts.append(_table(folder, "table1", tables.statistics(
        experiment, found.size, made_up=plan.made_up
    )))  # fmt: skip
    parts += ["## Accuracy against exposure", _FIGURE_1, "![Figure 1](figure1.svg)"]
    _figure(folder, "figure1", pictures.tradeoffs(found.points, f"Figure 1. {title}"))
    for k, points in found.points.items():
        parts.append(_table(folder, f"figure1-{k}", tables.accuracy(points, k)))
    if found.exposures:
        k = experiment.cutoffs[-1]
        drawn = pictures.distribution(found.exposures, f"Figure 2. {title}, K = {k}")
        _figure(folder, "figure2", drawn)
        parts += ["## What the exposure weight does", _FIGURE_2, "![Figure 2](figure2.svg)"]
    if found.times:
        parts += ["## Time", _TABLE_3]
        parts.append(_table(folder, "table3", tables.seconds(experiment, found.times)))
        parts += ["## Growth", _TABLE_2, _table(folder, "table2", tables.complexity(found.growth))]
    return _write(folder / REPORT, "\n\n".join(parts) + "\n")


_FIGURE_1 = (
    "Settings were chosen on the validation users: the most accurate one for each K or, for "
    "methods that control exposure, all that no other beats in both accuracy and evenness; FairRec "
    "starts from the best iALS and is shown at every guarantee, or at some if there are many. The "
    "test users were looked at afterwards, once for each point below. The Gini counts the whole "
    "catalogue, with the weight 1 / log2(rank + 1); the broken line is the least Gini that so many "
    "lists can have. Intervals are bootstrapped over the test users."
)
_FIGURE_2 = (
    "The published settings with the paper's exposure weights, and with some in between where "
    "those do nothing or all they can. Left: the share of the exposure that the "
    "items hold together, less what they hold without control, items in that order. Right: each "
    "model's own Lorenz curve."
)
_TABLE_3 = (
    "By the clock on the wall, the fastest of up to three. Training runs for as many epochs as the "
    "paper's (iALS and exADMM 50, Mult-VAE 200, Multi-FR 500) without stopping early; where it was "
    "cut short, the rest is extrapolated and marked so. Lists are those of all test users; "
    "FairRec's are made with its largest guarantee. The paper does not say on what machine its "
    "seconds were measured."
)
_TABLE_2 = (
    "Left what the paper states, with our changes; right how much longer an epoch of ours takes "
    "(for FairRec: the lists of all users) when one thing of a small marketplace doubles."
)


def _about(plan: Plan) -> str:
    experiment = plan.experiment
    factors, epochs = plan.factors or experiment.factors, plan.epochs
    text = (
        f"{factors} factors; {experiment.held_out:,} users held out for validation and as many for "
        f"the test; a budget of {plan.budget:g} minutes."
    )
    if epochs:
        text += f" No model was trained for more than {epochs:,} epochs."
    if plan.made_up:
        text += (
            " The data are made up, in the size of the published ones: times and growth can be "
            "compared with the paper's, accuracy cannot."
        )
    return text


def _table(folder: Path, name: str, table: tables.Titled) -> str:
    _write(folder / f"{name}.csv", table.table.csv())
    return table.markdown()


def _figure(folder: Path, name: str, drawn: Axes) -> None:
    for kind in ("png", "svg"):
        save(drawn, folder / f"{name}.{kind}")


def _write(path: Path, text: str) -> Path:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path
