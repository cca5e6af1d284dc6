"""One candidate's peak memory: what ``python -m limelight.benchmarks.peak`` prints.

Its arguments are ``fit`` or ``read``, a name, a file, factors and threads.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from limelight._machine import version_of
from limelight.benchmarks.peers import quiet_imports
from limelight.benchmarks.reading import READERS, write_table
from limelight.benchmarks.task import UNOBSERVED_WEIGHT
from limelight.data import Interactions, marketplace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Fit = Callable[[Interactions, int, int], Callable[[], object]]

T = TypeVar("T")
_EPOCHS = 2
_STATUS, _REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _fit_ials(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    from limelight.models import IALS

    model = IALS(factors=factors, num_threads=threads, epochs=_EPOCHS)
    return lambda: model.fit(data)


def _fit_exadmm(data: Interactions, factors: int, threads: int) -> Callable[[], object]:
    from limelight.models import ExADMM

    weight = UNOBSERVED_WEIGHT / data.n_users
    model = ExADMM(
        factors=factors,
        num_threads=threads,
        epochs=_EPOCHS,
        exposure_weight=weight,
        solver="admm",
    )
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
    """Return the most memory that this process has held.

    Examples
    --------
    >>> peak_bytes() > 2**20
    True
    """
    with suppress(OSError):
        return _status("VmHWM")
    import resource  # pragma: no cover - Linux tells above

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # pragma: no cover


def resident_bytes() -> int:
    """Return the memory that this process holds; where the system does not say, the most it held.

    Examples
    --------
    >>> resident_bytes() > 2**20
    True
    """
    with suppress(OSError):
        return _status("VmRSS")
    return peak_bytes()  # pragma: no cover - Linux


def bytes_taken(run: Callable[[], object]) -> int:
    """Run something; return by how much its peak stood above what the process held before."""
    with suppress(OSError):
        _REFERENCES.write_text("5")  # the peak starts anew from here
    before = resident_bytes()
    run()
    return max(0, peak_bytes() - before)  # the system counts in rough steps


def _status(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise OSError(field)


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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with redirect_stdout(sys.stderr):  # some draw progress bars there
        taken = main(sys.argv[1:])
    print(taken)  # noqa: T201
