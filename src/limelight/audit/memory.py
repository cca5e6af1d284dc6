"""How much memory an audit takes, before it takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.memory import ARROW
from limelight.audit.lists import list_names
from limelight.data.estimate import sample_table
from limelight.data.sources import open_parts

if TYPE_CHECKING:
    import os

_HELD = 16
"""What a row of lists takes: user, item, rank, and the item's number in the catalogue."""
_SORTED = 16
"""Further bytes of a row while rows are sorted, and while users are left out."""
_TIMED = 32
"""Further bytes of a row where the lists have times."""
_BLOCK = 28 << 20
"""What a block of rows takes while its figures are worked out."""


def audit_bytes(
    lists: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    *,
    timestamp: str | None = None,
) -> int:
    """Estimate the bytes that :func:`limelight.audit` takes beside what the process holds.

    Parameters
    ----------
    lists, against, timestamp
        As for :func:`limelight.audit`, but no frames.
    """
    rows, ids = [], 0.0
    for source in (lists, against):
        if source is not None:
            parts = open_parts(source)  # says what is wrong with it
            names = list_names(source, parts)[:2]
            found = sample_table(parts, names)
            rows.append(found.n_rows)
            ids += found.coding_bytes(*names)
    timed = 0 if timestamp is None else _TIMED
    return ARROW + _BLOCK + int(sum(rows) * _HELD + max(rows) * (_SORTED + timed) + ids)
