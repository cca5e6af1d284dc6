"""Estimates of the memory that a saved model takes to serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight._base.memory import ARROW
from limelight.recommend.ranking import SCORES
from limelight.solve.problem import padded_width

if TYPE_CHECKING:
    from limelight.store.model_size import ModelSize

_FLOAT = 4
_CHECKED = 1.25
"""How much more histories take while they are checked, against their own size."""
_GATHERED = 28
"""Bytes of an entry of a history while the histories of a batch of users are gathered."""
_LISTED = 80
"""Bytes of a place of a list while it is found, numbered and written."""
_WRITER = 12 << 20
"""Bytes of a file that is being written."""


def _vectors(model: ModelSize, n_rows: int) -> int:
    """Estimate the bytes of vectors, twice; EASE has none, but scores of a batch of users."""
    return 2 * n_rows * padded_width(model.width) * _FLOAT if model.model != "EASE" else 2 * SCORES


def loaded_bytes(model: ModelSize) -> int:
    """Estimate the bytes of a model that has been loaded, laid out for searches."""
    index = _vectors(model, model.n_items)
    return ARROW + model.arrays + model.seen + model.ids + index


def recommend_bytes(model: ModelSize, k: int, batch_size: int) -> int:
    """Estimate the bytes that lists for all users of a model take, made batch by batch."""
    n_users = min(batch_size, model.n_users)
    queries = _vectors(model, n_users)
    histories = _GATHERED * model.n_entries * n_users / max(1, model.n_users)
    lists = _LISTED * n_users * min(k, model.n_items) + _WRITER
    return loaded_bytes(model) + int(max(_CHECKED * model.seen, queries + histories + lists))
