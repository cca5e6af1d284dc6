"""Candidates of any number of users, as another recommender would hand them over.

The recommender knows the true tastes of a marketplace and the quality of its items, but not well:

    score(user, item) = TASTE * shared taste + quality + NOISE * (user's noise . item's noise)

with the logarithm of the quality in standard units, and standard normal noise in `NOISE_FACTORS`
dimensions. So a few items are near the top for most people, and most items for few.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError
from limelight._base.files import atomic_folder
from limelight._base.progress import progress_bar
from limelight._native import resolve_threads
from limelight.data import marketplace
from limelight.recommend.index import ItemIndex

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from limelight._base.arrays import Float32
    from limelight.metrics.lists import Lists

TASTE, NOISE = 3.0, 0.3
NOISE_FACTORS = 43
"""With 20 tastes and the quality these make 64 factors, which suits the search."""
BLOCK = 16_384
"""Users of a part. Changing it changes the data of a seed."""


def write_candidates(
    folder: str | os.PathLike[str],
    *,
    n_users: int,
    n_items: int,
    n_candidates: int,
    seed: int = 0,
    show_progress: bool | None = None,
) -> None:
    """Write each user's best candidates as Parquet parts ``user_id, item_id, score``, best first.

    Ids are 0, 1, 2, ... The same seed and sizes give the same data. Nothing else may be in the
    folder. Progress is shown where standard error is a terminal, unless ``show_progress`` says.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/candidates"
    >>> write_candidates(folder, n_users=20, n_items=50, n_candidates=10)
    >>> pq.read_table(folder).num_rows
    200
    """
    if not 1 <= n_candidates <= n_items:
        message = f"n_candidates must be from 1 to the {n_items:,} items: {n_candidates!r}"
        raise ConfigError(message, hint="a user can have an item as a candidate once")
    market = marketplace(n_users, n_items, n_users, min_items=1, seed=seed)
    quality = np.log(market.quality)
    quality = (quality - quality.mean()) / max(quality.std(), 1e-6)
    noise = _noise(n_items, seed, 0)
    vectors = np.hstack([TASTE * market.item_tastes, quality[:, None], noise])
    index = ItemIndex(vectors, resolve_threads(0))
    parts = list(batches(n_users, BLOCK))
    with (
        atomic_folder(folder, replace_if=lambda _: False) as temporary,
        progress_bar("candidates", len(parts), show=show_progress) as advance,
    ):
        for number, users in enumerate(parts):
            tastes = market.user_tastes[users]
            noise = NOISE * _noise(len(tastes), seed, 1, number)
            queries = np.hstack([tastes, np.ones((len(tastes), 1), dtype=np.float32), noise])
            table = _table(users.start, index.search(queries, n_candidates))
            file = temporary / f"part-{number:05}.parquet"
            # Scores hardly repeat, so a dictionary of them would only cost time.
            pq.write_table(table, file, use_dictionary=["user_id", "item_id"])
            advance()


def _noise(n_rows: int, *key: int) -> Float32:
    generator = np.random.default_rng(key)
    return generator.standard_normal((n_rows, NOISE_FACTORS), dtype=np.float32)


def _table(first_user: int, lists: Lists) -> pa.Table:
    n_users, k = lists.ids.shape
    users = np.repeat(np.arange(first_user, first_user + n_users), k)
    items = lists.ids.ravel().astype(np.int64)
    return pa.table({"user_id": users, "item_id": items, "score": lists.scores.ravel()})


def main(arguments: Sequence[str] | None = None) -> None:
    """Write candidates as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m limelight.lab.bench.candidates", description="Write made-up candidates."
    )
    parser.add_argument("folder")
    parser.add_argument("--users", dest="n_users", type=int, default=1_000_000)
    parser.add_argument("--items", dest="n_items", type=int, default=100_000)
    parser.add_argument("--candidates", dest="n_candidates", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    write_candidates(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
