"""Users whom a model never saw: what they did before, and what it should guess.

Training users can stand in for them, with a part of their histories left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.documents import Document, pairs
from limelight._base.errors import DataError
from limelight._base.seeds import seed_of
from limelight._base.text import count
from limelight.data.ids import positions
from limelight.data.interactions import csr_rows
from limelight.data.rows import by_pair, group, row_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from limelight._base.seeds import RandomState
    from limelight.data.interactions import Ids


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut:
    """Held-out users, each with a history to fold in and targets to guess.

    Attributes
    ----------
    history, targets : csr_matrix
        Users x items of the training data; no pair is in both. The history has the weights of its
        pairs, or ones; targets are ones.
    user_ids : array
        The id of each row.
    history_order, targets_order : int32 array or None
        The file order inside each row, as in ``Interactions.order``.
    target_weights : float32 array or None
        The weights of the targets, which count where everybody is learnt from; None: all are 1.
    item_ids : array or None
        The id of each column, by which models that number items differently are measured.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> import numpy as np
    >>> HeldOut(csr_matrix([[1, 1, 0]]), csr_matrix([[0, 0, 1]]), np.array([17]))
    HeldOut(1 user, 2 interactions of history, 1 target)
    """

    history: csr_matrix[Any]
    targets: csr_matrix[Any]
    user_ids: Ids
    history_order: NDArray[np.int32] | None = None
    targets_order: NDArray[np.int32] | None = None
    target_weights: NDArray[np.float32] | None = None
    item_ids: Ids | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not belong to the same users and items."""
        shapes = self.history.shape, self.targets.shape
        if shapes[0] != shapes[1] or shapes[0][0] != len(self.user_ids):
            message = (
                f"history {shapes[0]}, targets {shapes[1]} "
                f"and {count(len(self.user_ids), 'user id')} do not fit together"
            )
            raise DataError(message, hint="one row for each user, one column for each item in both")

    @property
    def n_users(self) -> int:
        """Number of users, with or without targets."""
        return len(self.user_ids)

    @property
    def weighted_targets(self) -> csr_matrix[Any]:
        """The targets with their weights, or ones."""
        if self.target_weights is None:
            return self.targets
        found = self.targets.copy()
        found.data = self.target_weights.copy()
        return found

    def everything(self) -> csr_matrix[Any]:
        """Return history and targets in one matrix, with their weights."""
        return scipy.sparse.csr_matrix(self.history + self.weighted_targets)

    def take(self, rows: NDArray[np.integer]) -> HeldOut:
        """Return some of the users, by their rows."""
        weights = None if self.target_weights is None else self.weighted_targets[rows].data
        history, targets = self.history[rows], self.targets[rows]
        return HeldOut(
            history, targets, self.user_ids[rows], target_weights=weights, item_ids=self.item_ids
        )

    def renumbered(self, item_ids: Ids, *, has_ids: bool = True) -> HeldOut:
        """Number the items as a model does, which may know more items, but none less.

        A model that was fitted to a matrix has no ids: its first items are these, in this order.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_matrix
        >>> ids, rows = np.array(["a", "b"]), csr_matrix([[1, 0]])
        >>> part = HeldOut(rows, csr_matrix([[0, 1]]), np.array([17]), item_ids=ids)
        >>> part.renumbered(np.array(["b", "new", "a"])).history.toarray()
        array([[0, 0, 1]])
        """
        if self.item_ids is None or np.array_equal(self.item_ids, item_ids):
            return self
        if not has_ids and len(self.item_ids) >= len(item_ids):
            return self
        places = positions(self.item_ids, item_ids) if has_ids else np.arange(len(self.item_ids))
        if (places < 0).any():
            unknown = self.item_ids[places < 0]
            message = (
                f"the model does not know {len(unknown):,} of the {count(len(places), 'item')} "
                f"that it is measured on, e.g. {unknown.tolist()[0]!r}"
            )
            raise DataError(message, hint="measure it on the split that it was trained on")

        def moved(part: csr_matrix[Any]) -> csr_matrix[Any]:
            shape = part.shape[0], len(item_ids)
            # Sorting moves the values in place, and those of the part must stay where they are.
            parts = part.data.copy(), places[part.indices], part.indptr
            found = scipy.sparse.csr_matrix(parts, shape)
            found.sort_indices()
            return found

        weights = None if self.target_weights is None else moved(self.weighted_targets).data
        return HeldOut(
            moved(self.history),
            moved(self.targets),
            self.user_ids,
            target_weights=weights,
            item_ids=item_ids,
        )

    def __repr__(self) -> str:
        history, targets = count(self.history.nnz, "interaction"), count(self.targets.nnz, "target")
        return f"HeldOut({count(self.n_users, 'user')}, {history} of history, {targets})"

    def _repr_html_(self) -> str:
        counts = {
            "users": self.n_users,
            "interactions of history": self.history.nnz,
            "targets": self.targets.nnz,
        }
        table = pairs((name, f"{n:,}") for name, n in counts.items())
        return Document("Held-out users", [table]).html()


