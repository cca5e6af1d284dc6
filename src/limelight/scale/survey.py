"""The one pass over the files: every rank reads its pieces and learns which ids there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight.data.read import columns_of, is_rated, none_rated
from limelight.data.scan import convert, no_rows
from limelight.scale.portions import my_pieces
from limelight.scale.talk import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._arrays import Int32
    from limelight.data.ids import IdColumn
    from limelight.data.read import Names
    from limelight.data.sources import Part
    from limelight.solve.exchange import Exchange


class Survey(NamedTuple):
    """What a rank has read."""

    user: IdColumn
    item: IdColumn
    pairs: list[tuple[Int32, Int32]]
    """Codes of users and items, batch by batch, without the rows that are rated too low."""


def survey(
    parts: Sequence[Part], names: Names, min_rating: float | None, exchange: Exchange
) -> Survey:
    """Read this rank's pieces of a table; what is wrong with any of them is told to all.

    Parameters
    ----------
    parts
        All files.
    names
        The columns to read.
    min_rating
        Keep rows rated at least this, where there are ratings.
    exchange
        The door to the others.
    """
    user, item, *others = columns_of(names)
    columns = [user, item, *others]
    mine = my_pieces(parts, columns, exchange)
    read, highest, pairs = 0, 0.0, []
    with together(exchange):
        # Types must be those of the first rows, which one rank alone would meet. Their ids are
        # known to all ranks then, which does no harm.
        next(convert(parts, columns), None)
        for users, items, *values in convert(mine, columns):
            read += len(users)
            if names.rating is not None:
                highest = max(highest, float(values[-1].max()))
                keep = is_rated(values[-1], min_rating)
                users, items = users[keep], items[keep]  # noqa: PLW2901
            pairs.append((users, items))
    kept = sum(len(users) for users, _ in pairs)
    totals = exchange.gather_items(np.array([[read, kept, highest]]))
    if not totals[:, 0].any():
        raise no_rows(parts)
    if not totals[:, 1].any():
        raise none_rated(totals[:, 2].max())
    return Survey(user, item, pairs)
