"""What everybody would choose at prices that stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight._native import kernels

if TYPE_CHECKING:
    from limelight._arrays import Float32, Int32
    from limelight.rerank.pool import Pool


def choose(pool: Pool, k: int, subsidies: Float32, draws: Int32, threads: int) -> Int32:
    """Return everybody's best places at the prices that she drew.

    Parameters
    ----------
    pool
        Candidates with relevance.
    k
        Length of the lists.
    subsidies
        What is added to the relevance of each item, one row a set.
    draws
        Which row each user has.
    threads
        How many threads may be used.
    """
    places = np.empty((pool.n_users, k), dtype=np.int32)
    for rows in pool.blocks:
        kernels.best_candidates(
            pool.ranked(rows), subsidies, draws[rows], lists=places[rows], threads=threads
        )
    return places
