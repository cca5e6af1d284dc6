"""How much memory reading takes, before it takes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from limelight._memory import ARROW
from limelight.data.glance import glance
from limelight.data.read import choose_columns
from limelight.data.sources import files_of, open_parts

if TYPE_CHECKING:
    import os

_PAIR = 2 * (4 + 4)
"""Pairs as they came, and once more as rows; each is two numbers."""
_TIME = 2 * 8
_TEXT, _TEXT_SHARE = 40 << 20, 4
"""What parsing text takes: so much, or of a short file so many times its size."""


def reading_bytes(
    source: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    min_rating: float | None = None,
) -> int:
    r"""Estimate the bytes that :func:`limelight.read` takes beside what the process holds.

    Parameters
    ----------
    source, user, item, rating, timestamp, min_rating
        As for :func:`limelight.read`, but no frame.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> 0 <= reading_bytes(file) - ARROW < 100_000
    True
    """
    path = Path(source).expanduser()
    first = open_parts(path)[0]
    user, item = choose_columns(first, user, item)
    found = glance(path, [user, item, *([] if rating is None else [rating])])
    n_rows = found.n_rows
    if rating is not None:
        n_rows *= found.share(rating, min_rating)
    per_row = _PAIR + (0 if timestamp is None else _TIME)
    text = _TEXT_SHARE * sum(file.stat().st_size for file in files_of(path))
    parsing = min(_TEXT, text) if first.is_text else 0
    return ARROW + parsing + int(n_rows * per_row + found.coding_bytes(user, item))
