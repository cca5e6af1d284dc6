"""Whether every user is in one file alone: a piece of work must see all rows of its users."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limelight.data.interactions import Ids


def digests(ids: Ids) -> np.ndarray:
    """Digest ids into whole numbers; 7 and "7" are the same."""
    found = (hashlib.blake2b(str(one).encode(), digest_size=8).digest() for one in ids.tolist())
    return np.frombuffer(b"".join(found), dtype="<u8")


def refuse_repeats(found: Iterable[np.ndarray]) -> None:
    """Refuse users with rows in two files: a piece would see half of them."""
    together = np.concatenate(list(found))
    if twice := len(together) - len(np.unique(together)):
        message = f"users have rows in more than one file: {twice:,} of them"
        hint = "write all rows of a user to one file, or leave --executor out"
        raise DataError(message, hint=hint)


def are_apart(ends: Sequence[tuple[Any, Any]]) -> bool:
    """Tell whether stretches of ids, by their first and last, have none in common.

    Examples
    --------
    >>> are_apart([(5, 9), (1, 4)]), are_apart([(1, 5), (4, 9)]), are_apart([(1, 5), ("6", "9")])
    (True, False, False)
    """
    if len({type(first) for first, _ in ends}) > 1:
        return False
    return all(one[1] < other[0] for one, other in pairwise(sorted(ends)))
