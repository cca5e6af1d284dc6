"""How the time of every method, and of an epoch, grows when one thing doubles."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from limelight.data import marketplace
from limelight.lab.bench.task import EXADMM_PERIOD, FIXED, DataSet, ExAdmm, Ials
from limelight.lab.bench.timing import Candidate
from limelight.lab.paper.experiments import DataSize
from limelight.lab.paper.plan import FAIRREC
from limelight.lab.paper.times import per_epoch, seconds_of
from limelight.models import IALS, ExADMM, MultiFR, MultVAE
from limelight.rerank.methods.fairrec import FairRec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.data import Interactions
    from limelight.lab.bench.jobs import RaceSetup
    from limelight.lab.bench.records import Race
    from limelight.lab.bench.task import Task, Trainer


BASE = DataSize(4_000, 2_000, 100_000)
_FACTORS, _EPOCHS, _ROUNDS = 64, 4, 3


def growth(name: str, threads: int, base: DataSize = BASE) -> dict[str, float]:
    """Return the factors by which a method's time grows, by what doubles (beside Table 2)."""
    seconds = _times(threads)[name]

    def measure(size: DataSize, factors: int) -> float:
        return seconds(marketplace(*size).interactions, factors)

    before = measure(base, _FACTORS)
    return {what: measure(size, d) / before for what, size, d in doubled(base, _FACTORS)}


def doubled(size: DataSize, factors: int) -> Iterator[tuple[str, DataSize, int]]:
    """Yield what doubles, and the sizes with it doubled.

    Examples
    --------
    >>> list(doubled(DataSize(2, 3, 4), 8))[-2:]
    [('items', DataSize(users=2, items=6, interactions=4), 8),
     ('factors', DataSize(users=2, items=3, interactions=4), 16)]
    """
    for what in ("interactions", "users", "items"):
        yield what, size._replace(**{what: 2 * getattr(size, what)}), factors
    yield "factors", size, 2 * factors


def _times(threads: int) -> dict[str, Callable[[Interactions, int], float]]:
    shared = {"epochs": _EPOCHS, "num_threads": threads}
    return {
        "iALS": lambda data, d: _epoch(IALS, data, factors=d, trace_every=1, **shared, **FIXED),
        "Mult-VAE": lambda data, d: _epoch(MultVAE, data, hidden=d, latent=d, **shared),
        FAIRREC: lambda data, d: _fair_lists(data, d, threads),
        "Multi-FR": lambda data, d: _epoch(MultiFR, data, latent=d, **shared),
        **{
            name: partial(_exadmm_epoch, solver=solver, threads=threads)
            for name, solver in (("exADMM", "admm"), ("exADMM-exact", "exact"))
        },
    }


def _exadmm_epoch(data: Interactions, factors: int, *, solver: str, threads: int) -> float:
    """Return the seconds of an epoch of exADMM."""
    settings = {"factors": factors, "solver": solver, "epochs": _EPOCHS, "num_threads": threads}
    return _epoch(ExADMM, data, exposure_weight=1e-6, trace_every=1, **settings, **FIXED)


def _epoch(kind: type[Any], data: Interactions, **settings: Any) -> float:
    """Return the seconds of an epoch after the first."""
    return min(per_epoch(kind(**settings).fit(data)) for _ in range(_ROUNDS))


def _fair_lists(data: Interactions, factors: int, threads: int) -> float:
    """Return the seconds of FairRec's lists for all users; the fit is not timed."""
    model = IALS(factors=factors, epochs=_EPOCHS, num_threads=threads, **FIXED).fit(data)

    def make_lists() -> None:
        FairRec(alpha=0.5).rerank(model.ranking(), k=20)

    return min(seconds_of(make_lists) for _ in range(_ROUNDS))


ABOUT = (
    "Made-up data as large as the data set, and the same with one thing doubled: interactions, "
    "users, items or factors. The ratio is the time with it doubled by the time without."
)

_KINDS: dict[str, Callable[[Task], Trainer]] = {
    "exact": Ials,
    "CG": lambda task: Ials(task, "cg"),
    "exADMM": ExAdmm,
}


def race_growth(setup: RaceSetup) -> Iterator[Race]:
    """Race every kind of epoch with itself, one thing doubled."""
    data = setup.data.interactions
    size = DataSize(data.n_users, data.n_items, data.nnz)
    base = replace(setup, data=_market(size))
    for what, grown, factors in doubled(size, setup.factors):
        larger = replace(setup, data=_market(grown), factors=factors)
        for kind, make in _KINDS.items():
            calls = EXADMM_PERIOD if kind == "exADMM" else 1
            candidates = [
                Candidate(who, make(one.task()).epoch, calls=calls)
                for who, one in (("doubled", larger), ("as it is", base))
            ]
            yield setup.race("growth", candidates, part=f"{kind} epoch, twice the {what}")


def _market(size: DataSize) -> DataSet:
    return DataSet("made up", marketplace(*size, min_items=1).interactions)
