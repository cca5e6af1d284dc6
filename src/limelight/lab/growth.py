"""How the time of every method grows when one thing doubles (beside Table 2).

How the time of an epoch grows when one thing doubles.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from limelight.data import marketplace
from limelight.lab.bench.task import EXADMM_PERIOD, DataSet, ExAdmm, Ials
from limelight.lab.bench.timing import Candidate
from limelight.lab.paper.experiments import Size
from limelight.lab.paper.methods import FAIRREC
from limelight.lab.paper.times import per_epoch
from limelight.models import IALS, ExADMM, MultiFR, MultVAE
from limelight.rerank.methods.fairrec import FairRec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.data import Interactions
    from limelight.lab.bench.jobs import Setting
    from limelight.lab.bench.records import Race
    from limelight.lab.bench.task import Task, Trainer


BASE = Size(4_000, 2_000, 100_000)
_FACTORS, _EPOCHS, _ROUNDS = 64, 4, 3


def growth(name: str, threads: int, base: Size = BASE) -> dict[str, float]:
    """Return the factors by which a method's time grows with each thing doubled.

    Parameters
    ----------
    name
        Of the method.
    threads
        As ``num_threads`` of the models.
    base
        The size of the made-up data that are doubled in one direction.
    """
    seconds = _jobs(threads)[name]
    start = marketplace(*base).interactions
    before = seconds(start, _FACTORS)
    grown = {}
    for what in ("interactions", "users", "items"):
        size = base._replace(**{what: 2 * getattr(base, what)})
        grown[what] = seconds(marketplace(*size).interactions, _FACTORS) / before
    return {**grown, "factors": seconds(start, 2 * _FACTORS) / before}


def _jobs(threads: int) -> dict[str, Callable[[Interactions, int], float]]:
    shared = {"epochs": _EPOCHS, "num_threads": threads}
    return {
        "iALS": lambda data, d: _epoch(IALS, data, factors=d, trace_every=1, **shared),
        "Mult-VAE": lambda data, d: _epoch(MultVAE, data, hidden=d, latent=d, **shared),
        FAIRREC: lambda data, d: _fair_lists(data, d, threads),
        "Multi-FR": lambda data, d: _epoch(MultiFR, data, latent=d, **shared),
        "exADMM": lambda data, d: _epoch(
            ExADMM,
            data,
            factors=d,
            exposure_weight=1e-6,
            solver="admm",
            trace_every=1,
            **shared,
        ),
    }


def _epoch(kind: type[Any], data: Interactions, **settings: Any) -> float:
    """Return the seconds of an epoch after the first."""
    return min(per_epoch(kind(**settings).fit(data)) for _ in range(_ROUNDS))


def _fair_lists(data: Interactions, factors: int, threads: int) -> float:
    """Return the seconds of fair lists for everybody, from factors that are there."""
    model = IALS(factors=factors, epochs=_EPOCHS, num_threads=threads).fit(data)
    fastest = float("inf")
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        FairRec(alpha=0.5).rerank(model.ranking(), k=20)
        fastest = min(fastest, time.perf_counter() - started)
    return fastest


ABOUT = (
    "Made-up data as large as the data set, and the same with one thing doubled: interactions, "
    "users, items or factors. The ratio is the time with it doubled by the time without."
)

_KINDS: dict[str, Callable[[Task], Trainer]] = {
    "exact": Ials,
    "CG": lambda task: Ials(task, "cg"),
    "exADMM": ExAdmm,
}


def epoch_growth(setting: Setting) -> Iterator[Race]:
    """Race every kind of epoch with itself, one thing doubled."""
    data = setting.data.interactions
    sizes = {"users": data.n_users, "items": data.n_items, "interactions": data.nnz}
    base = replace(setting, data=_market(sizes))
    for what in ("interactions", "users", "items", "factors"):
        if what == "factors":
            doubled = replace(base, factors=2 * setting.factors)
        else:
            doubled = replace(base, data=_market({**sizes, what: 2 * sizes[what]}))
        for kind, make in _KINDS.items():
            calls = EXADMM_PERIOD if kind == "exADMM" else 1
            candidates = [
                Candidate(who, make(one.task()).epoch, calls=calls)
                for who, one in (("doubled", doubled), ("as it is", base))
            ]
            yield setting.race("growth", candidates, part=f"{kind} epoch, twice the {what}")


def _market(sizes: dict[str, int]) -> DataSet:
    market = marketplace(sizes["users"], sizes["items"], sizes["interactions"], min_items=1)
    return DataSet("made up", market.interactions)