def held_out_of(
    rows: NDArray[np.integer],
    items: NDArray[np.integer],
    is_target: NDArray[np.bool_],
    user_ids: Ids,
    n_items: int,
    weights: NDArray[np.float32] | None = None,
) -> HeldOut:
    """Build the two matrices from pairs in file order, which may have weights.

    Examples
    --------
    >>> import numpy as np
    >>> rows, items = np.array([0, 0, 1]), np.array([2, 0, 1])
    >>> held_out_of(rows, items, np.array([True, False, False]), np.array([5, 6]), 3)
    HeldOut(2 users, 2 interactions of history, 1 target)
    """
    shape = len(user_ids), n_items
    history = group(rows[~is_target], items[~is_target], *shape)
    targets = group(rows[is_target], items[is_target], *shape)
    of_history, of_targets = None, None
    if weights is not None:
        of_history, of_targets = (
            by_pair(rows[part], items[part], n_items, (weights[part], np.add))[0]
            for part in (~is_target, is_target)
        )
    return HeldOut(
        csr_rows(history.indptr, history.indices, shape, of_history),
        csr_rows(targets.indptr, targets.indices, shape),
        user_ids,
        history.order,
        targets.order,
        of_targets,
    )


def refolded(part: HeldOut, *, folds: int = 5, seed: int = 0) -> list[HeldOut]:
    """Make further parts of the same users, so that each of their items is a target once.

    Targets are drawn at random, so that one draw measures a user's accuracy with much noise, and
    several draws with less. The first part is the given one; in the others the items of the history
    become targets in turn.

    Parameters
    ----------
    part
        Users who were held out with a fifth of their items, or so.
    folds
        How many parts to return.
    seed
        Of the order of every history.
    """
    history = part.history
    users = row_numbers(history.indptr.astype(np.int64))
    ranked = np.lexsort((np.random.default_rng(seed).random(history.nnz), users))
    places = np.empty(history.nnz, dtype=np.int64)
    places[ranked] = np.arange(history.nnz) - history.indptr[users[ranked]]
    # Users without targets had too few items. They get none here, so that all parts measure the
    # same users.
    is_scored = np.diff(part.targets.indptr)[users] > 0
    parts = [part]
    for fold in range(folds - 1):
        asked = is_scored & (places % (folds - 1) == fold)
        pairs = (users[asked], history.indices[asked])
        ones = np.ones(int(asked.sum()), dtype=np.float32)
        targets = scipy.sparse.csr_matrix((ones, pairs), history.shape)
        kept = history.copy()
        kept.data[asked] = 0
        kept.eliminate_zeros()
        shown = replace(part, history=kept).everything()
        parts.append(HeldOut(shown, targets, part.user_ids, item_ids=part.item_ids))
    return parts


def as_unseen(
    histories: csr_matrix,
    most: int,
    *,
    random_state: RandomState | None = None,
    seed: int | None = None,
) -> csr_matrix:
    """Return some users with a fifth of their histories left out.

    The candidates of a training user exclude her whole history, so they hold nothing that she
    chose. With a part left out they do, as the candidates of a user to come will.

    Parameters
    ----------
    histories
        One row a user.
    most
        How many users to return, at most, drawn at random.
    random_state
        Seed of both draws, 0 unless given. A NumPy generator draws one.
    seed
        The older name of ``random_state``.

    Examples
    --------
    >>> import limelight as ll
    >>> histories = ll.marketplace(300, 100, 4000).interactions.matrix
    >>> as_unseen(histories, 200).shape
    (200, 100)
    """
    generator = np.random.default_rng(seed_of(random_state, seed))
    chosen = np.sort(generator.permutation(histories.shape[0])[:most])
    return left_out(histories[chosen], generator)


def left_out(histories: csr_matrix, generator: np.random.Generator | None = None) -> csr_matrix:
    """Return histories with a fifth of each left out, drawn at random."""
    generator = np.random.default_rng(0) if generator is None else generator
    some = histories.copy()
    some.data[generator.random(some.nnz) < _LEFT_OUT] = 0
    some.eliminate_zeros()
    return some


_LEFT_OUT = 0.2
"""What part of a history is left out, as it is of users who are tested."""
