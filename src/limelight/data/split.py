"""Split by users: some are held out of training, and part of their items is to be predicted.

This is the strong-generalisation protocol of Liang et al. (2018). The draws follow the published
scripts one by one, with NumPy's legacy generator, so that published splits come out the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from limelight._base.documents import Document, Table
from limelight._base.errors import ConfigError, DataError
from limelight._base.seeds import seed_of
from limelight._base.settings import is_integer
from limelight._base.text import count
from limelight.data.held_out import HeldOut, held_out_of
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.rows import by_pair, group, row_numbers, walk
from limelight.data.split_folder import read_split, write_split

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from limelight._base.seeds import RandomState

SPLIT_SEED, _TARGET_SHARE, _MIN_ITEMS = 98765, 0.2, 5  # of the published scripts


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training users, and two sets of held-out users.

    Attributes
    ----------
    train : Interactions
        The training users, in the order of the shuffle; items in the order in which they appear.
    validation, test : HeldOut
        The held-out users, over the items of `train`.
    dropped_interactions : int
        Pairs of held-out users whose item no training user has.
    dropped_items : int
        Items that no training user has.
    users_without_history : int
        In a split by time, users who did nothing before and so are left out of a held-out part.

    Examples
    --------
    >>> from limelight.data import marketplace
    >>> data = marketplace(n_users=100, n_items=50, n_interactions=1000).interactions
    >>> split = split_users(data, validation=10, test=10)
    >>> split.train.n_users, split.validation.n_users, split.test.n_users
    (80, 10, 10)
    """

    train: Interactions
    validation: HeldOut
    test: HeldOut
    dropped_interactions: int = 0
    dropped_items: int = 0
    users_without_history: int = 0

    def __post_init__(self) -> None:
        """Let the held-out parts know which items their columns are."""
        for name, part in (("validation", self.validation), ("test", self.test)):
            if part.item_ids is None:
                object.__setattr__(self, name, replace(part, item_ids=self.train.item_ids))

    def __repr__(self) -> str:
        """Show the parts, and what was left out of them."""
        parts = (f"{name}: {getattr(self, name)!r}" for name in ("train", "validation", "test"))
        return "\n  ".join(["Split", *parts, *self._dropped()])

    def _repr_html_(self) -> str:
        held_out = {"validation": self.validation, "test": self.test}
        rows = [
            ("train", f"{self.train.n_users:,}", f"{self.train.nnz:,}", ""),
            *(
                (name, f"{part.n_users:,}", f"{part.history.nnz:,}", f"{part.targets.nnz:,}")
                for name, part in held_out.items()
            ),
        ]
        table = Table(("", "users", "interactions", "targets"), rows)
        title = f"Split over {count(self.train.n_items, 'item')}"
        return Document(title, [table], self._dropped()).html()

    def _dropped(self) -> list[str]:
        lines = []
        if self.dropped_items:
            interactions = count(self.dropped_interactions, "interaction")
            items = count(self.dropped_items, "item")
            lines.append(f"dropped: {items} that no training user has, {interactions} with them")
        if self.users_without_history:
            lines.append(f"left out: {count(self.users_without_history, 'user')} without a history")
        return lines

    def everybody(self) -> Interactions:
        """Return all users with all that they did, over the items of the training.

        Training users come first, then those of validation and test.

        Examples
        --------
        >>> from limelight.data import marketplace
        >>> data = marketplace(n_users=100, n_items=50, n_interactions=1000).interactions
        >>> split_users(data, validation=10, test=10).everybody()
        Interactions(100 users x ... items, ... interactions)
        """
        self.refuse_shared_users()
        train, parts = self.train, (self.validation, self.test)
        rows = [train.matrix, *(part.everything() for part in parts)]
        users = np.concatenate([train.user_ids, *(part.user_ids for part in parts)])
        weight = None if train.weights is None else "values"
        found = Interactions.from_matrix(scipy.sparse.vstack(rows, format="csr"), weight=weight)
        return replace(found, user_ids=users, item_ids=train.item_ids, has_ids=train.has_ids)

    @property
    def has_shared_users(self) -> bool:
        """Whether a user stands in several parts, as in a split by time."""
        ids = [part.user_ids.tolist() for part in (self.train, self.validation, self.test)]
        return len(set().union(*ids)) < sum(map(len, ids))

    def refuse_shared_users(self) -> None:
        """Refuse a split by time where everybody is asked for: its parts overlap."""
        if self.has_shared_users:
            message = (
                "some users are in several parts of this split, so they cannot be put together"
            )
            raise DataError(message, hint="pass the interactions themselves, or use split_users")

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the split in the published layout, whole or not at all.

        The files are ``train.csv``, ``validation_tr.csv``, ``validation_te.csv``, ``test_tr.csv``
        and ``test_te.csv`` with the columns ``uid,sid``, and ``unique_sid.txt``, whose line i is
        the item of sid i. Beside them, ``users.parquet`` and ``items.parquet`` keep the ids. Where
        pairs have weights, the tables have a third column, ``weight``. An earlier split in the same
        place is replaced, any other folder is refused.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from limelight.data import marketplace
        >>> data = marketplace(n_users=100, n_items=50, n_interactions=1000).interactions
        >>> with TemporaryDirectory() as folder:
        ...     split_users(data, validation=10, test=10).save(f"{folder}/split")
        ...     Split.load(f"{folder}/split").validation.n_users
        10
        """
        write_split(folder, self)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Split:
        """Read a split in the published layout.

        Without ``users.parquet`` and ``items.parquet``, users are known by their uid and items by
        the lines of ``unique_sid.txt``. See :meth:`save` for the files and for an example.
        """
        return cls(*read_split(folder))


def split_users(
    data: Any,
    *,
    validation: float,
    test: float,
    random_state: RandomState | None = None,
    seed: int | None = None,
    target_share: float = _TARGET_SHARE,
    min_items: int = _MIN_ITEMS,
) -> Split:
    """Hold out users for validation and for testing.

    Users are shuffled; the last ones are held out. Their items that no training user has are
    dropped and counted. A share of what remains of each held-out user becomes targets, the rest
    is history. The split depends on the order of the rows inside each user, which
    :func:`limelight.read` keeps, but not on the order of the users.

    Parameters
    ----------
    data : Interactions or scipy sparse matrix
        What to split.
    validation, test
        How many users to hold out: a count (int; 0 for none) or a share (float between 0 and 1).
    random_state
        Seed of the shuffle and, again, of each of the two draws of targets; 98765 unless given. A
        NumPy generator draws one.
    seed
        The older name of ``random_state``.
    target_share
        Share of a held-out user's items that become targets, rounded down.
    min_items
        Held-out users with fewer items left get no targets.

    Returns
    -------
    Split
        ``train``, ``validation`` and ``test``.

    Examples
    --------
    >>> from limelight.data import marketplace
    >>> data = marketplace(n_users=100, n_items=50, n_interactions=1000).interactions
    >>> split = split_users(data, validation=0.1, test=20)
    >>> split.train.n_users, split.test
    (70, HeldOut(20 users, ... interactions of history, ... targets))
    """
    data = as_interactions(data)
    n_validation, n_test = _counts(data.n_users, validation, test)
    seed = seed_of(random_state, seed, default=SPLIT_SEED)
    _check_settings(seed, target_share, min_items)
    by_id = np.argsort(data.user_ids, kind="stable")
    shuffled = by_id[np.random.RandomState(seed).permutation(data.n_users)]
    n_train = data.n_users - n_validation - n_test
    train, number = _train(data, shuffled[:n_train])
    held_out, lost = [], 0
    for users in np.split(shuffled[n_train:], [n_validation]):
        draw = np.random.RandomState(seed)
        part, dropped = _hold_out(data, users, number, draw, target_share, min_items)
        held_out.append(part)
        lost += dropped
    return Split(train, held_out[0], held_out[1], lost, data.n_items - train.n_items)


def hold_out_users(
    data: Interactions, share: float, seed: int
) -> tuple[NDArray[np.int64], HeldOut]:
    """Hold out a share of the users, at least one, and leave the numbers of the items as they are.

    Parameters
    ----------
    data
        What to divide.
    share
        Of the users to hold out.
    seed
        Of the shuffle and of the draw of targets, as in :func:`split_users`.

    Returns
    -------
    tuple
        The rows of the other users, and the held-out part.

    Examples
    --------
    >>> from limelight.data import marketplace
    >>> data = marketplace(n_users=100, n_items=50, n_interactions=1000).interactions
    >>> others, held_out = hold_out_users(data, 0.1, seed=0)
    >>> len(others), held_out.n_users, held_out.history.shape
    (90, 10, (10, 50))
    """
    n_held_out = max(1, round(share * data.n_users))
    n_others = data.n_users - n_held_out
    if n_others < 1:
        message = f"too few users to hold some of them out: {data.n_users:,}"
        raise DataError(message, hint="pass held-out users of your own")
    by_id = np.argsort(data.user_ids, kind="stable")
    shuffled = by_id[np.random.RandomState(seed).permutation(data.n_users)]
    numbers = np.arange(data.n_items, dtype=np.int32)
    draw = np.random.RandomState(seed)
    part, _ = _hold_out(data, shuffled[n_others:], numbers, draw, _TARGET_SHARE, _MIN_ITEMS)
    return np.sort(shuffled[:n_others]), part


def _train(data: Interactions, users: NDArray[np.int64]) -> tuple[Interactions, NDArray[np.int32]]:
    """Number the items as they appear, walking the training users by id.

    The second is the new number of each item of `data`, -1 for dropped ones.
    """
    rows, items = _walk_by_id(data, users)
    seen, first = np.unique(items, return_index=True)
    seen = seen[np.argsort(first)]
    number = np.full(data.n_items, -1, dtype=np.int32)
    number[seen] = np.arange(len(seen), dtype=np.int32)
    if not len(seen):
        message = f"none of the {len(users):,} training users has an interaction"
        raise DataError(message, hint="drop users without interactions before the split")
    sorted_rows = group(rows, number[items], len(users), len(seen))
    ids = data.user_ids[users], data.item_ids[seen]
    weights = _weights_by_id(data, users)
    if weights is not None:
        [weights] = by_pair(rows, number[items], len(seen), (weights, np.add))
    train = Interactions(
        sorted_rows.indptr, sorted_rows.indices, *ids, sorted_rows.order, weights=weights
    )
    return train, number


def _hold_out(
    data: Interactions,
    users: NDArray[np.int64],
    number: NDArray[np.int32],
    draw: np.random.RandomState,
    target_share: float,
    min_items: int,
) -> tuple[HeldOut, int]:
    """Draw the targets of each user, one user after the other by id."""
    rows, items = _walk_by_id(data, users)
    items = number[items]
    known = items >= 0
    weights = _weights_by_id(data, users)
    weights = None if weights is None else weights[known]
    rows, items = rows[known], items[known]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    is_target = np.zeros(len(rows), dtype=bool)
    for start, stop in zip(starts, np.append(starts, len(rows))[1:], strict=True):
        n = int(stop - start)
        if n >= min_items:
            drawn = draw.choice(n, size=int(target_share * n), replace=False)
            is_target[start + drawn] = True
    ids, n_items = data.user_ids[users], int(number.max()) + 1
    part = held_out_of(rows, items, is_target, ids, n_items, weights)
    return part, int(len(known) - known.sum())


def _walk_by_id(
    data: Interactions, users: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Walk some users by id; name each pair's place in `users`, and its item."""
    by_id = np.argsort(data.user_ids[users], kind="stable")
    starts, items = walk(data.indptr, data.indices, data.order, users[by_id])
    return by_id[row_numbers(starts)], items


