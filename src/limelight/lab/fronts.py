"""Which of many results are worth keeping: nobody else is both more accurate and more even.

Accuracy against exposure: how far each re-ranker evens out exposure at the same accuracy.

All re-rankers start from the same iALS lists of unseen users. A front is scored by the mean of 1 -
Gini over accuracies from 85 to 100 % of the plain lists', linear between its points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from limelight._base.documents import Table
from limelight.control.held_out_users import as_unseen
from limelight.metrics.accumulate import ListAccumulator
from limelight.models import IALS
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.methods.allocate import Allocate
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.fairrec import FairRec
from limelight.rerank.methods.frank_wolfe import FrankWolfe
from limelight.rerank.relevance import calibrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Int32
    from limelight.data.split import Split
    from limelight.recommend.ranking import Ranking


T = TypeVar("T")


def front(
    results: Sequence[T], accuracy: Callable[[T], float], inequality: Callable[[T], float]
) -> list[T]:
    """Keep what no other result beats in both, from the most even to the most accurate.

    Examples
    --------
    >>> front([(0.1, 0.9), (0.2, 0.8), (0.05, 0.5)], lambda r: r[0], lambda r: r[1])
    [(0.05, 0.5), (0.2, 0.8)]
    """
    kept: list[T] = []
    for result in sorted(results, key=lambda result: (inequality(result), -accuracy(result))):
        if not kept or accuracy(result) > accuracy(kept[-1]):
            kept.append(result)
    return kept


def thin(results: Sequence[T], most: int, position: Callable[[T], float]) -> list[T]:
    """Keep at most so many results, spread evenly over their positions, the ends included.

    Examples
    --------
    >>> thin([0, 1, 2, 3, 9, 10], 3, float)
    [0, 3, 10]
    """
    if len(results) <= most:
        return list(results)
    places = np.array([position(result) for result in results])
    wanted = np.linspace(places[0], places[-1], most)
    nearest = {int(np.abs(places - place).argmin()) for place in wanted}
    return [results[number] for number in sorted(nearest)]


K = 20
LEAST_ACCURACY = 0.85
_KNOWN = 10_000
"""How many training users, at most, warm up beside the validation users."""
STRENGTHS = tuple(np.geomspace(0.03, 3, 16).tolist())


class Point(NamedTuple):
    """The lists of one strength."""

    strength: float
    ndcg: float
    gini: float


@dataclass
class Fronts:
    """Points of each method for one fit of the model, and those of the plain lists."""

    base: Point
    points: dict[str, list[Point]] = field(default_factory=dict)

    def score(self, method: str) -> float:
        """Return the mean of 1 - Gini at accuracies from 85 to 100 % of the plain lists'."""
        return front_score([self.base, *self.points[method]], self.base.ndcg)


def front_score(points: list[Point], base: float) -> float:
    """Score a front, linear between the points that no other point beats.

    Examples
    --------
    >>> front_score([Point(0, 1.0, 1.0), Point(1, 0.85, 0.5)], base=1.0)
    0.25
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.ndcg, point.gini)):
        if not best or point.gini < best[-1].gini:
            best.append(point)
    accuracy = np.array([point.ndcg / base for point in best[::-1]])
    evenness = np.array([1 - point.gini for point in best[::-1]])
    grid = np.linspace(LEAST_ACCURACY, 1, 1001)
    return float(np.round(np.mean(np.interp(grid, accuracy, evenness)), 12))


def known_users(model: IALS, split: Split) -> Ranking:
    """Rank for the validation users, and for training users as if they were unseen."""
    training = as_unseen(split.train.matrix, _KNOWN)
    return model.ranking(sparse.vstack([split.validation.history, training], format="csr"))


def measure_fronts(
    split: Split, settings: dict[str, Any], seed: int
) -> Iterator[tuple[str, Fronts]]:
    """Fit a model and measure one method after the other; yields after each.

    Parameters
    ----------
    split
        Whose validation users calibrate, who warm up together with training users, and whose test
        users are served.
    settings
        Of iALS.
    seed
        Of the model and of the methods.
    """
    model = IALS(**settings, random_state=seed).fit(split.train, show_progress=False)
    full = model.ranking(split.test.history)
    law = calibrate(model.ranking(split.validation.history), split.validation.targets, K)
    with candidates_of(full) as served, candidates_of(known_users(model, split)) as known:
        test, validation = CandidateRanking(served), CandidateRanking(known)

        def point(strength: float, ids: Int32) -> Point:
            seen = ListAccumulator(split.train.n_items, K)
            seen.update(ids, split.test.targets)
            found = seen.result()
            return Point(strength, found[f"ndcg@{K}"], found[f"gini@{K}"])

        fronts = Fronts(point(0.0, test.top(np.arange(test.n_users), K).ids))
        levels = range(1, test.n_users * K // test.n_items + 1)
        common = {"relevance": law, "random_state": seed}
        methods: dict[str, Callable[[], list[Point]]] = {
            "FairRec": lambda: [
                point(level, FairRec(guarantee=level, random_state=seed).rerank(full, K).ids)
                for level in levels
            ],
            "BestResponse": lambda: [
                point(s, BestResponse(strength=s, **common).rerank(test, K).ids) for s in STRENGTHS
            ],
            "Allocate": lambda: [
                point(level, Allocate(at_least=level, **common).rerank(test, K).ids)
                for level in levels
            ],
            "Online": lambda: [
                point(s, Online(strength=s, **common).warm_up(validation, K).rerank(test, K).ids)
                for s in STRENGTHS
            ],
            "Prices": lambda: [
                point(s, FrankWolfe(strength=s, **common).fit(validation, K).rerank(test, K).ids)
                for s in STRENGTHS
            ],
        }
        for name, measured in methods.items():
            fronts.points[name] = measured()
            yield name, fronts


def table(runs: list[Fronts]) -> str:
    """Show the mean score of every method, and its ratio to FairRec's."""
    means = {name: float(np.mean([run.score(name) for run in runs])) for name in runs[0].points}
    rows = [("method", "score", "/ FairRec", "lowest Gini")]
    for name, mean in means.items():
        lowest = min(point.gini for run in runs for point in run.points[name])
        rows.append((name, f"{mean:.4f}", f"{mean / means['FairRec']:.3f}", f"{lowest:.3f}"))
    return Table((), rows).text()
