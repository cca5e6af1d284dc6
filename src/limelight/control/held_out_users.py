"""Whom a search decides by: held-out users, and training users as if they were unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from limelight._base.errors import DataError
from limelight.data.held_out import HeldOut
from limelight.data.interactions import as_interactions
from limelight.data.rows import row_numbers
from limelight.data.split import Split, split_users

if TYPE_CHECKING:
    from limelight.data.interactions import Interactions

_SHARE, _MOST = 0.1, 5000
"""How many users are held out for validation, and as many for the test."""
_LEFT_OUT = 0.2
"""What part of a history is left out, as it is of users who are tested."""


def as_split(data: Any) -> Split:
    """Take a split as it is; of other data, hold out a tenth of the users twice, at most 5,000.

    Examples
    --------
    >>> import limelight as ll
    >>> split = as_split(ll.marketplace(600, 100, 9000).interactions)
    >>> split.train.n_users, split.validation.n_users, split.test.n_users
    (480, 60, 60)
    """
    split = data if isinstance(data, Split) else _hold_out(as_interactions(data))
    for name in ("validation", "test"):
        part = getattr(split, name)
        if not part.targets.nnz:
            message = f"the {part.n_users:,} {name} users have nothing to find"
            hint = "users with few items have none; give more users, or hold out more of them"
            raise DataError(message, hint=hint)
    return split


def _hold_out(data: Interactions) -> Split:
    held_out = min(int(_SHARE * data.n_users), _MOST)
    return split_users(data, validation=held_out, test=held_out)


def refolded(part: HeldOut, *, folds: int = 5, seed: int = 0) -> list[HeldOut]:
    """Let the same users find other items of theirs: each item is to be found once.

    What a user has to find is drawn at random, and says much less of her than five such draws. The
    first part is the given one; the others ask for the items of the history in turn.

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
    # Users who had nothing to find have too few items: others are not measured by them either.
    is_scored = np.diff(part.targets.indptr)[users] > 0
    parts = [part]
    for fold in range(folds - 1):
        asked = is_scored & (places % (folds - 1) == fold)
        pairs = (users[asked], history.indices[asked])
        targets = csr_matrix((history.data[asked], pairs), history.shape)
        shown = csr_matrix(history + part.targets - targets)
        shown.eliminate_zeros()
        parts.append(HeldOut(shown, targets, part.user_ids))
    return parts


def as_unseen(histories: csr_matrix, most: int, *, seed: int = 0) -> csr_matrix:
    """Return some users with a fifth of their histories left out.

    A model has learnt from all of a training user's history, and what is left of her candidates
    she did not choose. With a part left out she looks more like a user to come.

    Parameters
    ----------
    histories
        One row a user.
    most
        How many users to return, at most, drawn at random.
    seed
        Of both draws.
    """
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.permutation(histories.shape[0])[:most])
    some = histories[chosen].copy()
    some.data[generator.random(some.nnz) < _LEFT_OUT] = 0
    some.eliminate_zeros()
    return some
