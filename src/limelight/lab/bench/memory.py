"""Reading a table with text ids, and the peak memory of reading and of fits.

Memory is measured in a process of its own for each candidate, so that nobody inherits another's:
``python -m limelight.lab.bench.memory fit|read NAME FILE FACTORS THREADS`` prints the bytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from scipy import sparse

from limelight._base import memory
from limelight._base.errors import LimelightError
from limelight._base.machine import version_of
from limelight.data import Interactions, marketplace, read
from limelight.lab.bench.peers import quiet_imports
from limelight.lab.bench.records import Entry
from limelight.lab.bench.task import FIXED, UNOBSERVED_WEIGHT
from limelight.lab.bench.timing import Candidate
from limelight.models import IALS, ExADMM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from limelight.lab.bench.jobs import RaceSetup
    from limelight.lab.bench.records import Race

    Fit = Callable[[Interactions, int, int], Callable[[], object]]


ABOUT_READING = (
    "From a table of two columns of text ids (`user-00000042`) to a sparse matrix of users x "
    "items. pandas and polars read, number the ids and build the matrix; limelight also sorts the "
    "ids, merges repeated pairs and keeps the order of the file. The objective is the number of "
    "pairs."
)


def reading(setup: RaceSetup) -> Iterator[Race]:
    """Race readers of CSV and of Parquet."""
    before = pa.cpu_count()
    pa.set_cpu_count(setup.threads)
    try:
        for kind, file in _tables(setup.data.interactions):
            yield _race(setup, kind, file)
    finally:
        pa.set_cpu_count(before)


def _race(setup: RaceSetup, kind: str, file: Path) -> Race:
    work = {who: partial(reader, file) for who, reader in installed_of(READERS).items()}
    candidates = [Candidate(who, run) for who, run in work.items()]
    race = setup.race("reading", candidates, part=kind)
    race = race.with_results(objective=[float(run()) for run in work.values()])
    return replace(race, factors=None)


def _tables(data: Interactions) -> Iterator[tuple[str, Path]]:
    """Write interactions in every format, one file at a time."""
    with TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            yield kind, write_table(data, Path(folder) / f"table.{kind}")


def write_table(data: Interactions, file: Path) -> Path:
    """Write interactions as a table of text ids."""
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    columns = {"user_id": _names("user", users), "item_id": _names("item", data.indices)}
    write = pa_csv.write_csv if file.suffix == ".csv" else pq.write_table
    write(pa.table(columns), file)
    return file


def _names(kind: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    names = pa.array([f"{kind}-{number:08}" for number in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


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
    "limelight": lambda file: read(file).nnz,
    "pandas": _read_with_pandas,
    "polars": _read_with_polars,
}
"""Whoever can read a table; each returns how many distinct pairs there are."""
T = TypeVar("T")
_EPOCHS = 2
_REFERENCES = Path("/proc/self/clear_refs")


def _fit_ials(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    model = IALS(factors=factors, num_threads=threads, epochs=_EPOCHS, **FIXED)
    return lambda: model.fit(data)


def _fit_exadmm(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    weight = UNOBSERVED_WEIGHT / data.n_users
    settings = {"factors": factors, "num_threads": threads, "epochs": _EPOCHS, **FIXED}
    model = ExADMM(**settings, exposure_weight=weight, solver="admm")
    return lambda: model.fit(data)


def _fit_irspack(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    with quiet_imports():
        from irspack import IALSRecommender
    matrix, settings = data.matrix, {"alpha0": UNOBSERVED_WEIGHT, "solver_type": "CHOLESKY"}
    return lambda: IALSRecommender(
        matrix, n_components=factors, n_threads=threads, train_epochs=_EPOCHS, **settings
    ).learn()


def _fit_implicit(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    with quiet_imports():
        from implicit.cpu.als import AlternatingLeastSquares
    matrix = data.matrix
    model = AlternatingLeastSquares(
        factors=factors, use_cg=False, num_threads=threads, iterations=_EPOCHS
    )
    return lambda: model.fit(matrix, show_progress=False)


FITS: dict[str, Fit] = {
    "limelight exADMM": _fit_exadmm,
    "limelight iALS": _fit_ials,
    "irspack CHOLESKY": _fit_irspack,
    "implicit Cholesky": _fit_implicit,
}


def installed_of(known: Mapping[str, T]) -> dict[str, T]:
    """Leave out whoever is not installed; names begin with the name of the package.

    Examples
    --------
    >>> installed_of({"limelight iALS": 1, "no_such_package": 2})
    {'limelight iALS': 1}
    """
    return {who: what for who, what in known.items() if version_of(who.split()[0])}


def peak_bytes() -> int:
    """Return the most memory that this process has held."""
    if known := memory.peak():
        return known
    import resource  # pragma: no cover - Linux tells above

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # pragma: no cover


def resident_bytes() -> int:
    """Return the memory that this process holds; where the system does not say, the most it held.

    Examples
    --------
    >>> 2**20 < resident_bytes() <= peak_bytes()
    True
    """
    return memory.resident() or peak_bytes()


def bytes_taken(run: Callable[[], object]) -> int:
    """Run something; return by how much its peak stood above what the process held before."""
    with suppress(OSError):
        _REFERENCES.write_text("5")  # the peak starts anew from here
    before = resident_bytes()
    run()
    return max(0, peak_bytes() - before)  # the system counts in rough steps


def main(arguments: Sequence[str]) -> int:
    """Load the data, run the action, and return what it took."""
    action, who, file, factors, threads = arguments
    # What is imported and made on first use does not count.
    small = marketplace(40, 20, 300).interactions
    if action == "read":
        reader = READERS[who]
        with TemporaryDirectory() as folder:
            reader(write_table(small, Path(folder, "small").with_suffix(Path(file).suffix)))
        return bytes_taken(lambda: reader(Path(file)))
    FITS[who](small, int(factors), int(threads))()
    with np.load(file) as stored:
        indptr, indices, n_items = (stored[name] for name in ("indptr", "indices", "n_items"))
    data = Interactions(indptr, indices, np.arange(len(indptr) - 1), np.arange(int(n_items)))
    return bytes_taken(FITS[who](data, int(factors), int(threads)))


ABOUT_FIT = (
    "The most memory that a fit of two epochs takes beyond what the process held when the data "
    "were loaded, each in a process of its own. Last, for comparison: the arrays that every fit "
    "has to hold, which are the interactions by item and the factors."
)

ABOUT_READ = (
    "The most memory that reading takes beyond what the process held before, each in a process of "
    "its own. Last, for comparison: what `limelight.read` returns."
)

_ARRAYS = "the arrays alone"


def fits(setup: RaceSetup) -> Iterator[Race]:
    """Measure the peak memory of fits."""
    data = setup.data.split.train
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, indptr=data.indptr, indices=data.indices, n_items=data.n_items)
        entries = [_measure("fit", who, file, setup) for who in installed_of(FITS)]
    by_item = data.indices.nbytes + (data.n_items + 1) * data.indptr.itemsize
    factors = 4 * setup.factors * (data.n_users + data.n_items)
    yield setup.record("memory", [*entries, Entry(_ARRAYS, n_bytes=by_item + factors)])


def reads(setup: RaceSetup) -> Iterator[Race]:
    """Measure the peak memory of reading."""
    for kind, file in _tables(setup.data.interactions):
        entries = [_measure("read", who, file, setup) for who in installed_of(READERS)]
        kept = Entry(_ARRAYS, n_bytes=kept_bytes(read(file)))
        race = setup.record("reading-memory", [*entries, kept], part=kind)
        yield replace(race, factors=None)


def kept_bytes(data: Interactions) -> int:
    """Count the bytes of interactions, their ids included."""
    arrays = (data.indptr, data.indices, data.user_ids, data.item_ids, data.order)
    names = (name for ids in (data.user_ids, data.item_ids) for name in ids.tolist())
    held = sum(array.nbytes for array in arrays if array is not None)
    return held + sum(sys.getsizeof(name) for name in names)


def _measure(action: str, who: str, file: Path, setup: RaceSetup) -> Entry:
    sizes = (str(setup.factors), str(setup.threads))
    command = [sys.executable, "-m", "limelight.lab.bench.memory", action, who, str(file), *sizes]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        reasons = [line for line in ended.stderr.splitlines() if "Error" in line]
        message = f"{who} failed to {action}: {reasons[-1] if reasons else ended.returncode}"
        raise LimelightError(message, hint="leave this job out with --jobs")
    return Entry(who, n_bytes=int(ended.stdout))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with redirect_stdout(sys.stderr):  # some draw progress bars there
        taken = main(sys.argv[1:])
    print(taken)  # noqa: T201
