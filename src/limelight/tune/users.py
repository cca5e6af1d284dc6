"""Whom a search decides by: held-out users, and training users as if they were unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError
from limelight.data.interactions import as_interactions
from limelight.data.split import Split, split_users

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

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
            raise DataError(message, hint="users with few items have none: hold out more users")
    return split


def _hold_out(data: Interactions) -> Split:
    held_out = min(int(_SHARE * data.n_users), _MOST)
    return split_users(data, validation=held_out, test=held_out)


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
