"""What a front has to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.evaluate.exhibit import Examples, Exhibit, Point, held_out_rows
from limelight.evaluate.exposure import top_share
from limelight.evaluate.making import about_data, how_made

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from limelight.data.split import Split
    from limelight.evaluate.exhibit import Sight
    from limelight.tune.frontier_result import Frontier, FrontierPoint

_NAMES = {
    "plain": "No control",
    "exadmm": "exADMM",
    "best-response": "Best response",
    "online": "Online",
    "prices": "Prices",
}


def exhibit_of(
    found: Frontier,
    split: Split,
    settings: Mapping[str, Any],
    sight_of: Callable[[FrontierPoint], Sight],
) -> Exhibit:
    """Put together what a page shows of a front; the plain model comes first, and once.

    Parameters
    ----------
    found
        The front.
    split
        What it is of.
    settings
        Of the factor model.
    sight_of
        What the lists of a point look like.
    """
    kept = [found.points[0], *(point for point in found.points if point.number)]
    best = found.best()
    points = tuple(_point(point, found.at, settings, sight_of(point)) for point in kept)
    return Exhibit(
        kind="frontier",
        title=f"What even exposure costs: {' and '.join(_NAMES[name] for name in found.methods)}",
        k=found.at,
        points=points,
        item_ids=split.train.item_ids,
        chosen=kept.index(best) if best in kept else 0,
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        examples=Examples.of(held_out_rows(split.test), split.test),
        data=about_data(split),
        made=how_made(
            seconds=sum(point.wall_seconds for point in kept), seed=settings.get("random_state")
        ),
        notes=found.notes,
    )


def _point(point: FrontierPoint, k: int, settings: Mapping[str, Any], sight: Sight) -> Point:
    method = point.method if point.number else "plain"
    figures = point.test.to_dict(k)
    if sight.exposure is not None:
        figures[f"top_share@{k}"] = top_share(sight.exposure)
    name = _NAMES[method]
    return Point(
        method=name,
        label=f"{name}, strength {point.strength:.3g}" if point.number else "no control",
        figures=figures,
        strength=point.strength,
        settings={"strength": point.strength, "epochs": point.epochs, **_told(settings)},
        on_front=point.on_front,
        sight=sight,
    )


def _told(settings: Mapping[str, Any]) -> dict[str, Any]:
    names = ("factors", "regularization", "unobserved_weight", "random_state")
    return {name: settings[name] for name in names if name in settings}
