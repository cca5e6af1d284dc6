"""Reading a table with text ids, from file to sparse matrix."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from scipy import sparse

from limelight._machine import version_of
from limelight.benchmarks.timing import Candidate
from limelight.data import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting
    from limelight.data import Interactions

ABOUT = (
    "From a table of two columns of text ids (`user-00000042`) to a sparse matrix of users x "
    "items. pandas and polars read, number the ids and build the matrix; limelight also sorts the "
    "ids, merges repeated pairs and keeps the order of the file. The objective is the number of "
    "pairs."
)
KINDS = ("csv", "parquet")


def reading(setting: Setting) -> Iterator[Race]:
    """Race readers of CSV and of Parquet."""
    before = pa.cpu_count()
    pa.set_cpu_count(setting.threads)
    try:
        with TemporaryDirectory() as folder:
            for kind in KINDS:
                file = write_table(setting.data.interactions, Path(folder) / f"table.{kind}")
                yield _race(setting, kind, file)
    finally:
        pa.set_cpu_count(before)


def _race(setting: Setting, kind: str, file: Path) -> Race:
    work = {who: partial(read_with, file) for who, read_with in READERS.items() if version_of(who)}
    candidates = [Candidate(who, run) for who, run in work.items()]
    race = setting.race("reading", candidates, part=kind)
    entries = [
        replace(entry, objective=float(run()))
        for entry, run in zip(race.entries, work.values(), strict=True)
    ]
    return replace(race, entries=tuple(entries), factors=None)


def write_table(data: Interactions, file: Path) -> Path:
    """Write interactions as a table of text ids."""
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    columns = {"user_id": _names("user", users), "item_id": _names("item", data.indices)}
    table = pa.table(columns)
    if file.suffix == ".csv":
        pa_csv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    return file


def _names(kind: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    names = pa.array([f"{kind}-{number:08}" for number in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


def _read_with_limelight(file: Path) -> int:
    return read(file).nnz


def _read_with_pandas(file: Path) -> int:
    import pandas as pd

    frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    return _pairs(*(pd.factorize(frame[name])[0] for name in ("user_id", "item_id")))


def _read_with_polars(file: Path) -> int:
    os.environ.setdefault("POLARS_MAX_THREADS", str(pa.cpu_count()))  # obeyed on first import only
    import polars as pl

    frame = pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(file)
    codes = frame.with_columns(pl.all().cast(pl.Categorical).to_physical())
    codes = codes.with_columns(pl.all() - pl.all().min())  # polars numbers all columns together
    return _pairs(codes["user_id"].to_numpy(), codes["item_id"].to_numpy())


def _pairs(users: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> int:
    ones = np.ones(len(users), dtype=np.float32)
    return int(sparse.coo_array((ones, (users, items))).tocsr().nnz)


READERS: dict[str, Callable[[Path], int]] = {
    "limelight": _read_with_limelight,
    "pandas": _read_with_pandas,
    "polars": _read_with_polars,
}
"""Whoever can read a table; each returns how many distinct pairs there are."""
