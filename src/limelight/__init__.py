"""limelight: decide how evenly a catalogue shares the limelight, and see what that costs.

>>> import limelight as ll
>>> market = ll.marketplace(1000, 400, 20_000)
>>> split = ll.split_users(market.interactions, validation=100, test=100)
>>> model = ll.ExADMM(factors=16, exposure_weight=1e-4).fit(split.train)
>>> sorted(ll.evaluate(model, split.test, k=20))[:3]
['coverage@20', 'entropy@20', 'gini@20']
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# Where the public names stand. A module is loaded when one of its names is first used, because
# loading all of them takes most of a second. `__init__.pyi` says the same to type checkers.
_NAMES = {
    "limelight._base.errors": (
        "ConfigError DataError LimelightError LimelightWarning MemoryLimitError SolveError"
    ),
    "limelight.audit.audit": "audit",
    "limelight.audit.result": "Audit",
    "limelight.control.card": "model_card",
    "limelight.control.fit_to": "fit_to",
    "limelight.control.frontier": "frontier",
    "limelight.control.frontier_result": "Frontier",
    "limelight.control.tuning.tune": "tune",
    "limelight.control.tuning.result": "TuneResult",
    "limelight.data": (
        "HeldOut Interactions Marketplace Split TableSource as_unseen marketplace read "
        "read_candidates read_groups split_time split_users"
    ),
    "limelight.metrics.accumulate": "ListAccumulator",
    "limelight.metrics.accuracy": "ndcg recall",
    "limelight.metrics.awrf": "awrf",
    "limelight.metrics.evaluate": "Evaluation evaluate",
    "limelight.metrics.expected_exposure": "ExpectedExposure expected_exposure",
    "limelight.metrics.exposure": "coverage entropy exposure gini gini_floor lorenz mmf top_share",
    "limelight.metrics.groups": "group_exposure",
    "limelight.metrics.measures": "MeasureAccumulator",
    "limelight.metrics.overlap": "least_item_promoted rank_biased_overlap",
    "limelight.metrics.popularity": "aclt aplt arp long_tail",
    "limelight.metrics.rarefaction": "GiniEstimate gini_at",
    "limelight.metrics.users": "Envy envy user_gini",
    "limelight.models": "EASE IALS ExADMM MultDAE MultVAE MultiFR Popularity Random",
    "limelight.models.compare": "ModelComparison compare",
    "limelight.models.exadmm": "ExposureTargets",
    "limelight.recommend.explain": "Explanation",
    "limelight.rerank": (
        "Allocate BestResponse FairRec FrankWolfe Greedy GroupShares Online Prices calibrate load "
        "rerank"
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_MODULE_OF, "plot"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load a public name, or a package such as ``limelight.data``, when it is first used."""
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name == "__version__":
        value = import_module("limelight._base.machine").package_version()
    elif name.isidentifier() and not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        value = import_module(f"{__name__}.{name}")
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List what there is, loaded or not."""
    return sorted({*globals(), *__all__, "__version__"})


class _Package(ModuleType):
    """The package, in which ``audit`` and ``rerank`` are functions and never the folders."""

    def __setattr__(self, name: str, value: object) -> None:
        # Python sets `limelight.rerank` to the folder of that name when it has imported anything
        # from there, which would hide the function; `sys.modules` has the folder all the same.
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a name, because Ray sends functions with the modules that they use."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