def _weights_by_id(data: Interactions, users: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Return the weights on the same walk."""
    if data.weights is None:
        return None
    by_id = np.argsort(data.user_ids[users], kind="stable")
    return walk(data.indptr, data.weights, data.order, users[by_id])[1]


def _counts(n_users: int, validation: float, test: float) -> tuple[int, int]:
    if n_users == 0:
        message = "there are no users to split: 0 users"
        raise DataError(message, hint="check the data and the filters")
    counts = _count(n_users, "validation", validation), _count(n_users, "test", test)
    if sum(counts) >= n_users:
        message = f"cannot hold out {counts[0]:,} + {counts[1]:,} of {n_users:,} users"
        raise ConfigError(message, hint="lower validation or test: training needs users too")
    return counts[0], counts[1]


def _count(n_users: int, name: str, size: float) -> int:
    """Turn a count or a share into a count."""
    if is_integer(size, 0):
        return int(size)
    if isinstance(size, (float, np.floating)) and 0 < size < 1:
        if (rounded := round(n_users * float(size))) >= 1:
            return rounded
        message = f"{name}={size} of {n_users:,} users is less than one user"
        raise ConfigError(message, hint="pass a larger share, or a count")
    message = f"{name} must be a count from 0 up or a share between 0 and 1: {size!r}"
    raise ConfigError(message, hint="for example 500 or 0.1")


def _check_settings(seed: Any, target_share: float, min_items: int) -> None:
    if not is_integer(seed, 0, most=2**32 - 1):
        message = f"random_state must be a whole number from 0 to 2^32 - 1: {seed}"
        raise ConfigError(message, hint="the published splits use 98765")
    if not isinstance(target_share, (float, np.floating)) or not 0 < target_share < 1:
        message = f"target_share must lie between 0 and 1: {target_share!r}"
        raise ConfigError(message, hint="the published splits use 0.2")
    if not is_integer(min_items, 1):
        message = f"min_items must be a whole number of at least 1: {min_items!r}"
        raise ConfigError(message, hint="the published splits use 5")


_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.1, 5000
"""How many users are held out for validation, and as many for the test."""


def as_split(data: Any) -> Split:
    """Take a split as it is; of other data, hold out a tenth of the users twice, at most 5,000.

    Examples
    --------
    >>> import limelight as ll
    >>> split = as_split(ll.marketplace(600, 100, 9000).interactions)
    >>> split.train.n_users, split.validation.n_users, split.test.n_users
    (480, 60, 60)
    """
    if isinstance(data, Split):
        split = data
    else:
        whole = as_interactions(data)
        held_out = min(int(_HELD_OUT_SHARE * whole.n_users), _MOST_HELD_OUT)
        split = split_users(whole, validation=held_out, test=held_out)
    for name in ("validation", "test"):
        part = getattr(split, name)
        if not part.targets.nnz:
            message = f"the {part.n_users:,} {name} users have no held-out items to find"
            hint = "users with few items have none; give more users, or hold out more of them"
            raise DataError(message, hint=hint)
    return split
