"""What a request names by its own ids: users, and items to leave out or to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight.data.ids import positions

if TYPE_CHECKING:
    from limelight._base.arrays import Int32, Int64
    from limelight.data.interactions import Ids

ITEM_HINT = "the ids are those of the training data, model.item_ids"


def numbers_of(wanted: Any, known: Ids, what: str, hint: str) -> Int64:
    """Return the numbers of some ids among the known ones; refuse what is not among them.

    Integers and strings are compared as strings: 7 in one file is '7' in another.

    Examples
    --------
    >>> numbers_of(["b", "c"], np.array(["a", "b", "c"], dtype=object), "item", "see the ids")
    array([1, 2])
    """
    ids = _as_ids(wanted)
    found = np.asarray(positions(ids, known), dtype=np.int64)
    if (found < 0).any():
        message = f"{what} id not in the training data: {ids[found < 0].tolist()[0]!r}"
        raise DataError(message, hint=hint)
    return found


def _as_ids(wanted: Any) -> Ids:
    given = wanted if isinstance(wanted, str | np.ndarray) or np.isscalar(wanted) else list(wanted)
    ids = np.atleast_1d(np.asarray(given))
    if ids.dtype.kind not in "iu":
        ids = np.array([str(one) for one in ids.tolist()], dtype=object)
    return ids


def _known_of(wanted: Any, item_ids: Ids) -> Int64:
    """Return the numbers of the ids that are known.

    What is sold out, or new, comes from a catalogue that is newer than the model.
    """
    found = np.asarray(positions(_as_ids(wanted), item_ids), dtype=np.int64)
    return found[found >= 0]


def items_left(item_ids: Ids, exclude: Any = None, allow: Any = None) -> Int32 | None:
    """Return the numbers, ascending, of the items that may be listed; None if all may.

    Ids that are not known are passed over.

    Examples
    --------
    >>> ids = np.array(["a", "b", "c"], dtype=object)
    >>> items_left(ids, exclude=["b"]), items_left(ids, exclude="b", allow=["c", "b"])
    (array([0, 2], dtype=int32), array([2], dtype=int32))
    """
    if exclude is None and allow is None:
        return None
    is_left = np.full(len(item_ids), allow is None)
    if allow is not None:
        is_left[_known_of(allow, item_ids)] = True
    if exclude is not None:
        is_left[_known_of(exclude, item_ids)] = False
    left = np.flatnonzero(is_left).astype(np.int32)
    if not len(left):
        message = f"exclude and allow leave none of {len(item_ids):,} items"
        raise DataError(message, hint=f"allow more items, or exclude fewer; {ITEM_HINT}")
    return left
