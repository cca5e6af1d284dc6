"""What the paper's experiments have to show: all methods at the longest lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.evaluate.exhibit import Examples, Exhibit, Point, held_out_rows
from limelight.evaluate.making import about_data, how_made

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limelight.data import Split
    from limelight.evaluate.exhibit import Sight
    from limelight.reproduce.run import Findings, Plan

_BASE = "iALS"


def exhibit_of(
    plan: Plan, found: Findings, split: Split, sight_of: Callable[[Mapping[str, Any]], Sight]
) -> Exhibit:
    """Put together what a page shows of a run.

    Parameters
    ----------
    plan
        What was run.
    found
        What it found.
    split
        What it is of.
    sight_of
        Who was shown what at a point.
    """
    k = max(found.points)
    points = tuple(
        _point(name, one, k, sight_of(one))
        for name, measured in found.points[k].items()
        for one in sorted(measured, key=lambda one: -one[f"gini@{k}"])
    )
    names = [point.method for point in points]
    base = names.index(_BASE) if _BASE in names else None
    return Exhibit(
        kind="reproduce",
        title=f"The paper's experiments: {plan.experiment.title}{'-like' * plan.made_up}",
        k=k,
        points=points,
        item_ids=split.train.item_ids,
        base=base,
        chosen=names.index("exADMM") if "exADMM" in names else base or 0,
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        examples=Examples.of(held_out_rows(split.test), split.test),
        data=about_data(split),
        made=how_made(),
    )


def _point(name: str, one: Mapping[str, Any], k: int, sight: Sight) -> Point:
    figures = {key: value for key, value in one.items() if f"@{k}" in key}
    settings = one["settings"]
    dials = ("exposure_weight", "guarantee", "preference")
    strength = next((settings[dial] for dial in dials if dial in settings), None)
    label = name if strength is None else f"{name}, {strength:.3g}"
    return Point(name, label, figures, strength, settings, sight=sight)
