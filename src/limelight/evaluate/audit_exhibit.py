"""What an audit has to show: the lists, and those that they were compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.data.ids import ids_from_arrow, positions
from limelight.evaluate.exhibit import Examples, Exhibit, Point, Sight, example_rows
from limelight.evaluate.making import how_made

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._arrays import Int32, Int64
    from limelight.data.interactions import Ids
    from limelight.evaluate.audit import Audit
    from limelight.evaluate.audit_lists import Lists
    from limelight.evaluate.compare import Side


class Seen(NamedTuple):
    """The users who serve as examples, and the sight of each file of lists, the audited first."""

    user_ids: Ids
    sights: tuple[Sight, ...]


def see(sides: Sequence[Side], k: int) -> Seen:
    """Keep what can be shown of the lists that were audited.

    Parameters
    ----------
    sides
        The lists that were audited, and those that they were compared with.
    k
        Length of the lists.
    """
    after = sides[0].rows
    lengths = np.bincount(after.users, minlength=after.n_users)
    if len(sides) > 1:
        # Who has lists in both files shows what changed.
        in_both = positions(after.user_ids, sides[1].rows.user_ids) >= 0
        lengths = np.where(in_both, lengths, 0) if in_both.any() else lengths
    chosen = example_rows(lengths)
    ids = after.user_ids.take(chosen)
    sights = tuple(
        Sight(side.exposure.weighted, _lists(side.rows, positions(ids, side.rows.user_ids), k))
        for side in sides
    )
    return Seen(ids_from_arrow(ids), sights)


def _lists(rows: Lists, users: Int64, k: int) -> Int32:
    """Take the first list of some users; -1 stands for nobody."""
    found = np.full((len(users), k), -1, dtype=np.int32)
    place = np.full(rows.n_users, -1)
    place[users[users >= 0]] = np.flatnonzero(users >= 0)
    at = np.flatnonzero(place[rows.users] >= 0)
    first = np.full(rows.n_users, rows.n_lists)
    np.minimum.at(first, rows.users[at], rows.lists[at])
    at = at[rows.lists[at] == first[rows.users[at]]]
    found[place[rows.users[at]], rows.ranks[at] - 1] = rows.items[at]
    return found


def exhibit_of(found: Audit) -> Exhibit:
    """Put together what a page shows of an audit.

    Parameters
    ----------
    found
        The audit.
    """
    now, *then = found.seen.sights
    after = Point("These lists", "these lists", found.metrics | found.bounds, sight=now)
    points: tuple[Point, ...] = (after,)
    if then and found.comparison is not None:
        before = {
            name.removesuffix("_before"): value
            for name, value in found.comparison.metrics.items()
            if name.endswith("_before")
        }
        points = Point("Before", "the lists before", before, sight=then[0]), after
    return Exhibit(
        kind="audit",
        title=f"Audit of lists of {found.k}",
        k=found.k,
        points=points,
        item_ids=found.item_ids,
        base=0 if len(points) > 1 else None,
        chosen=len(points) - 1,
        groups=found.members,
        examples=Examples(found.seen.user_ids),
        data={
            "Users": f"{found.users:,}",
            "Lists": f"{found.lists:,}",
            "Items": f"{found.items:,}",
            "Items that no list shows": f"{found.unexposed:,}",
        },
        made=how_made(),
        notes=found.notes,
    )
