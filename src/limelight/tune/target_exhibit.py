"""What a model that was fitted to a target has to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.evaluate.exhibit import Examples, Exhibit, Point, held_out_rows, look
from limelight.evaluate.making import about_data, how_made
from limelight.tune.result import fresh, lists_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.data.split import Split
    from limelight.evaluate.audit_input import Groups
    from limelight.models.base import Model


def exhibit_of(
    found: Mapping[str, Any],
    plain: Model,
    split: Split,
    k: int,
    *,
    groups: Groups | None,
    seconds: float,
) -> Exhibit:
    """Put together what a page shows: the plain model, and what serves instead.

    Parameters
    ----------
    found
        What a search for a target has found.
    plain
        The same without control.
    split
        Whose test users are looked at.
    k
        Length of the lists.
    groups
        Groups of items, where the target speaks of them.
    seconds
        How long the search took.
    """
    part = split.test
    own, own_figures = look(plain.recommend(part.history, k).ids, part, k, plain.trace_)
    sight, figures = look(lists_of(fresh(found["model"]), part, k), part, k)
    label = str(found["method"])
    wish = ", ".join(f"{name} {value}" for name, value in found["goal"].items())
    return Exhibit(
        kind="fit",
        title=f"A model for a target: {wish}"[:200],
        k=k,
        points=(
            Point("No control", "no control", own_figures, strength=0.0, sight=own),
            Point(
                label,
                label,
                figures,
                strength=found["strength"],
                settings={"method": label, "strength": found["strength"], "target": wish},
                sight=sight,
            ),
        ),
        item_ids=split.train.item_ids,
        chosen=1,
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        groups=groups,
        examples=Examples.of(held_out_rows(part), part),
        data=about_data(split),
        made=how_made(seconds=seconds, seed=plain.get_params().get("random_state")),
        notes=tuple(found["notes"]),
    )
