"""Estimates of the memory that re-ranking takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limelight._base.memory import ARROW
from limelight.data.candidates.sorter import BUFFER_BYTES
from limelight.data.candidates.storage import PAIR_BYTES
from limelight.data.estimate import sample_table
from limelight.data.read_columns import choose_columns
from limelight.data.sources import open_parts
from limelight.recommend.candidates import usual_width
from limelight.recommend.memory import loaded_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from limelight.store.model_size import ModelSize

_BUFFERED = 12
"""Bytes of a pair in the buffer of a sorter."""
_ORDERED = 8
"""Further bytes of a pair while pairs that are not grouped by user are sorted."""
_MADE, _BATCH = 120, 1 << 21
"""Bytes of a candidate of a model while it is found, and how many are found at once."""
_RELEVANCE, _RANKED = 4, 8
_TRIED, _PILOT_PAIRS = 36, 1 << 22
"""Bytes of a candidate of the users on whom welfares are tried, and how many there are at most."""
_PLACE = 44
"""Bytes of a place in the lists of several strengths, and in the result."""
_SLACK = 40 << 20
"""Memory of finished batches that the process keeps for the next ones."""


class Supply(NamedTuple):
    """How many candidates there are, and where they come from."""

    n_pairs: int
    n_users: int
    source: int
    """Bytes of what they come from, all the while."""
    making: int
    """Bytes of what is needed while they come."""
    is_grouped: bool = True
    """Whether they come user by user."""


def model_supply(model: ModelSize, n_users: int | None = None) -> Supply:
    """Tell how many candidates a model makes for so many users of its training, or for all."""
    asked = model.n_users if n_users is None else min(n_users, model.n_users)
    width = min(usual_width(model.n_users), model.n_items)
    unseen = model.n_users * model.n_items - model.n_entries
    n_pairs = min(asked * width, unseen)
    return Supply(n_pairs, asked, loaded_bytes(model), _MADE * min(n_pairs, _BATCH))


def table_supply(path: Path) -> Supply:
    """Tell how many candidates a table has."""
    parts = open_parts(path)
    user, item = choose_columns(path, parts[0], None, None)
    found = sample_table(parts, [user, item])
    return Supply(
        n_pairs=int(found.n_rows),
        n_users=int(found.distinct(user)),
        source=ARROW + int(found.coding_bytes(user, item)),
        making=0,
        is_grouped=found.is_grouped(user),
    )


def rerank_bytes(supply: Supply, k: int, memory: int) -> int:
    """Estimate the bytes that re-ranking takes beside what the process holds.

    Of candidates, what is more than so many bytes of ``memory`` goes to scratch files.

    Examples
    --------
    >>> many = Supply(n_pairs=200_000_000, n_users=50_000, source=0, making=0)
    >>> rerank_bytes(many, 20, memory=1 << 28) < rerank_bytes(many, 20, memory=1 << 30)
    True
    """
    n_pairs, capacity = supply.n_pairs, memory // BUFFER_BYTES
    held = PAIR_BYTES * n_pairs if PAIR_BYTES * n_pairs <= memory else 0
    in_buffer = _BUFFERED if supply.is_grouped else _BUFFERED + _ORDERED
    gathering = supply.making + in_buffer * min(n_pairs, capacity)
    if n_pairs < capacity:
        gathering += held
    relevance = _RELEVANCE * n_pairs if _RELEVANCE * n_pairs <= memory else 0
    ranked = _RANKED * n_pairs if 3 * _RELEVANCE * n_pairs <= memory else 0
    # Welfares are tried on some users before the blocks of all users take the form that kernels
    # read, so the two never stand in memory together.
    working = max(ranked, _TRIED * min(n_pairs, _PILOT_PAIRS))
    choosing = held + relevance + working + _PLACE * supply.n_users * k + _SLACK
    return supply.source + max(gathering, choosing)


def most_memory(supply: Supply, k: int, room: int) -> int:
    """Return the largest `memory` whose run has room, halved from 1 GiB down; 0 for none."""
    tries = (1 << power for power in range(30, 20, -1))
    return next((memory for memory in tries if rerank_bytes(supply, k, memory) <= room), 0)
