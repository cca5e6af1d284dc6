"""Read interactions from files, folders and frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from limelight._errors import ConfigError, DataError
from limelight.data.columns import Place, code_ids, number_ids, ratings_of, times_of
from limelight.data.filters import FilterOrder, drop_rare, k_core
from limelight.data.grouping import group
from limelight.data.interactions import Interactions
from limelight.data.sources import Names, choose_columns, open_parts, require_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data.columns import Coded
    from limelight.data.interactions import Ids
    from limelight.data.sources import Part, Source


def read(  # noqa: PLR0913
    source: Source,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    min_rating: float | None = None,
    min_user: int | None = None,
    min_item: int | None = None,
    filter_order: FilterOrder = "together",
    core: int | None = None,
) -> Interactions:
    """Read binary interactions from a file, a folder of parts or a frame.

    Ids may be integers or strings and are numbered in ascending order. In text files they are
    integers only if every one of them is written like one (``7``, not ``007``). Repeated pairs
    are merged and counted. The order of the rows inside each user is kept.

    Parameters
    ----------
    source
        A ``.parquet``, ``.csv`` or ``.tsv`` file (the last two also with ``.gz``), a folder of such
        parts, which are read in the order of their names, or a pandas, polars or pyarrow frame.
    user, item
        Column names. Left out, they are found if the source has one of the usual pairs, such as
        ``user_id, item_id`` or ``userId, movieId``.
    rating
        A column of numbers from 0 up. Rows with a rating of 0 are dropped unless `min_rating`
        says otherwise. Never read unless named.
    timestamp
        A column of numbers or times. If named, the rows of a user are ordered by it (rows of the
        same time stay in file order). Never read unless named.
    min_rating
        Keep rows rated at least this.
    min_user, min_item
        Keep users and items with at least so many distinct pairs, counted after `min_rating`.
    filter_order
        ``"together"`` counts both before either filter; ``"items-first"`` and ``"users-first"``
        count the second after the first has been applied.
    core
        Keep the k-core instead: every user and every item left has at least so many pairs.

    Returns
    -------
    Interactions
        Only users and items that have an interaction left.

    Raises
    ------
    DataError
        If the source cannot be read, or holds values that cannot be used.
    ConfigError
        If the settings contradict each other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": ["b", "a", "b"], "item": [7, 7, 3], "rating": [5, 4, 1]})
    >>> data = read(table, rating="rating", min_rating=4)
    >>> data
    Interactions(2 users x 1 item, 2 interactions)
    >>> data.user_ids
    array(['a', 'b'], dtype=object)
    """
    _check_settings(rating, min_rating, filter_order)
    _check_counts(min_user=min_user, min_item=min_item, core=core)
    parts = open_parts(source)
    user, item = choose_columns(parts[0], user, item)
    if user == item:
        message = f"users and items cannot be in the same column: {user!r}"
        raise ConfigError(message, hint="name two columns with user='...' and item='...'")
    data = _read_pairs(parts, Names(user, item, rating, timestamp), min_rating)
    found = data.nnz
    if core is not None:
        data = k_core(data, core)
    elif min_user is not None or min_item is not None:
        data = drop_rare(data, min_user, min_item, filter_order)
    if not data.nnz:
        message = f"no interaction is left of {found:,} after dropping rare users and items"
        raise DataError(message, hint="lower min_user, min_item or core")
    return data


def _check_settings(rating: str | None, min_rating: float | None, filter_order: str) -> None:
    if min_rating is not None and rating is None:
        message = f"min_rating needs a rating column: min_rating={min_rating}"
        raise ConfigError(message, hint="name it with rating='...'")
    if min_rating is not None and not (math.isfinite(min_rating) and min_rating >= 0):
        message = f"min_rating must be a finite number from 0 up: {min_rating}"
        raise ConfigError(message, hint="leave it out to keep every positive rating")
    known = get_args(FilterOrder)
    if filter_order not in known:
        message = f"unknown filter_order: {filter_order!r}"
        raise ConfigError(message, hint=f"choose one of {', '.join(known)}")


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1
        ):
            message = f"{name} must be a whole number from 1 up: {value!r}"
            raise ConfigError(message, hint="leave it out to keep everything")
    if counts["core"] is not None and (counts["min_user"] or counts["min_item"]):
        given = ", ".join(f"{name}={value}" for name, value in counts.items() if value is not None)
        message = f"core excludes min_user and min_item: {given}"
        raise ConfigError(message, hint="choose the k-core or the single pass, not both")


class _Columns(NamedTuple):
    """What is needed of one part, checked."""

    users: list[Coded]
    items: list[Coded]
    ratings: NDArray[np.float64] | None
    times: tuple[str, NDArray[Any]] | None


def _read_part(part: Part, names: Names) -> _Columns:
    for name in names:
        if name is not None:
            require_column(part, name)
    table = part.read(names)
    user, item = (
        code_ids(table[name], Place(part.label, name), is_text=part.is_text) for name in names[:2]
    )
    ratings = times = None
    if names.rating is not None:
        place = Place(part.label, names.rating)
        ratings = ratings_of(table[names.rating], place, is_text=part.is_text)
    if names.timestamp is not None:
        times = times_of(table[names.timestamp], Place(part.label, names.timestamp))
    return _Columns(user, item, ratings, times)


def _read_pairs(parts: list[Part], names: Names, min_rating: float | None) -> Interactions:
    """Read all parts, drop low ratings and merge what remains into rows."""
    columns = [_read_part(part, names) for part in parts]
    if not any(len(run.codes) for column in columns for run in column.users):
        label = parts[0].label if len(parts) == 1 else f"any part, from {parts[0].label} on"
        message = f"no rows in {label}"
        raise DataError(message, hint="the first line is the header, rows follow it")
    chosen = _choose_rows(columns, min_rating)
    users, user_ids = number_ids([run for column in columns for run in column.users])
    items, item_ids = number_ids([run for column in columns for run in column.items])
    del columns
    users, user_ids = _only_used(users[chosen], user_ids)
    items, item_ids = _only_used(items[chosen], item_ids)
    rows = group(users, items, len(user_ids), len(item_ids))
    return Interactions(rows.indptr, rows.indices, user_ids, item_ids, rows.order, rows.duplicates)


def _choose_rows(
    columns: list[_Columns], min_rating: float | None
) -> slice | NDArray[np.bool_] | NDArray[np.int64]:
    """Index the rows that are rated high enough, in the order of time if there is one."""
    chosen: slice | NDArray[np.bool_] = slice(None)
    ratings = [column.ratings for column in columns if column.ratings is not None]
    if ratings:
        rated = np.concatenate(ratings)
        chosen = rated > 0 if min_rating is None else rated >= min_rating
        if not chosen.any():
            message = f"no row is rated high enough: the highest rating is {rated.max():g}"
            raise DataError(message, hint="lower min_rating; without it, ratings above 0 count")
    times = [column.times for column in columns if column.times and len(column.times[1])]
    if not times:
        return chosen
    if len({meaning for meaning, _ in times}) > 1:
        kinds = ", ".join(sorted({meaning for meaning, _ in times}))
        message = f"the parts write timestamps in different ways: {kinds}"
        raise DataError(message, hint="cast them to one type in all parts")
    in_time = np.argsort(np.concatenate([numbers for _, numbers in times]), kind="stable")
    return in_time if isinstance(chosen, slice) else in_time[chosen[in_time]]


def _only_used(numbers: NDArray[np.int32], ids: Ids) -> tuple[NDArray[np.int32], Ids]:
    """Renumber after ids have lost all their rows."""
    used = np.zeros(len(ids), dtype=bool)
    used[numbers] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return number[numbers], ids[used]
