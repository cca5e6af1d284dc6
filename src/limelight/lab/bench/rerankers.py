"""Accuracy against exposure: how far each re-ranker evens out exposure at the same accuracy.

All re-rankers start from the same iALS lists of unseen users. A front is scored by the mean of 1 -
Gini over accuracies from 85 to 100 % of the plain lists', linear between its points.

    python -m limelight.lab.bench.rerankers score epinions=ratings.parquet,rating=rating -o e.json
    python -m limelight.lab.bench.rerankers draw e.json ml1m.json -o fronts.png

Data are named as for ``limelight bench --data``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - typer reads it from annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from scipy import sparse

from limelight._base.documents import Table
from limelight._base.files import atomic_file
from limelight.data.held_out import as_unseen
from limelight.data.split import split_users
from limelight.lab.bench.task import read_named
from limelight.lab.fronts import front
from limelight.metrics.lists import ListCount, over_all
from limelight.models import IALS
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.report.exhibit import measure_lists
from limelight.report.figures.style import PALETTE, STYLE, load_matplotlib, save
from limelight.rerank.methods.allocate import Allocate
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.fairrec import FairRec
from limelight.rerank.methods.frank_wolfe import FrankWolfe
from limelight.rerank.relevance import calibrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Int32
    from limelight.data.split import Split
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking


K = 20
LEAST_ACCURACY = 0.85
_KNOWN = 10_000
"""How many training users, at most, warm up beside the validation users."""
STRENGTHS = tuple(np.geomspace(0.03, 3, 16).tolist())
_PANEL = 3.6  # inches


class RerankedPoint(NamedTuple):
    """Accuracy and inequality of the lists of one strength."""

    strength: float
    ndcg: float
    gini: float


@dataclass
class Fronts:
    """Points of each method for one fit of the model, and those of the plain lists."""

    base: RerankedPoint
    points: dict[str, list[RerankedPoint]] = field(default_factory=dict)

    def score(self, method: str) -> float:
        """Return the mean of 1 - Gini at accuracies from 85 to 100 % of the plain lists'."""
        return front_score([self.base, *self.points[method]], self.base.ndcg)


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


def known_users(model: IALS, split: Split) -> Ranking:
    """Rank for the validation users, and for training users as if they were unseen."""
    training = as_unseen(split.train.matrix, _KNOWN)
    return model.ranking(sparse.vstack([split.validation.history, training], format="csr"))


