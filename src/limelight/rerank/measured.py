"""Measuring re-ranked lists beside everybody's own."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.groups import group_figures
from limelight.metrics.lists import Lengths, lengths_of, user_relevance
from limelight.recommend.ranking import CandidateRanking
from limelight.report.exhibit import MOST_KEPT, ShownLists, example_rows
from limelight.rerank.result import RerankPoint, RerankResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.targets.providers import Providers
    from limelight.rerank.targets.search import Trial


class Figures(NamedTuple):
    """Sums over the lists of some users, and over their own lists; :meth:`total` adds shards."""

    after: ListAccumulator
    before: ListAccumulator
    losses: Float32
    """By user: the share of the relevance of her own list that was given up."""
    relevance: tuple[float, float]
    """After and before."""
    kept: int
    """How many places hold what stood in its user's own list."""
    lengths: Lengths

    @classmethod
    def total(cls, parts: Sequence[Figures]) -> Figures:
        """Add up the figures of shards, whose arrays may be read-only after their way from Ray."""
        n_items, k = parts[0].after.n_items, parts[0].after.k
        after, before = (ListAccumulator(n_items, k) for _ in range(2))
        for part in parts:
            after.merge(part.after)
            before.merge(part.before)
        losses, relevance, kept, lengths = zip(*(part[2:] for part in parts), strict=True)
        gained, own = map(sum, zip(*relevance, strict=True))
        shape = Lengths(*map(sum, zip(*lengths, strict=True)))
        return cls(after, before, np.concatenate(losses), (gained, own), sum(kept), shape)


def figures(pool: Pool, places: Int32) -> Figures:
    """Measure the lists of a pool's users, as places among their candidates, and their own."""
    k, own = places.shape[1], pool.own_places(places.shape[1])
    after, before = (ListAccumulator(pool.n_items, k) for _ in range(2))
    losses = np.zeros(pool.n_users, dtype=np.float32)
    gained, own_total, stayed = 0.0, 0.0, 0
    for now, then in zip(pool.chosen(places), pool.chosen(own), strict=True):
        after.update(now.ids)
        before.update(then.ids)
        worth, own_worth = user_relevance(now.relevance), user_relevance(then.relevance)
        losses[now.rows] = 1 - worth / np.where(own_worth > 0, own_worth, np.nan)
        gained, own_total = gained + float(worth.sum()), own_total + float(own_worth.sum())
        is_own = (now.ids[:, :, None] == then.ids[:, None, :]).any(axis=2)
        stayed += int(np.sum(is_own & (now.ids >= 0)))
    return Figures(after, before, losses, (gained, own_total), stayed, lengths_of(places))


class RerankFront:
    """What every strength of a search gave, for the front of a page: the last trial of each."""

    def __init__(self, pool: Pool, k: int) -> None:
        self._pool, self._k = pool, k
        self._rows = example_rows(pool.candidates.counts)
        self._found: dict[float, RerankPoint] = {}

    def see(self, trial: Trial) -> None:
        """Measure the lists of a trial, as those of a result are."""
        lists = ListAccumulator(self._pool.n_items, self._k)
        examples = np.full((len(self._rows), self._k), -1, dtype=np.int32)
        for rows, ids, _, _ in self._pool.chosen(trial.lists):
            lists.update(ids)
            here = (self._rows >= rows.start) & (self._rows < rows.stop)
            examples[here] = ids[self._rows[here] - rows.start]
        metrics = {name: value for name, value in lists.result().items() if "@" in name}
        metrics[f"relevance@{self._k}"] = 1 - trial.measure.loss
        exposure = lists.exposure() if self._pool.n_items <= MOST_KEPT else None
        shown = ShownLists(exposure, examples)
        self._found[trial.strength] = RerankPoint(trial.strength, metrics, shown)

    def points(self) -> tuple[RerankPoint, ...]:
        """Return what was found, from no control up."""
        return tuple(point for _, point in sorted(self._found.items()))


class ExampleLists(NamedTuple):
    """Some users of all kinds: their rows, and their lists before."""

    rows: Int64
    own: Int32


def examples_of(candidates: Candidates, k: int) -> ExampleLists:
    """Choose users to show, and look up their own lists."""
    rows = example_rows(candidates.counts)
    return ExampleLists(rows, CandidateRanking(candidates).top(rows, k).ids)


def measured(
    pool: Pool,
    places: Int32,
    started: float,
    *,
    providers: Providers | None = None,
    **known: Any,
) -> RerankResult:
    """Measure lists, and everybody's own, and put them into a result.

    Work began when ``time.perf_counter`` was ``started``; ``providers`` are measured as well;
    ``known`` is what else the result says: how the lists were made, and for what.
    """
    found = result_of(
        figures(pool, places),
        examples_of(pool.candidates, places.shape[1]),
        lists=pool.lists(places),
        user_ids=np.asarray(pool.candidates.user_ids),
        item_ids=np.asarray(pool.candidates.item_ids),
        seconds=time.perf_counter() - started,
        **known,
    )
    if providers is None:
        return found
    more = group_figures(providers.members, found.exposure_before, found.exposure, found.k)
    return replace(found, n_groups=int(more.pop("groups")), metrics=found.metrics | more)


def result_of(found: Figures, examples: ExampleLists, **known: Any) -> RerankResult:
    """Put figures of all users into a result, whose other fields are ``known``."""
    metrics = found.after.result()
    metrics |= {f"{name}_before": value for name, value in found.before.result().items()}
    gained, own_total = found.relevance
    return RerankResult(
        metrics={name: value for name, value in metrics.items() if "@" in name},
        relevance_loss=1 - gained / own_total if own_total else 0.0,
        user_losses=found.losses,
        overlap=found.kept / max(found.lengths.places, 1),
        exposure=found.after.exposure(),
        exposure_before=found.before.exposure(),
        examples=examples.rows,
        own_examples=examples.own,
        lengths=found.lengths,
        **known,
    )
