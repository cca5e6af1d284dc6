"""How the time of every method grows when one thing doubles (beside Table 2)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from limelight.data.synthetic import marketplace
from limelight.models import IALS, ExADMM, MultiFR, MultVAE
from limelight.reproduce.experiments import Size
from limelight.reproduce.methods import FAIRREC
from limelight.reproduce.times import per_epoch
from limelight.rerank.fairrec import FairRec

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.data import Interactions

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
