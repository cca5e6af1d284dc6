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
    from collections.abc import Callable, Collection

    from limelight.data import Interactions

BASE = Size(4_000, 2_000, 100_000)
_FACTORS, _EPOCHS, _ROUNDS = 64, 4, 3


def growth(
    methods: Collection[str], threads: int, base: Size = BASE
) -> dict[str, dict[str, float]]:
    """Return for every method the factor by which its time grows with each thing doubled.

    Parameters
    ----------
    methods
        Which ones; those that do not train are left out.
    threads
        As ``num_threads`` of the models.
    base
        The size of the made-up data that are doubled in one direction.
    """
    doubled = {
        "interactions": base._replace(interactions=2 * base.interactions),
        "users": base._replace(users=2 * base.users),
        "items": base._replace(items=2 * base.items),
    }
    data = {what: marketplace(*size).interactions for what, size in doubled.items()}
    start = marketplace(*base).interactions
    found: dict[str, dict[str, float]] = {}
    for name, seconds in _jobs(threads).items():
        if name not in methods:
            continue
        before = seconds(start, _FACTORS)
        after = {what: seconds(larger, _FACTORS) for what, larger in data.items()}
        after["factors"] = seconds(start, 2 * _FACTORS)
        found[name] = {what: value / before for what, value in after.items()}
    return found


def _jobs(threads: int) -> dict[str, Callable[[Interactions, int], float]]:
    shared = {"epochs": _EPOCHS, "num_threads": threads}
    return {
        "iALS": lambda data, d: _epoch(IALS, data, factors=d, trace_every=1, **shared),
        "Mult-VAE": lambda data, d: _epoch(MultVAE, data, hidden=d, latent=d, **shared),
        FAIRREC: lambda data, d: _fair_lists(data, d, threads),
        "Multi-FR": lambda data, d: _epoch(MultiFR, data, latent=d, **shared),
        "exADMM": lambda data, d: _epoch(
            ExADMM, data, factors=d, exposure_weight=1e-6, trace_every=1, **shared
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
