"""Read interactions from files, folders and frames."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from limelight._base.arrays import blocks
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import is_integer
from limelight.data.columns import TimeColumn, join, scan
from limelight.data.filters import FilterOrder, drop_rare, drop_unused, k_core
from limelight.data.interactions import Interactions
from limelight.data.read_columns import LEAST_WEIGHT, Names, choose_columns, columns_of, rated
from limelight.data.rows import Repeats, as_weights, by_pair, group, pair_numbers, row_numbers
from limelight.data.sources import TableSource, check_names, open_parts
from limelight.data.times import decay, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limelight.data.ids import IdColumn
    from limelight.data.interactions import Ids
    from limelight.data.sources import Part, Source
    from limelight.data.times import Duration

RatingMissing: TypeAlias = Literal["refuse", "drop"]


class ReadOptions(NamedTuple):
    """How a table is read: what :func:`read` and the command line are given beside the source.

    Examples
    --------
    >>> ReadOptions(min_rating=4).check()
    Traceback (most recent call last):
    limelight._base.errors.ConfigError: min_rating needs a rating column: min_rating=4
    ...
    """

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    min_rating: float | None = None
    min_user: int | None = None
    min_item: int | None = None
    filter_order: FilterOrder = "together"
    core: int | None = None
    weight: str | None = None
    half_life: Duration | None = None
    rating_missing: RatingMissing = "refuse"
    time_format: str | None = None
    separator: str | None = None
    columns: str | Sequence[str] | None = None

    def check(self) -> None:
        """Refuse settings that make no sense, or not together."""
        columns = ("user", "item", "rating", "timestamp", "weight")
        check_names(**{name: getattr(self, name) for name in columns})
        _check_settings(self.rating, self.min_rating, self.filter_order)
        if self.half_life is not None and self.timestamp is None:
            message = f"half_life needs a column of times: half_life={self.half_life!r}"
            raise ConfigError(message, hint="name it with timestamp='...'")
        if self.half_life is not None:
            duration(self.half_life)
        _check_counts(min_user=self.min_user, min_item=self.min_item, core=self.core)
        if self.rating_missing not in (known := get_args(RatingMissing)):
            message = f"unknown rating_missing: {self.rating_missing!r}"
            raise ConfigError(message, hint=f"choose one of {', '.join(known)}")

    @property
    def drops_unrated(self) -> bool:
        """Whether rows without a rating, or with a negative one, are left out like low ones."""
        return self.min_rating is not None or self.rating_missing == "drop"

    def names(self, source: Source, part: Part) -> Names:
        """Choose the columns of a table by its first part."""
        pair = choose_columns(source, part, self.user, self.item)
        return Names(*pair, self.rating, self.timestamp, self.weight)

    def open(self, source: Source) -> OpenTable:
        """Check the options, open a table and choose its columns.

        Examples
        --------
        >>> import pyarrow as pa
        >>> ReadOptions().open(pa.table({"user": ["b", "a"], "item": [7, 7]})).read()
        Interactions(2 users x 1 item, 2 interactions)
        """
        self.check()
        if self.separator is not None or self.columns is not None:
            given = source if isinstance(source, TableSource) else TableSource(source)
            source = replace(given, separator=self.separator, columns=self.columns)
        parts = open_parts(source)
        return OpenTable(source, self, parts, self.names(source, parts[0]))


class OpenTable(NamedTuple):
    """A table whose columns are chosen, so that it can be estimated and then read."""

    source: Source
    options: ReadOptions
    parts: list[Part]
    names: Names

    def read(self) -> Interactions:
        """Read all rows, and drop what the options say."""
        options = self.options
        data = _read_pairs(self.parts, self.names, options)
        found = data.nnz
        if options.core is not None:
            data = k_core(data, options.core)
        elif options.min_user is not None or options.min_item is not None:
            data = drop_rare(data, options.min_user, options.min_item, options.filter_order)
        if not data.nnz:
            raise none_left(found)
        return data


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
    weight: str | None = None,
    half_life: Duration | None = None,
    rating_missing: RatingMissing = "refuse",
    time_format: str | None = None,
    separator: str | None = None,
    columns: str | Sequence[str] | None = None,
) -> Interactions:
    """Read interactions from a file, a folder of parts or a frame.

    Ids may be integers or strings and are numbered in ascending order. In text files they are
    integers only if every one of them is written like one (``7``, not ``007``). Repeated pairs
    are merged and counted. The order of the rows inside each user is kept.

    Parameters
    ----------
    source
        A ``.parquet``, ``.csv``, ``.tsv``, ``.txt`` or ``.dat`` file (text also with ``.gz``,
        ``.bz2``, ``.zst`` or ``.zip``), a folder of such parts, which are read in the order of
        their names, a pandas, polars or pyarrow frame, or a dict of columns.
    user, item
        Column names. Left out, they are found if the source has one of the usual pairs, such as
        ``user_id, item_id`` or ``userId, movieId``.
    rating
        A column of numbers from 0 up. Rows with a rating of 0 are dropped unless `min_rating`
        says otherwise. Never read unless named.
    timestamp
        A column of numbers or times. If named, the rows of a user are ordered by it (rows of the
        same time stay in file order), and kept: :func:`limelight.split_time` cuts by it. Numbers
        are seconds since 1970, or milliseconds where they are too large for that. Never read
        unless named.
    min_rating
        Keep rows rated at least this.
    min_user, min_item
        Keep users and items with at least so many distinct pairs, counted after `min_rating`.
    filter_order
        ``"together"`` counts both before either filter; ``"items-first"`` and ``"users-first"``
        count the second after the first has been applied.
    core
        Keep the k-core instead: every user and every item left has at least so many pairs.
    weight
        A column of how much a row counts, such as a number of plays: finite numbers above 0. Those
        of a repeated pair are added up. Without it all pairs count 1, repeated or not.
    half_life
        After how long a row counts half: ``"90d"``, ``"36h"``, a timedelta or seconds. Ages are
        counted from the newest row, and those of repeated pairs are added up. What is left of a
        weight never falls below 2^-40, so that old pairs stay in the history. Needs `timestamp`.
    rating_missing
        ``"drop"`` leaves out rows whose rating is missing (null or NaN) or negative, and warns how
        many; ``"refuse"`` takes them for a mistake. With `min_rating` they are below it.
    time_format
        How times are written where they are text, such as ``"%d/%m/%Y %H:%M"``. ISO 8601 and
        numbers need none.
    separator
        What separates the columns of a text file: ``","``, ``";"``, a tab, ``"::"`` or ``"|"``.
        Left out, its first line tells.
    columns
        The names of all columns of a text file that has no header: a list, or ``"user,item"``.

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
    >>> read(table, weight="rating").weights
    array([4., 1., 5.], dtype=float32)
    """
    options = ReadOptions(
        user,
        item,
        rating,
        timestamp,
        min_rating,
        min_user,
        min_item,
        filter_order,
        core,
        weight,
        half_life,
        rating_missing,
        time_format,
        separator,
        columns,
    )
    return options.open(source).read()


def none_left(found: int) -> DataError:
    """Say that every user and item is rare."""
    message = f"no interaction is left of {found:,} after dropping rare users and items"
    return DataError(message, hint="lower min_user, min_item or core")


def _check_settings(rating: str | None, min_rating: float | None, filter_order: str) -> None:
    if min_rating is not None and rating is None:
        message = f"min_rating needs a rating column: min_rating={min_rating}"
        raise ConfigError(message, hint="name it with rating='...'")
    if min_rating is not None and not (
        isinstance(min_rating, (int, float, np.number)) and 0 <= min_rating < math.inf
    ):
        message = f"min_rating must be a finite number from 0 up: {min_rating!r}"
        raise ConfigError(message, hint="leave it out to keep every positive rating")
    known = get_args(FilterOrder)
    if filter_order not in known:
        message = f"unknown filter_order: {filter_order!r}"
        raise ConfigError(message, hint=f"choose one of {', '.join(known)}")


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and not is_integer(value, 1):
            message = f"{name} must be a whole number from 1 up: {value!r}"
            raise ConfigError(message, hint="leave it out to keep everything")
    if counts["core"] is not None and (counts["min_user"] or counts["min_item"]):
        given = ", ".join(f"{name}={value}" for name, value in counts.items() if value is not None)
        message = f"core excludes min_user and min_item: {given}"
        raise ConfigError(message, hint="choose the k-core or the single pass, not both")


def _read_pairs(parts: Sequence[Part], names: Names, options: ReadOptions) -> Interactions:
    """Read all parts, drop low ratings and merge what remains into rows."""
    user, item, *others = columns_of(names, options)
    batches = scan(parts, [user, item, *others])
    if names.rating is not None:
        batches = rated(batches, options)
    users, items, *more = join(batches)
    user_ids, item_ids = _number(users, user), _number(items, item)
    times = more.pop(0) if names.timestamp is not None else None
    rows = group(users, items, len(user_ids), len(item_ids), times)
    values: dict[str, Any] = {}
    if times is not None:
        clock = next(column for column in others if isinstance(column, TimeColumn))
        values["times"] = clock.seconds(times), np.minimum
    if names.weight is not None or options.half_life is not None:
        values["weights"] = _weights(more, values, options.half_life), np.add
    merged = by_pair(users, items, len(item_ids), *values.values()) if values else []
    repeats = None
    if times is not None and rows.duplicates:
        pairs = pair_numbers(row_numbers(rows.indptr), rows.indices, len(item_ids))
        entries = np.searchsorted(pairs, pair_numbers(users, items, len(item_ids)))
        repeats = Repeats.of(entries, values["times"][0], values.get("weights", (None,))[0])
        del pairs, entries
    del users, items, times, more, user, item  # the pairs that are kept below need their memory
    found: dict[str, Any] = dict(zip(values, merged, strict=True))
    if "weights" in found:
        found["weights"] = as_weights(found["weights"])
    data = Interactions(
        rows.indptr,
        rows.indices,
        user_ids,
        item_ids,
        rows.order,
        rows.duplicates,
        repeats=repeats,
        is_aged=options.half_life is not None,
        **found,
    )
    # Ids may have lost all their rows to low ratings.
    return data if names.rating is None else drop_unused(data)


def _weights(
    given: list[NDArray[Any]], values: dict[str, Any], half_life: Duration | None
) -> NDArray[np.float64]:
    """Return how much each row counts: by its column, by its age, or by both."""
    weights = given[0] if given else 1.0
    if half_life is None:
        return np.asarray(weights, np.float64)
    times, _ = values["times"]
    aged = decay(times, duration(half_life), times.max())
    return np.maximum(weights * aged, LEAST_WEIGHT)


def _number(codes: NDArray[np.int32], column: IdColumn) -> Ids:
    """Replace codes by the numbers of their ids in ascending order, in place."""
    numbers, ids = column.ascending()
    for block in blocks(len(codes)):
        codes[block] = numbers[codes[block]]
    return ids
