"""What ``limelight demo`` tells: a table, two figures and a few sentences."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from limelight._base.documents import Table
from limelight._base.text import percent
from limelight.cli.demo.runs import DemoRun, K
from limelight.metrics.lists import ListCount
from limelight.report.exhibit import ExhibitPoint
from limelight.report.figures.exposures import lorenz
from limelight.report.figures.front import front
from limelight.report.figures.inputs import CountedExposure, Point
from limelight.report.figures.style import save

_HEAD = ("", "nDCG", "change", "Gini", "change", "coverage", "top 1 %")
_LEGEND = """\
Gini: 0 if all items get the same exposure, near 1 if a few get all of it.
coverage: share of the items that any list shows.
top 1 %: share of the exposure that the most exposed 1 % of the items hold."""


def tell(
    output: Path,
    run: DemoRun,
    served: Mapping[str, float],
    plain: Mapping[str, float],
    *,
    page: Path,
    figures: bool,
) -> str:
    """Write the table, what to do next, and what was asked for, served and measured."""
    head = (
        f"Lists of {K}: exposure over {run.front.population}, accuracy for "
        f"{run.result.test['scored_users']:,} test users among them"
    )
    table = Table(_HEAD, [_row(run.points[0], point) for point in run.points]).text()
    found = _finding(output, run, served, plain)
    parts = [head, table, _LEGEND, found, _next(output, page, figures=figures)]
    return "\n\n".join([*parts, answer(run, served)])


def _row(base: ExhibitPoint, point: ExhibitPoint) -> tuple[str, ...]:
    accuracy = evenness = ""
    if point is not base:
        accuracy = percent(_at_k(point, "ndcg") / _at_k(base, "ndcg") - 1, signed=True)
        evenness = f"{_at_k(point, 'gini') - _at_k(base, 'gini'):+.4f}"
    return (
        point.label,
        f"{_at_k(point, 'ndcg'):.4f}",
        accuracy,
        f"{_at_k(point, 'gini'):.4f}",
        evenness,
        percent(_at_k(point, "coverage")),
        percent(_at_k(point, "top_share")),
    )


def _at_k(point: ExhibitPoint, metric: str) -> float:
    return point.figures[f"{metric}@{K}"]


def _finding(
    output: Path, run: DemoRun, served: Mapping[str, float], plain: Mapping[str, float]
) -> str:
    result, key = run.result, f"true_relevance@{K}"
    return (
        f"The model in {output / 'model'} was asked for a Gini of {run.gini:g}, and fitted to all\n"
        f"users. {'The target was met' if result.met else 'Nearest was'} by {result.method}.\n"
        f"{_lower_half(run)}.\n"
        "These data are made up, so it is known what users truly like: of that, everybody's\n"
        f"lists hold {_than(served[key] / plain[key] - 1)} than without control."
    )


def _than(change: float) -> str:
    return f"{percent(abs(change))} {'less' if change < 0 else 'more'}"


def _lower_half(run: DemoRun) -> str:
    """Say what the least exposed half of the items gets."""
    parts = []
    for point in (run.wished, run.points[0]):
        exposure = np.sort(np.asarray(point.shown.exposure))
        parts.append(100 * exposure[: len(exposure) // 2].sum() / exposure.sum())
    return "The lower half of the items gets {:.0f} % of the exposure instead of {:.0f} %".format(
        *parts
    )


def _next(output: Path, page: Path, *, figures: bool) -> str:
    drawn = f"Open {page} in a browser: who gains, who loses, what it costs.\n"
    if figures:
        drawn += f"Figures: {output / 'tradeoff.png'} and {output / 'lorenz.png'}.\n"
    model, lists = output / "model", output / "lists.parquet"
    return (
        f"{drawn}Check it: make everybody's lists, and audit them.\n"
        f"  limelight recommend {model} -k {K} -o {lists}\n"
        f"  limelight audit {lists} --catalogue {model / 'items.parquet'} "
        f"--groups {output / 'providers.parquet'}"
    )


def answer(run: DemoRun, served: Mapping[str, float]) -> str:
    """Say what was asked for, whom it was served to, what was measured and what it cost."""
    test, loss = run.result.test, f"ndcg_loss@{K}"
    low, high = (percent(test[f"{loss}_{side}"]) for side in ("low", "high"))
    return (
        f"Asked for Gini {run.gini:g} over {run.market.interactions.n_users:,} users, "
        f"served {served['users']:,} users, measured {served[f'gini@{K}']:.2f},\n"
        f"cost {percent(test[loss])} of nDCG ({low} to {high})."
    )


def draw(output: Path, run: DemoRun) -> None:
    """Draw both fronts with what was asked for, and the Lorenz curves."""
    base, wished = run.points[0], run.wished
    size = ListCount(run.front.users, run.split.train.n_items)
    series: dict[str, list[Point]] = {base.method: [_drawn(run, base)]}
    for point in run.points[1:]:
        series.setdefault(point.method, [_drawn(run, base)]).append(_drawn(run, point))
    series[wished.method] = [_drawn(run, wished)]
    price = 100 * run.result.test[f"ndcg_loss@{K}"]
    title = f"A Gini of {_at_k(wished, 'gini'):.2f} costs {price:.0f} % of nDCG"
    save(front(series, title=title, accuracy=f"nDCG@{K}"), output / "tradeoff.png")
    compared = {
        point.label: CountedExposure(point.shown.exposure, size)
        for point in (base, wished, run.points[-2])
        if point.shown.exposure is not None
    }
    save(lorenz(compared, title=_lower_half(run)), output / "lorenz.png")


def _drawn(run: DemoRun, point: ExhibitPoint) -> Point:
    label = f"{point.strength:.2g}" if point.strength and point is not run.wished else ""
    users, items = run.front.users, run.split.train.n_items
    return Point(_at_k(point, "gini"), _at_k(point, "ndcg"), label, users, items)
