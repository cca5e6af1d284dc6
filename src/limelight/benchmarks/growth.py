"""How the time of an epoch grows when one thing doubles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from limelight.benchmarks.data import DataSet
from limelight.benchmarks.ours import EXADMM_PERIOD, ExAdmm, Ials
from limelight.benchmarks.timing import Candidate
from limelight.data import marketplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limelight.benchmarks.records import Race
    from limelight.benchmarks.setting import Setting
    from limelight.benchmarks.task import Task, Trainer

ABOUT = (
    "Made-up data as large as the data set, and the same with one thing doubled: interactions, "
    "users, items or factors. The ratio is the time with it doubled by the time without."
)

_KINDS: dict[str, Callable[[Task], Trainer]] = {
    "exact": Ials,
    "CG": lambda task: Ials(task, "cg"),
    "exADMM": ExAdmm,
}


def growth(setting: Setting) -> Iterator[Race]:
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
