"""Pairs of users and items, in the numbers of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

from limelight._errors import DataError
from limelight.data.grouping import group, row_numbers
from limelight.data.ids import positions
from limelight.data.read import read

if TYPE_CHECKING:
    from limelight.data.candidates import Candidates
    from limelight.data.sources import Source


def aligned_pairs(source: Source, candidates: Candidates, what: str) -> csr_matrix:
    """Read pairs, one row for each user who has candidates; what is unknown is left out.

    Parameters
    ----------
    source
        A file or frame of users and items, as for ``ll.read``.
    candidates
        Whose numbers are taken.
    what
        What messages call the pairs.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data import read_candidates
    >>> table = pa.table({"user_id": [7, 5], "item_id": ["b", "a"], "score": [0.5, 0.25]})
    >>> pairs = pa.table({"user_id": [5, 5, 6], "item_id": ["a", "b", "a"]})
    >>> aligned_pairs(pairs, read_candidates(table), "history").indptr
    array([0, 0, 2], ...)
    """
    data = read(source)
    users = positions(data.user_ids, candidates.user_ids)[row_numbers(data.indptr)]
    items = positions(data.item_ids, candidates.item_ids)[data.indices]
    known = (users >= 0) & (items >= 0)
    if not known.any():
        pair = f"{data.user_ids.item(0)!r}, {data.item_ids.item(0)!r}"
        message = f"no pair of the {what} has a user and an item of the candidates, such as {pair}"
        user, item = (
            np.asarray(candidates.user_ids).item(0),
            np.asarray(candidates.item_ids).item(0),
        )
        raise DataError(message, hint=f"the candidates have ids such as {user!r}, {item!r}")
    shape = candidates.n_users, candidates.n_items
    rows = group(users[known].astype(np.int32), items[known].astype(np.int32), *shape)
    values = np.ones(len(rows.indices), dtype=np.float32)
    return csr_matrix((values, rows.indices, rows.indptr), shape=shape)
