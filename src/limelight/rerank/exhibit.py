"""What a re-ranking has to show: everybody's own lists, and the new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.evaluate.exhibit import Examples, Exhibit, Point, Sight
from limelight.evaluate.making import how_made

if TYPE_CHECKING:
    from limelight.rerank.result import RerankResult


def exhibit_of(found: RerankResult) -> Exhibit:
    """Put together what a page shows of re-ranked lists.

    Parameters
    ----------
    found
        The lists.
    """
    k = found.k
    own = {
        name.removesuffix("_before"): value
        for name, value in found.metrics.items()
        if name.endswith("_before")
    }
    now = {name: value for name, value in found.metrics.items() if not name.endswith("_before")}
    users = np.asarray(found.user_ids)[found.examples]
    return Exhibit(
        kind="rerank",
        title=f"Lists of {k}, re-ranked",
        k=k,
        points=(
            Point(
                "Own lists",
                "everybody's own lists",
                own | {f"relevance@{k}": 1.0},
                strength=0.0,
                sight=Sight(found.exposure_before, found.own_examples),
            ),
            Point(
                found.method,
                found.method,
                now | {f"relevance@{k}": 1 - found.relevance_loss},
                strength=found.strength,
                settings={"method": found.method, "strength": found.strength, **found.goal},
                sight=Sight(found.exposure, found.lists.ids[found.examples]),
            ),
        ),
        item_ids=found.item_ids,
        chosen=1,
        examples=Examples(users),
        data={
            "Users": f"{found.lengths.users:,}",
            "Items": f"{len(found.item_ids):,}",
            "Places": f"{found.lengths.places:,}",
        },
        made=how_made(seconds=found.seconds),
        notes=found.notes,
    )
