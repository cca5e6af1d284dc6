"""Which columns of a table are users, items, times, weights and ratings, and which rows count."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightWarning
from limelight._base.text import count
from limelight.data.columns import NumberColumn, TimeColumn
from limelight.data.ids import IdColumn
from limelight.data.interactions import WEIGHT_RULE
from limelight.data.names import find_column, naming_hint
from limelight.data.sources import TableSource, listed, require_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from limelight.data.columns import Column
    from limelight.data.read import ReadOptions
    from limelight.data.sources import Part, Source

PAIRS = (
    ("user_id", "item_id"),
    ("user", "item"),
    ("userId", "movieId"),
    ("userId", "itemId"),
    ("userID", "itemID"),
    ("uid", "sid"),
    ("user_id:token", "item_id:token"),
)
"""The pairs of names under which users and items are found without being named."""
LEAST_WEIGHT = float(np.finfo(np.float32).tiny)
_UNRATED = "correct such rows, or leave them out: rating_missing='drop'"


class Names(NamedTuple):
    """The names of the columns to read; None is a column that was not asked for."""

    user: str
    item: str
    rating: str | None = None
    timestamp: str | None = None
    weight: str | None = None


def choose_columns(
    source: Source, part: Part, user: str | None, item: str | None, *, of: str = "user"
) -> tuple[str, str]:
    """Find the user and item columns: as named, else by the known pairs, else one by one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.sources import open_parts
    >>> table = pa.table({"userId": [1], "movieId": [2], "item": [3]})
    >>> choose_columns(table, open_parts(table)[0], user=None, item=None)
    ('userId', 'movieId')
    """
    for name in (user, item):
        if name is not None:
            require_column(part, name)
    if isinstance(source, TableSource):
        user, item = (user or source.named(part, "user"), item or source.named(part, "item"))
    pairs = {(user or u, item or i) for u, i in PAIRS}
    pairs = {(u, i) for u, i in pairs if u in part.columns and i in part.columns}
    if len(pairs) > 1:
        message = f"the user and item columns are not clear in {part.label}: {listed(part.columns)}"
        raise DataError(message, hint="name them with user='...' and item='...'")
    if pairs:
        [(user, item)] = pairs
    user = user or find_column(source, [part], "user")
    item = item or find_column(source, [part], "item")
    if user is None or item is None:
        missing = [what for what, name in (("user", user), ("item", item)) if name is None]
        what = " and ".join(missing) + (" columns" if len(missing) > 1 else " column")
        message = f"no {what} in {part.label}: {listed(part.columns)}"
        raise DataError(message, hint=naming_hint(source, part, *missing, of=of, is_read=True))
    if user == item:
        message = f"users and items cannot be in the same column: {user!r}"
        raise ConfigError(message, hint="name two columns with user='...' and item='...'")
    return user, item


def columns_of(
    names: Names, options: ReadOptions
) -> tuple[IdColumn, IdColumn, *tuple[Column, ...]]:
    """Make the columns to read: users, items, and perhaps times, weights and, last, ratings."""
    others: list[Column] = []
    if names.timestamp is not None:
        others.append(TimeColumn(names.timestamp, options.time_format))
    if names.weight is not None:
        others.append(_weight(names.weight))
    if names.rating is not None:
        others.append(_rating(names.rating, may_be_missing=options.drops_unrated))
    return IdColumn(names.user), IdColumn(names.item), *others


def _weight(name: str) -> NumberColumn:
    most = float(np.finfo(np.float32).max)
    return NumberColumn(name, WEIGHT_RULE, lambda w: (w >= LEAST_WEIGHT) & (w <= most))


def _rating(name: str, *, may_be_missing: bool) -> NumberColumn:
    if may_be_missing:
        rule = "a rating must be a number below infinity"
        return NumberColumn(name, rule, lambda found: found != np.inf, may_be_missing=True)
    rule = "a rating must be a finite number from 0 up"
    return NumberColumn(name, rule, lambda found: np.isfinite(found) & (found >= 0), hint=_UNRATED)


def rated(
    batches: Iterator[list[NDArray[Any]]], options: ReadOptions
) -> Iterator[list[NDArray[Any]]]:
    """Keep the rows that are rated high enough; the ratings, which come last, are let go."""
    highest, is_empty, n_unrated = 0.0, True, 0
    for *arrays, ratings in batches:
        keep = is_rated(ratings, options.min_rating)
        yield [array[keep] for array in arrays]
        n_unrated += int(np.count_nonzero(~(ratings >= 0)))
        highest = max(highest, float(np.nanmax(ratings, initial=0.0)))
        is_empty = is_empty and not keep.any()
    if is_empty:
        raise none_rated(highest)
    if n_unrated and options.rating_missing == "drop":
        message = f"left out {count(n_unrated, 'row')} without a rating, or with a negative one"
        warnings.warn(message, LimelightWarning, stacklevel=2)


def is_rated(ratings: NDArray[np.float64], min_rating: float | None) -> NDArray[np.bool_]:
    """Tell which rows are rated high enough."""
    return ratings > 0 if min_rating is None else ratings >= min_rating


def none_rated(highest: float) -> DataError:
    """Say that no row is rated high enough."""
    message = f"no row is rated high enough: the highest rating is {highest:g}"
    return DataError(message, hint="lower min_rating; without it, ratings above 0 count")
