"""Held-out users that tell which epoch was the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._errors import DataError
from limelight.data.split import hold_out_users
from limelight.evaluate.accuracy import match, ndcg_of
from limelight.models.training import training_rows
from limelight.recommend.histories import history_rows, take_rows
from limelight.recommend.ranking import VectorRanking
from limelight.recommend.topk import batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._arrays import Float32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions

CUTOFF = 100
_SHARE = 0.1
_LISTED = 1024  # users at a time


class Parts(NamedTuple):
    """What is learnt from, and who tells how well."""

    training: Csr
    history: Csr
    targets: Any


def divide(data: Interactions, validation: Any, seed: int) -> Parts:
    """Take the validation users that are given, or hold some users out.

    Parameters
    ----------
    data
        All that there is to learn from.
    validation
        A held-out part with ``history`` and ``targets``, or None.
    seed
        Of the draw, where there is one.
    """
    training = training_rows(data)
    if validation is None:
        others, validation = hold_out_users(data, _SHARE, seed)
        training = take_rows(training, others)
        history = history_rows(validation.history, np.arange(data.n_items))
    else:
        if not (hasattr(validation, "history") and hasattr(validation, "targets")):
            message = f"no history and targets to validate on: {type(validation).__name__}"
            raise DataError(message, hint="pass a held-out part such as split.validation")
        history = history_rows(validation.history, data.item_ids)
    expected = (history.n_rows, data.n_items)
    if validation.targets.shape != expected:
        message = f"validation targets have shape {validation.targets.shape}, not {expected}"
        raise DataError(message, hint="one row for each history, one column for each item")
    if not validation.targets.nnz:
        message = f"none of the {history.n_rows:,} validation users has a target to find"
        hint = "a split with validation users helps; who has fewer than 5 items gets no targets"
        raise DataError(message, hint=hint)
    return Parts(training, history, validation.targets)


def validation_ndcg(
    parts: Parts, item_vectors: Float32, user_vectors: Callable[[Int64], Float32], threads: int
) -> float:
    """Measure nDCG@100 of the lists that these vectors make."""
    ranking = VectorRanking(
        item_vectors,
        user_vectors,
        n_users=parts.history.n_rows,
        hidden=parts.history,
        threads=threads,
    )
    k = min(CUTOFF, ranking.n_items)
    found = []
    for rows in batches(ranking.n_users, _LISTED):
        lists = ranking.top(np.arange(rows.start, rows.stop), k)
        found.append(ndcg_of(match(lists.ids, parts.targets[rows]), k))
    return float(np.nanmean(np.concatenate(found)))
