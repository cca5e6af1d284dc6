"""Lists of everybody in a sitting, with control and without, and what they give held-out users."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.data.groups import exposure_of
from limelight.metrics.accumulate import tally
from limelight.metrics.accuracy import ndcg
from limelight.metrics.exposure import coverage, exposure, gini
from limelight.metrics.intervals import leave_users_out
from limelight.metrics.leave_one_out import CoverageWithout, GiniWithout
from limelight.report.exhibit import MOST_KEPT, ExampleUsers, held_out_rows, measure_lists
from limelight.rerank.methods.group_shares import GroupShare

if TYPE_CHECKING:
    from limelight._base.arrays import Float64, Int32
    from limelight.control.population import Sitting
    from limelight.data.groups import Groups
    from limelight.data.split import Split
    from limelight.metrics.leave_one_out import LeaveOneOutFigure
    from limelight.report.exhibit import ShownLists
    from limelight.rerank.targets.search import Trial

_RESAMPLES = 1000
MAIN = ("gini", "coverage", "ndcg")


class TriedPoint(NamedTuple):
    """A method at a strength that the search tried, and what test users found with it."""

    method: str
    strength: float
    figures: dict[str, float]
    shown: ShownLists


class TargetFront:
    """What every strength of every method gave test users, for the front of a page.

    Where test users do not sit among the others, because held-out users are served alone, there
    is nothing to see.
    """

    def __init__(self, sitting: Sitting) -> None:
        self._sitting = sitting
        self._found: dict[tuple[str, float], TriedPoint] = {}

    def see(self, method: str, trial: Trial) -> None:
        """Measure the lists of a trial; of a strength that is tried again, the last ones count."""
        if "test" not in self._sitting.parts or not trial.strength:
            return
        (rows, part), ids = self._sitting.parts["test"], trial.lists.ids
        shown, figures = measure_lists(ids[rows], part, self._sitting.k, everybody=ids)
        if self._sitting.n_items > MOST_KEPT:
            shown = shown._replace(exposure=None)
        self._found[method, trial.strength] = TriedPoint(method, trial.strength, figures, shown)

    def points(self, *, without: tuple[str, float]) -> tuple[TriedPoint, ...]:
        """Return what was found, but for the method and strength that was chosen."""
        return tuple(point for key, point in self._found.items() if key != without)


class BothLists(NamedTuple):
    """Everybody's lists: of the plain model, and of what serves instead."""

    sitting: Sitting
    name: str
    """Of the held-out users who are measured."""
    plain: Int32
    now: Int32

    def shown(self, trace: Any = ()) -> list[tuple[ShownLists, dict[str, float]]]:
        """Measure both: exposure of everybody, accuracy of the held-out users."""
        (rows, part), k = self.sitting.parts[self.name], self.sitting.k
        return [
            measure_lists(ids[rows], part, k, records, everybody=ids)
            for ids, records in ((self.plain, trace), (self.now, ()))
        ]

    def examples(self) -> ExampleUsers:
        """Return the held-out users whose lists are shown."""
        part = self.sitting.parts[self.name].part
        return ExampleUsers.of(held_out_rows(part), part)

    def group_shares(self, members: Groups | None) -> tuple[GroupShare, ...]:
        """Say what groups have in both, where nothing was wished for them."""
        if members is None:
            return ()
        sides = [exposure(ids, self.sitting.n_items) for ids in (self.plain, self.now)]
        shares = ((exposure_of(members, e) / (e.sum() or 1.0)).tolist() for e in sides)
        return tuple(map(GroupShare, members.group_ids, *shares, repeat(0.0), repeat(1.0)))

    def figures(self) -> dict[str, float]:
        """Measure a controlled model beside the plain one, for the same held-out users."""
        (rows, part), k = self.sitting.parts[self.name], self.sitting.k
        (_, before), (_, found) = self.shown()
        lists = self.now[rows], self.plain[rows]
        gains, base = (ndcg(ids, part.targets, k, per_user=True) for ids in lists)
        scored = ~np.isnan(base)
        pairs = np.column_stack([gains, base])[scored]
        low, high = _loss_bounds(pairs)
        # Where everybody is served there is nothing to be unsure of.
        is_sample = len(rows) == len(self.now)
        bounds = _exposure_bounds(self.now[scored], part.targets.shape[1], k) if is_sample else {}
        return {
            **found,
            **self.sitting.of_providers(self.plain, self.now),
            "scored_users": int(scored.sum()),
            **bounds,
            f"ndcg_loss@{k}": _loss(pairs.mean(axis=0)),
            f"ndcg_loss@{k}_low": low,
            f"ndcg_loss@{k}_high": high,
            **{f"{name}@{k}_before": before[f"{name}@{k}"] for name in MAIN},
        }

    def loss(self) -> float:
        """Return the share of nDCG that the held-out users give up."""
        (rows, part), k = self.sitting.parts[self.name], self.sitting.k
        now, base = (ndcg(ids[rows], part.targets, k) for ids in (self.now, self.plain))
        return 1 - now / base if base else 0.0


class ShownTarget(NamedTuple):
    """What a page of a target is made of: data, everybody's lists, and groups of items."""

    split: Split
    lists: BothLists
    groups: Groups | None


def _loss(means: Float64) -> float:
    return float(1 - means[0] / means[1]) if means[1] else 0.0


def _loss_bounds(pairs: Float64) -> tuple[float, float]:
    """Bootstrap the loss over users, drawing both figures of a user at once.

    A user who is hard to serve lowers both figures, and their ratio hardly moves.
    """
    generator = np.random.default_rng(0)
    losses = [
        _loss(pairs[generator.integers(0, len(pairs), len(pairs))].mean(axis=0))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(losses, [0.025, 0.975])
    return float(low), float(high)


class _Rows(NamedTuple):
    """The rows of lists, with the fields that :func:`leave_users_out` reads."""

    users: Int32
    items: Int32
    ranks: Int32
    n_users: int


def _exposure_bounds(ids: Int32, n_items: int, k: int) -> dict[str, float]:
    """Give 95 % intervals of Gini index and coverage, as an audit of these lists would."""
    rows, columns = np.nonzero(ids >= 0)
    present, users = np.unique(rows, return_inverse=True)
    ranks = (columns + 1).astype(np.int32)
    lists = _Rows(users.astype(np.int32), ids[rows, columns], ranks, len(present))
    exposure = tally(lists.items, lists.ranks, n_items)
    without: dict[str, LeaveOneOutFigure] = {
        f"gini@{k}": GiniWithout(exposure.weighted),
        f"coverage@{k}": CoverageWithout(exposure.shown),
    }
    found = leave_users_out(lists, exposure, without)
    figures = {f"gini@{k}": gini(exposure.weighted), f"coverage@{k}": coverage(exposure.shown)}
    return found.bounds(figures) if found else {}
