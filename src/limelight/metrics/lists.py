"""Ranked lists as arrays: users x k item numbers, best first, padded with -1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy  # loads its packages when they are used
from numpy.typing import ArrayLike, NDArray

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import is_integer
from limelight._base.text import count

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32

IntArray: TypeAlias = NDArray[np.integer[Any]]
FloatArray: TypeAlias = NDArray[np.float64]
Weight: TypeAlias = Literal["log", "uniform"] | float
"""What a place is worth; a number is the patience of a geometric weight."""
_ALIKE = 1.1
"""Up to this ratio, numbers of lists are about the same."""


def position_weights(k: int, weight: str | float = "log") -> FloatArray:
    """Give the weight of every rank from 1 to k.

    "log" is the discount of nDCG, 1 / log2(rank + 1); "uniform" counts every rank the same. A
    number p above 0 and below 1 is the patience of rank-biased precision: p^(rank - 1).

    Examples
    --------
    >>> position_weights(3)
    array([1.        , 0.63092975, 0.5       ])
    >>> position_weights(3, 0.5)
    array([1.  , 0.5 , 0.25])
    """
    return rank_weights(np.arange(1, k + 1), weight)


def rank_weights(ranks: IntArray, weight: str | float = "log") -> FloatArray:
    """Give the weight of each of the given ranks, counted from 1.

    Examples
    --------
    >>> rank_weights(np.array([1, 3, 1]))
    array([1. , 0.5, 1. ])
    """
    if weight == "log":
        return np.asarray(1.0 / np.log2(ranks + 1.0), dtype=np.float64)
    if weight == "uniform":
        return np.ones(len(ranks), dtype=np.float64)
    if isinstance(weight, float) and 0 < weight < 1:
        return np.asarray(np.power(weight, ranks - 1.0), dtype=np.float64)
    message = f"unknown position weight: {weight!r}"
    raise ConfigError(message, hint='choose "log", "uniform" or a patience such as 0.85')


def check_lists(ids: ArrayLike, n_items: int, k: int | None = None) -> IntArray:
    """Return the first k columns of the lists, or say what is wrong with them.

    Examples
    --------
    >>> check_lists([[2, 0, 1], [1, -1, -1]], n_items=3, k=2)
    array([[ 2,  0],
           [ 1, -1]])
    """
    lists = np.asarray(ids)
    if lists.ndim != 2 or not np.issubdtype(lists.dtype, np.integer):
        message = f"lists must be a users x k array of integers, got {lists.dtype}{lists.shape}"
        raise DataError(message, hint="pass the ids that `recommend` returns")
    check_positive(n_items, "n_items")
    lists = lists[:, : check_cutoff(k, lists.shape[1])]
    if lists.size and (lists.min() < -1 or lists.max() >= n_items):
        wrong = lists.min() if lists.min() < -1 else lists.max()
        message = f"item number outside the catalogue of {n_items:,} items: {wrong}"
        raise DataError(message, hint="item numbers run from 0 to n_items - 1; -1 is padding")
    _refuse_repeats(lists)
    return lists


def _refuse_repeats(lists: IntArray) -> None:
    """Refuse a list that shows one item twice: it would count twice in every metric."""
    ordered = np.sort(lists, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        message = f"item {ordered[row, column]} is listed twice for the user in row {row}"
        raise DataError(message, hint="a list may show an item once; keep its best rank")


def check_cutoff(k: int | None, n_columns: int) -> int:
    """Return k, or the width of the lists where it is not given."""
    if k is None:
        return n_columns
    check_positive(k, "k")
    if k > n_columns:
        message = f"k is larger than the lists are long: {k} > {n_columns}"
        raise ConfigError(message, hint=f"ask for longer lists or for k <= {n_columns}")
    return int(k)


def check_cutoffs(k: int | Sequence[int]) -> tuple[int, ...]:
    """Return one or several cutoffs as an ascending tuple without repeats.

    Examples
    --------
    >>> check_cutoffs(20), check_cutoffs([20, 5, 20])
    ((20,), (5, 20))
    """
    cutoffs = tuple(k) if isinstance(k, Sequence) else (k,)
    if not cutoffs:
        message = f"no cutoff given: k={k!r}"
        raise ConfigError(message, hint="pass a number such as k=20 or several such as k=(5, 20)")
    for cutoff in cutoffs:
        check_positive(cutoff, "k")
    return tuple(sorted({int(cutoff) for cutoff in cutoffs}))


def check_positive(value: object, name: str) -> None:
    """Refuse anything but a whole number of at least 1."""
    if not is_integer(value, 1):
        message = f"{name} must be a whole number of at least 1, got {value!r}"
        raise ConfigError(message, hint=f"pass for example {name}=20")


def given_weights(lists: IntArray, weights: FloatArray, n_items: int) -> Any:
    """Return lists x items, a sparse matrix with the weight of the place that shows an item.

    Examples
    --------
    >>> given_weights(np.array([[2, 0], [1, -1]]), np.array([1.0, 0.5]), n_items=3).toarray()
    array([[0.5, 0. , 1. ],
           [0. , 1. , 0. ]])
    """
    row, place = np.nonzero(lists >= 0)
    found: Any = scipy.sparse.csr_array
    return found((weights[place], (row, lists[row, place])), shape=(len(lists), n_items))


def mean_over_users(values: FloatArray) -> float:
    """Average over the users that have a value, in whatever order they came.

    Examples
    --------
    >>> mean_over_users(np.array([1.0, np.nan, 2.0]))
    1.5
    """
    known = np.sort(values[~np.isnan(values)])
    if not known.size:
        message = f"no user has anything to measure: {len(values):,} users"
        raise DataError(message, hint="check that the lists are not empty")
    return float(known.mean())


class Lists(NamedTuple):
    """Ranked lists: item numbers and scores, one row a user, padded with -1 and -inf."""

    ids: Int32
    scores: Float32

    def take(self, rows: Any) -> Lists:
        """Return the lists of some rows: views of a slice, copies of row numbers."""
        return Lists(self.ids[rows], self.scores[rows])

    def copy(self) -> Lists:
        """Return lists that may be changed."""
        return Lists(self.ids.copy(), self.scores.copy())


class ListCount(NamedTuple):
    """Of how many lists a figure of exposure is, and over how many items; None if not known.

    Examples
    --------
    >>> str(ListCount(48_696, 12_922)), str(ListCount(30, lists=70)), str(ListCount(1))
    ("48,696 users' lists and 12,922 items", "30 users' 70 lists", "1 user's list")
    """

    users: int | None = None
    items: int | None = None
    lists: int | None = None
    """Where users may have several; otherwise there are as many as users."""

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> ListCount:
        """Take it from figures under flat keys."""
        return cls(figures.get("users"), figures.get("items"), figures.get("lists"))

    @property
    def n_lists(self) -> int | None:
        """How many lists there are."""
        return self.users if self.lists is None else self.lists

    def __str__(self) -> str:
        parts = []
        if self.users is not None:
            whose = "1 user's" if self.users == 1 else f"{self.users:,} users'"
            what = "list" if self.users == 1 else "lists"
            if self.lists not in {None, self.users}:
                what = count(self.lists, "list")
            parts.append(f"{whose} {what}")
        if self.items is not None:
            parts.append(count(self.items, "item"))
        return " and ".join(parts)


def over_all(counts: Iterable[ListCount]) -> str:
    """Say over what several figures are; where they differ, that this is part of the difference.

    Examples
    --------
    >>> over_all([ListCount(500, 90), ListCount(500, 90)])
    "over 500 users' lists and 90 items"
    >>> over_all([ListCount(500, 90), ListCount(20_000, 90)])
    'over 500 to 20,000 lists and 90 items: part of the difference is their number'
    """
    known = {str(one): one for one in counts if str(one)}
    if len(known) < 2:
        return "".join(f"over {one}" for one in known)
    spans = (
        _span((one.n_lists for one in known.values()), "list"),
        _span((one.items for one in known.values()), "item"),
    )
    warning = ": part of the difference is their number" if sizes_note(known) else ""
    return f"over {' and '.join(filter(None, spans))}{warning}"


def _span(sizes: Iterable[int | None], noun: str) -> str:
    known = {size for size in sizes if size is not None}
    if len(known) > 1:
        return f"{min(known):,} to {max(known):,} {noun}s"
    return "".join(count(size, noun) for size in known)


def sizes_note(counts: Mapping[str, ListCount]) -> str:
    """Say what makes figures of these lists, by their names, hard to compare; nothing if nothing.

    Examples
    --------
    >>> sizes_note({"before": ListCount(500), "after": ListCount(20_000)})
    'Numbers of lists differ: 500 (before), 20,000 (after). Gini falls and coverage grows with the
    number of lists, so part of the difference is that. ll.gini_at estimates the Gini of another
    number of lists.'
    """
    lists = {name: one.n_lists for name, one in counts.items() if one.n_lists}
    items = {name: one.items for name, one in counts.items() if one.items}
    said = []
    if lists and max(lists.values()) > _ALIKE * min(lists.values()):
        said.append(
            f"Numbers of lists differ: {_ends(lists)}. Gini falls and coverage grows with the "
            "number of lists, so part of the difference is that. ll.gini_at estimates the Gini "
            "of another number of lists."
        )
    if len({*items.values()}) > 1:
        said.append(
            f"Numbers of items differ: {_ends(items)}. Gini rises and coverage falls with every "
            "item that no list shows: measure over one catalogue."
        )
    return " ".join(said)


def _ends(sizes: Mapping[str, int]) -> str:
    """Name the smallest and the largest, in the order given."""
    ends = {min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)}
    return ", ".join(f"{size:,} ({name})" for name, size in sizes.items() if name in ends)


class Lengths(NamedTuple):
    """How many users have lists, and how long these are."""

    users: int
    empty: int
    """Users without a list."""
    short: int
    """Users with a list of fewer than k places."""
    places: int


def lengths_of(ids: Int32) -> Lengths:
    """Count lists by their lengths.

    Examples
    --------
    >>> lengths_of(np.array([[5, 2], [3, -1], [-1, -1]]))
    Lengths(users=3, empty=1, short=1, places=3)
    """
    lengths = (ids >= 0).sum(axis=1)
    is_short = (lengths > 0) & (lengths < ids.shape[1])
    return Lengths(len(ids), int(np.sum(lengths == 0)), int(is_short.sum()), int(lengths.sum()))


def user_relevance(relevance: Float32) -> Float64:
    """Add up the relevance of lists, places weighted as for exposure.

    Examples
    --------
    >>> user_relevance(np.array([[1.0, 0.0]], dtype=np.float32))
    array([1.])
    """
    return np.asarray(relevance @ position_weights(relevance.shape[1]))