def measure_fronts(
    split: Split, settings: dict[str, Any], seed: int
) -> Iterator[tuple[str, Fronts]]:
    """Fit iALS with these settings and measure one method after the other; yields after each.

    Validation users calibrate, and warm up together with training users; test users are served.
    """
    model = IALS(**settings, random_state=seed).fit(split.train, show_progress=False)
    full = model.ranking(split.test.history)
    held_out, popularity = split.validation, split.train.matrix.getnnz(axis=0)
    ranking = model.ranking(held_out.history)
    law = calibrate(ranking, held_out.targets, K, popularity=popularity)
    with candidates_of(full) as served, candidates_of(known_users(model, split)) as known:
        test, validation = CandidateRanking(served), CandidateRanking(known)

        def point(strength: float, ids: Int32) -> RerankedPoint:
            _, found = measure_lists(ids, split.test, K)
            return RerankedPoint(strength, found[f"ndcg@{K}"], found[f"gini@{K}"])

        fronts = Fronts(point(0.0, test.top(np.arange(test.n_users), K).ids))
        levels = range(1, test.n_users * K // test.n_items + 1)
        common = {"relevance": law, "random_state": seed}
        methods: dict[str, tuple[Sequence[float], Callable[[Any], Lists]]] = {
            "FairRec": (
                levels,
                lambda level: FairRec(guarantee=level, random_state=seed).rerank(full, K),
            ),
            "BestResponse": (
                STRENGTHS,
                lambda s: BestResponse(strength=s, **common).rerank(test, K),
            ),
            "Allocate": (levels, lambda level: Allocate(at_least=level, **common).rerank(test, K)),
            "Online": (
                STRENGTHS,
                lambda s: Online(strength=s, **common).warm_up(validation, K).rerank(test, K),
            ),
            "Prices": (
                STRENGTHS,
                lambda s: FrankWolfe(strength=s, **common).fit(validation, K).rerank(test, K),
            ),
        }
        for name, (strengths, rerank) in methods.items():
            fronts.points[name] = [point(s, rerank(s).ids) for s in strengths]
            yield name, fronts


def table(runs: list[Fronts]) -> str:
    """Show the mean score of every method, and its ratio to FairRec's."""
    means = {name: float(np.mean([run.score(name) for run in runs])) for name in runs[0].points}
    rows = [("method", "score", "/ FairRec", "lowest Gini")]
    for name, mean in means.items():
        lowest = min(point.gini for run in runs for point in run.points[name])
        rows.append((name, f"{mean:.4f}", f"{mean / means['FairRec']:.3f}", f"{lowest:.3f}"))
    return Table((), rows).text()


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def score(  # noqa: PLR0913 - one flag each
    data: Annotated[str, typer.Argument(help="As for `limelight bench --data`: NAME=FILE,...")],
    *,
    validation: Annotated[int, typer.Option(help="Users who calibrate and warm up.")] = 1000,
    test: Annotated[int, typer.Option(help="Users who are served.")] = 1000,
    seeds: Annotated[int, typer.Option(help="How many fits.")] = 3,
    factors: Annotated[int, typer.Option(help="As for IALS.")] = 64,
    unobserved_weight: Annotated[float, typer.Option(help="As for IALS.")] = 0.1,
    regularization: Annotated[float, typer.Option(help="As for IALS.")] = 0.003,
    epochs: Annotated[int, typer.Option(help="As for IALS.")] = 16,
    output: Annotated[Path | None, typer.Option("-o", help="A JSON file of all points.")] = None,
) -> None:
    """Score the fronts of all re-rankers on one data set."""
    split = split_users(read_named(data).interactions, validation=validation, test=test)
    settings = {
        "factors": factors,
        "unobserved_weight": unobserved_weight,
        "regularization": regularization,
        "epochs": epochs,
        "tolerance": 0.0,
    }
    runs = []
    for seed in range(seeds):
        for name, fronts in measure_fronts(split, settings, seed):
            typer.echo(f"seed {seed} {name}: {fronts.score(name):.4f}", err=True)
        runs.append(fronts)
    over = ListCount(split.test.n_users, split.train.n_items)
    typer.echo(f"{table(runs)}\nGini over {over}")
    if output is not None:
        record: dict[str, Any] = {"users": over.users, "items": over.items}
        record["runs"] = [{"base": run.base, "points": run.points} for run in runs]
        with atomic_file(output) as temporary:
            temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")


@app.command()
def draw(
    results: Annotated[list[Path], typer.Argument(help="What `score` wrote, with -o.")],
    output: Annotated[Path, typer.Option("-o", help="The picture to write.")],
) -> None:
    """Draw nDCG against Gini of every re-ranker, all fits together, over the whole range."""
    mpl = load_matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_PANEL * len(results), _PANEL), layout="constrained")
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, path in zip(panels, results, strict=True):
            record = json.loads(path.read_text(encoding="utf-8"))
            _draw_panel(ax, record["runs"], path.stem, over_all([ListCount.of(record)]))
        panels[0].legend(loc="lower left", fontsize="small")
        save(panels[0], output)


def _draw_panel(ax: Any, runs: list[Any], title: str, over: str) -> None:
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
    ax.set_xlabel(f"Gini@20 of exposure (right: more even)\n{over}".rstrip())
    ax.set_ylabel("nDCG@20, plain lists = 1")


if __name__ == "__main__":
    app()
