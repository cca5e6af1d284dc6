"""Data whose right answer is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from limelight._base.seeds import seed_of

if TYPE_CHECKING:
    from limelight._base.seeds import RandomState


def checkerboard(size: int) -> sparse.csr_matrix:
    """Users like the items of their own colour, each but the one with her own number.

    A model that has learnt the colours recommends that one item first.

    Examples
    --------
    >>> checkerboard(4).toarray()
    array([[0., 0., 1., 0.],
           [0., 0., 0., 1.],
           [1., 0., 0., 0.],
           [0., 1., 0., 0.]], dtype=float32)
    """
    rows, columns = np.indices((size, size))
    same_colour = (rows % 2 == columns % 2) & (rows != columns)
    return sparse.csr_matrix(same_colour.astype(np.float32))


def random_interactions(
    n_users: int,
    n_items: int,
    *,
    density: float = 0.2,
    random_state: RandomState | None = None,
    seed: int | None = None,
) -> sparse.csr_matrix:
    """Draw a binary matrix; popular items come first, and some rows may stay empty.

    Examples
    --------
    >>> random_interactions(5, 4).shape
    (5, 4)
    """
    generator = np.random.default_rng(seed_of(random_state, seed))
    popularity = 2 * density * (1 - np.arange(n_items) / n_items)
    return sparse.csr_matrix((generator.random((n_users, n_items)) < popularity).astype(np.float32))
