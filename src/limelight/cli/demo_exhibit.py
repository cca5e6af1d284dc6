"""What ``limelight demo`` has to show."""

from collections.abc import Sequence

import numpy as np

from limelight.cli.demo_runs import K, Outcome
from limelight.data import Marketplace, Split
from limelight.data.ids import ids_to_arrow
from limelight.evaluate.audit_input import read_groups
from limelight.evaluate.exhibit import Examples, Exhibit, Point, held_out_rows
from limelight.evaluate.making import about_data, how_made


def exhibit_of(
    market: Marketplace,
    split: Split,
    outcomes: Sequence[Outcome],
    chosen: Outcome,
    seed: int,
) -> Exhibit:
    """Put together what a page shows of the demo."""
    item_ids = split.train.item_ids
    return Exhibit(
        kind="demo",
        title="A made-up marketplace: what even exposure costs",
        k=K,
        points=tuple(_point(outcome) for outcome in outcomes),
        item_ids=item_ids,
        chosen=list(outcomes).index(chosen),
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        groups=read_groups(market.groups, ids_to_arrow(item_ids)),
        examples=Examples.of(held_out_rows(split.test), split.test),
        data=about_data(split),
        made=how_made(seconds=sum(outcome.seconds for outcome in outcomes), seed=seed),
    )


def _point(outcome: Outcome) -> Point:
    method = "exADMM" if outcome.weight else outcome.name
    return Point(
        method=method,
        label=f"exADMM, weight {outcome.weight:g}" if outcome.weight else outcome.name,
        figures=outcome.test,
        strength=outcome.weight,
        settings={
            name: value
            for name, value in outcome.model.get_params().items()
            if name in {"factors", "regularization", "unobserved_weight", "exposure_weight"}
        },
        sight=outcome.sight,
    )
