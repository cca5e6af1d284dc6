"""Measuring re-ranked lists beside everybody's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.evaluate.accumulate import ListAccumulator
from limelight.evaluate.exhibit import example_rows
from limelight.recommend.topk import empty_lists
from limelight.rerank.result import RerankResult, user_relevance

if TYPE_CHECKING:
    from limelight._arrays import Int32
    from limelight.rerank.pool import Pool


def measured(pool: Pool, places: Int32, started: float, **known: Any) -> RerankResult:
    """Measure lists, and everybody's own.

    Parameters
    ----------
    pool
        Candidates with relevance.
    places
        Everybody's list: places among her candidates.
    started
        When the work began, by ``time.perf_counter``.
    known
        What else the result says: how the lists were made, and for what.
    """
    k = places.shape[1]
    lists, own = empty_lists(pool.n_users, k), pool.own_places(k)
    after, before = (ListAccumulator(pool.n_items, k) for _ in range(2))
    losses = np.zeros(pool.n_users, dtype=np.float32)
    gained = kept = shown = 0.0
    examples = example_rows(pool.candidates.counts)
    own_examples = np.full((len(examples), k), -1, dtype=np.int32)
    for now, then in zip(pool.chosen(places), pool.chosen(own), strict=True):
        lists.ids[now.rows], lists.scores[now.rows] = now.ids, now.scores
        after.update(now.ids)
        before.update(then.ids)
        here = (examples >= now.rows.start) & (examples < now.rows.stop)
        own_examples[here] = then.ids[examples[here] - now.rows.start]
        worth, own_worth = user_relevance(now.relevance), user_relevance(then.relevance)
        losses[now.rows] = 1 - worth / np.where(own_worth > 0, own_worth, np.nan)
        gained, kept = gained + float(worth.sum()), kept + float(own_worth.sum())
        # A list's places that are among the first k are those of its user's own list.
        shown += float(np.sum((places[now.rows] >= 0) & (places[now.rows] < k)))
    metrics = after.result() | {f"{name}_before": v for name, v in before.result().items()}
    return RerankResult(
        lists=lists,
        user_ids=np.asarray(pool.candidates.user_ids),
        item_ids=np.asarray(pool.candidates.item_ids),
        metrics={name: value for name, value in metrics.items() if "@" in name},
        relevance_loss=1 - gained / kept if kept else 0.0,
        user_losses=losses,
        overlap=shown / max(float(np.sum(places >= 0)), 1.0),
        exposure=after.exposure(),
        exposure_before=before.exposure(),
        examples=examples,
        own_examples=own_examples,
        seconds=time.perf_counter() - started,
        **known,
    )
