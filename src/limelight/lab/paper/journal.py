"""All trials of a run as a table, to be published beside its report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from limelight._base.documents import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limelight.lab.paper.tuning import Search

_METRICS = ("ndcg", "gini")


def trials_table(searches: Iterable[Search]) -> Table:
    """Return a row for each trial and cutoff; all figures are of the validation users.

    Without the last column, two runs with the same seed and number of trials have the same rows.
    """
    rows = [
        [
            search.name,
            one.number + 1,
            k,
            search.seed,
            json.dumps(one.settings, sort_keys=True),
            one.epochs,
            *(one.metrics[f"{metric}@{k}"] for metric in _METRICS),
            round(one.seconds, 3),
        ]
        for search in searches
        for one in search.tried
        for k in search.cutoffs
    ]
    header = ["method", "trial", "K", "seed", "settings", "epochs", "nDCG", "Gini", "seconds"]
    return Table(header, rows, left=len(header))
