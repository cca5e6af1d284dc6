"""How large a saved model is, told from its files without loading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from limelight._base.errors import DataError
from limelight.data.estimate import sample_table
from limelight.data.sources import open_parts
from limelight.store.json import read_json
from limelight.store.model_folder import CONFIG, FACTORS, ITEMS, SEEN, USERS

if TYPE_CHECKING:
    import os


class ModelSize(NamedTuple):
    """How much there is of what."""

    model: str
    """The name of its class."""
    n_users: int
    n_items: int
    arrays: int
    """Bytes of what was learnt."""
    seen: int
    """Bytes of the histories."""
    ids: int
    """Bytes of the ids of users and items."""
    is_weighted: bool = False
    """Whether the histories have weights."""

    @property
    def n_entries(self) -> int:
        """How many pairs the histories hold."""
        return max(0, (self.seen - 8 * self.n_users) // (8 if self.is_weighted else 4))

    @property
    def width(self) -> int:
        """How many numbers were learnt for each user and item."""
        return self.arrays // (4 * max(1, self.n_users + self.n_items))


def model_size(path: str | os.PathLike[str]) -> ModelSize:
    """Look at the files of a model folder.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> path = tempfile.mkdtemp() + "/model"
    >>> ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 100, 4000).interactions).save(path)
    >>> found = model_size(path)
    >>> found.n_users, found.n_items, found.width
    (300, 100, 8)
    """
    root = Path(path)
    users, items = (
        (_rows(root / file), sample_table(open_parts(root / file), [column]).id_bytes(column))
        for file, column in ((USERS, "user_id"), (ITEMS, "item_id"))
    )
    config = read_json(root / CONFIG)
    return ModelSize(
        model=config["model"],
        n_users=users[0],
        n_items=items[0],
        arrays=(root / FACTORS).stat().st_size,
        seen=(root / SEEN).stat().st_size if (root / SEEN).exists() else 0,
        ids=int(users[1] + items[1]),
        is_weighted=config["data"].get("weighted") is True,
    )


def _rows(file: Path) -> int:
    """Count the rows of a Parquet file, which must be one: a pipe would wait for a writer."""
    if not file.is_file():
        message = f"not a file: {str(file)!r}"
        raise DataError(message, hint="save the model again")
    return int(pq.read_metadata(file).num_rows)
