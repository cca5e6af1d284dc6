"""Fronts of re-rankers as a figure, one panel a data set.

python -m limelight.benchmarks.front_plot epinions.json ml1m.json -o fronts.png
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.benchmarks.fronts import LEAST_ACCURACY
from limelight.report.figures import PALETTE, STYLE, load_matplotlib, save

_PANEL = 3.6  # inches


def main(
    results: Annotated[list[Path], typer.Argument(help="What compare_rerankers wrote, with -o.")],
    output: Annotated[Path, typer.Option("-o", help="The picture to write.")],
) -> None:
    """Draw nDCG against Gini of every re-ranker, all fits together, over the whole range."""
    mpl = load_matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL * len(results), _PANEL), layout="constrained")
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, path in zip(panels, results, strict=True):
            _draw(ax, json.loads(path.read_text(encoding="utf-8"))["runs"], path.stem)
        panels[0].legend(loc="lower left", fontsize="small")
        save(panels[0], output)


def _draw(ax: Any, runs: list[Any], title: str) -> None:
    for colour, method in zip(PALETTE, runs[0]["points"], strict=False):
        for number, run in enumerate(runs):
            ndcg = run["base"][1]
            points = [run["base"], *run["points"][method]]
            ginis, accuracy = [p[2] for p in points], [p[1] / ndcg for p in points]
            label = method if number == 0 else None
            ax.plot(ginis, accuracy, ".-", color=colour, linewidth=1, markersize=3, label=label)
    ax.axhspan(LEAST_ACCURACY, 1, color="#888888", alpha=0.12, linewidth=0)
    ax.invert_xaxis()
    ax.set_title(title)
    ax.set_xlabel("Gini@20 of exposure (right: more even)")
    ax.set_ylabel("nDCG@20, plain lists = 1")


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(main)
    app()
