"""Histories in the numbering of a catalogue, ready for the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight.data.ids import positions
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.rows import group, row_numbers
from limelight.solve.problem import sparse_rows

if TYPE_CHECKING:
    from limelight._base.arrays import Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids


def history_rows(histories: Any, item_ids: Ids) -> Csr:
    """Check histories against a catalogue and hand them to the kernels.

    A sparse matrix has one column for each item of the catalogue, in its order. Interactions with
    ids are matched by item id; items that the catalogue does not have are left out.
    """
    histories = as_interactions(histories)
    if histories.has_ids:
        if not np.array_equal(histories.item_ids, item_ids):
            histories = match_items(histories, item_ids)
    elif histories.n_items != len(item_ids):
        message = (
            f"histories have {histories.n_items:,} columns, the model has {len(item_ids):,} items"
        )
        raise DataError(message, hint="use the item numbering of the training matrix")
    return sparse_rows(histories.indptr, histories.indices, len(item_ids))


def match_items(data: Interactions, item_ids: Ids) -> Interactions:
    """Number the items as a catalogue does, leaving out those that it does not have.

    Integers and strings are compared as strings: 7 in one file is '7' in another.
    """
    numbers = positions(data.item_ids, item_ids)
    if data.n_items and (numbers < 0).all():
        message = f"no item of the histories is in the catalogue, such as {data.item_ids.item(0)!r}"
        raise DataError(message, hint=f"the catalogue has ids such as {item_ids.item(0)!r}")
    columns = numbers[data.indices]
    known = columns >= 0
    rows = group(row_numbers(data.indptr)[known], columns[known], data.n_users, len(item_ids))
    return Interactions(rows.indptr, rows.indices, data.user_ids, item_ids)


def take_rows(rows: Csr, chosen: Int64) -> Csr:
    """Gather some rows of a matrix, in the order given, repeats allowed."""
    starts, lengths = rows.indptr[chosen], np.diff(rows.indptr)[chosen]
    indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    # Entry t of the result stands at its row's start plus its distance from that row's first entry.
    positions = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    return sparse_rows(indptr, rows.indices[positions], rows.n_columns)


def take_columns(rows: Csr, chosen: Int32) -> Csr:
    """Keep some columns of a matrix, whose numbers ascend, and number them anew."""
    numbers = np.full(rows.n_columns, -1, dtype=np.int32)
    numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
    columns = numbers[rows.indices]
    kept = np.concatenate([[0], np.cumsum(columns >= 0)])
    return sparse_rows(kept[rows.indptr], columns[columns >= 0], len(chosen))
