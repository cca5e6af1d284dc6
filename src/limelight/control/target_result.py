"""What a search for a target found, and how it does for users whom nothing was decided by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.documents import Document, Table
from limelight._base.errors import DataError
from limelight._base.text import moves, percent, price, short
from limelight.metrics.accumulate import tally
from limelight.metrics.accuracy import ndcg
from limelight.metrics.exposure import coverage, gini
from limelight.metrics.groups import group_rows
from limelight.metrics.intervals import leave_users_out
from limelight.metrics.leave_one_out import CoverageWithout, GiniWithout
from limelight.report.exhibit import (
    Compared,
    ExampleUsers,
    ExhibitPoint,
    build_exhibit,
    held_out_rows,
    measure_lists,
)
from limelight.report.page import write_page

if TYPE_CHECKING:
    import os

    from limelight._base.arrays import Float64, Int32
    from limelight.control.population import Sitting
    from limelight.data.groups import Groups
    from limelight.data.split import Split
    from limelight.metrics.leave_one_out import LeaveOneOutFigure
    from limelight.models.base import Model
    from limelight.report.exhibit import Exhibit, ShownLists
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.reranker import Reranked


_RESAMPLES = 1000
_SHOWN = 12
"""How many groups a summary shows, those with the most exposure."""


class TriedMethod(NamedTuple):
    """A method, the strength at which it met the target or came nearest, and what that gave."""

    method: str
    strength: float
    gini: float
    coverage: float
    ndcg_loss: float
    met: bool


@dataclass(frozen=True, eq=False, repr=False)
class TargetResult:
    """A model that meets a target, and what that costs."""

    model: Model | Reranked
    """What to serve with; ``model.save(folder)`` keeps it."""
    plain: Model
    """The same without control."""
    method: str
    """What controls it."""
    strength: float
    """Of the control; 0 where the plain model met the target."""
    met: bool
    """Whether the users who decided got what was wished."""
    goal: dict[str, Any]
    at: int
    """Length of the lists."""
    validation: dict[str, float]
    """How it does for the users who decided."""
    test: dict[str, float]
    """How it does for others: what to expect. ``_low`` and ``_high`` are bounds of 95 %
    intervals, ``ndcg_loss`` is against the plain model, ``_before`` are its own figures. Exposure
    is that of all who were served beside them, ``users`` of them."""
    served: dict[str, float]
    """The exposure of the lists that ``model`` makes for the population: ``users`` of them."""
    population: str
    """Whose lists the target is for, in words."""
    seconds: float
    tried: tuple[TriedMethod, ...] = ()
    """What each method gave, by what validation users found."""
    front: tuple[TriedMethod, ...] = ()
    """All that was tried of the method that was chosen, from no control up."""
    weaker: tuple[TriedMethod, ...] = ()
    """What a little less control would have given, and cost test users."""
    stages: dict[str, float] = field(default_factory=dict)
    """The seconds of each stage."""
    groups: tuple[GroupShare, ...] = ()
    """The shares of groups in the lists of test users, where they are the target."""
    notes: tuple[str, ...] = ()
    shown: ShownTarget | None = None
    """Who was shown what, for a report."""

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page to look at: who gains, who loses, what users get.

        Parameters
        ----------
        path
            Where to write the page.
        """
        write_page(self.exhibit(), path)

    def exhibit(self) -> Exhibit:
        """Return who was shown what: the plain model, and what serves instead."""
        if self.shown is None:
            message = "this result has no lists to show"
            raise DataError(message, hint="pass what `ll.fit_to` returned")
        split, lists, groups = self.shown
        (own, own_figures), (now, figures) = lists.shown(self.plain.trace_)
        wish = ", ".join(f"{name} {value}" for name, value in self.goal.items())
        settings = {"method": self.method, "strength": self.strength, "target": wish}
        return build_exhibit(
            "fit",
            f"A model for a target: {wish}"[:200],
            self.at,
            (
                ExhibitPoint("No control", "no control", own_figures, strength=0.0, shown=own),
                ExhibitPoint(self.method, self.method, figures, self.strength, settings, shown=now),
            ),
            split=split,
            seconds=self.seconds,
            seed=self.plain.get_params().get("random_state"),
            chosen=1,
            groups=groups,
            examples=lists.examples(),
            notes=self.notes,
        )

    def group_shares(self) -> Compared:
        """Return the shares of groups before and after, and what was wished, for a figure."""
        return Compared(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        return {
            **self.promise(),
            "validation": self.validation,
            "tried": [one._asdict() for one in self.tried],
            "groups": [share._asdict() for share in self.groups],
            "notes": list(self.notes),
            "seconds": self.seconds,
            "stages": self.stages,
        }

    def promise(self) -> dict[str, Any]:
        """Return what the model folder keeps: what was asked for whom, what was reached, the front.

        All of it is ready for JSON.
        """
        return {
            "target": {**{name: _plain(wish) for name, wish in self.goal.items()}, "at": self.at},
            "population": self.population,
            "method": self.method,
            "strength": self.strength,
            "met": self.met,
            "served": self.served,
            "test": self.test,
            "front": [one._asdict() for one in self.front],
            "weaker": [one._asdict() for one in self.weaker],
        }

    def __str__(self) -> str:
        lines = [line for one in self._tables() for line in one.lines("  ")]
        return "\n".join([*self._answer(), self._target(), self._how(), *lines, *self.notes])

    def __repr__(self) -> str:
        """Show what was reached at what cost, the target, and what met it."""
        return "\n".join([*self._answer(), self._target(), self._how()])

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        notes = [*self._answer()[1:], self._target(), self._how(), *self.notes]
        return Document(self._answer()[0], self._tables(), notes)

    def _repr_html_(self) -> str:
        return self.document().html()

    def _answer(self) -> list[str]:
        """Say what was reached, what it cost, and what a little less would have cost."""
        k, now = self.at, self.test if self._is_alone else self.served
        whose = "test users' lists alone" if self._is_alone else "users' lists"
        gini, shown = (
            moves(now[f"{name}@{k}_before"], now[f"{name}@{k}"], write)
            for name, write in (("gini", "{:.3f}".format), ("coverage", percent))
        )
        over = f"{int(now['users']):,} {whose} and {int(now['items']):,} items"
        lines = [
            f"The target is {'met' if self.met else 'not met'}: over {over}, the Gini@{k} of "
            f"exposure {gini}, and the share of the items shown {shown}.",
            self._price(),
        ]
        if n_groups := int(now.get("groups", 0)):
            changes = (" ".join((w, b, "->", n)) for w, b, n in group_rows(now, n_groups, k))
            lines.append(", ".join(changes))
        if self.weaker:
            of = " of groups" if "of" in self.goal else ""
            words = (f"Gini{of} {o.gini:.3f} for {_change(o.ndcg_loss)}" for o in self.weaker)
            lines.append(f"A little less control: {', '.join(words)} of nDCG")
        return lines

    def _price(self) -> str:
        key, loss = f"ndcg@{self.at}", f"ndcg_loss@{self.at}"
        bounds = [self.test[f"{loss}_{side}"] for side in _SIDES]
        cost = price(self.test[loss], f"nDCG@{self.at}", bounds)
        return (
            f"{cost}, {self.test[f'{key}_before']:.4f} -> {self.test[key]:.4f} for "
            f"{int(self.test['scored_users']):,} test users"
            f"{'' if self._is_alone else ' served among them'}."
        )

    @property
    def _is_alone(self) -> bool:
        """Whether exposure in the test is that of test users alone."""
        return self.test["users"] == self.test["scored_users"]

    def _target(self) -> str:
        wishes = (
            f"{name} {short(value) if isinstance(value, Mapping) else value}"
            for name, value in self.goal.items()
        )
        return f"target: {', '.join(wishes)}, lists of {self.at}, over {self.population}"

    def _how(self) -> str:
        how = "met by" if self.met else "nearest by"
        return f"{how}: {self.method}, strength {self.strength:.4g}"

    def _tables(self) -> list[Table]:
        found = [self._figures(), self._others(), self._shares()]
        return [one for one in found if one.rows]

    def _figures(self) -> Table:
        rows = []
        for name in _SHOWN_FIRST:
            key = f"{name}@{self.at}"
            # The plain model has no loss, and one user no interval.
            before = f"{self.test[f'{key}_before']:.4f}" if f"{key}_before" in self.test else ""
            bounds = [self.test[f"{key}_{side}"] for side in _SIDES if f"{key}_{side}" in self.test]
            between = " to ".join(f"{bound:.4f}" for bound in bounds)
            now, decided = f"{self.test[key]:.4f}", f"{self.validation[key]:.4f}"
            rows.append((name, before, now, between, decided))
        return Table(("", "plain", "test users", "95 %", "validation users"), rows)

    def _others(self) -> Table:
        of = " of groups" if "of" in self.goal else ""
        exposed = f"gini{of}", f"coverage{of}"
        head = ("tried, for validation users", "strength", *exposed, "ndcg loss", "")
        rows = [
            (method, f"{strength:.4g}", *(f"{figure:.4f}" for figure in figures), reached)
            for method, strength, *figures, is_met in self.tried
            for reached in ["" if is_met else "out of reach"]
        ]
        return Table(head, rows)

    def _shares(self) -> Table:
        largest = sorted(self.groups, key=lambda share: -share.before)[:_SHOWN]
        rows = [
            (str(share.id), percent(share.before, 2), percent(share.after, 2)) for share in largest
        ]
        users = f"{int(self.served['users']):,}"
        return Table((f"group, over {users} users' lists", "plain", "now"), rows)


_MAIN, _SIDES = ("gini", "coverage", "ndcg"), ("low", "high")
_SHOWN_FIRST = (*_MAIN, "ndcg_loss")


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
            **{f"{name}@{k}_before": before[f"{name}@{k}"] for name in _MAIN},
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


def _change(loss: float) -> str:
    """Write a loss as a change.

    Examples
    --------
    >>> _change(0.214), _change(-0.01)
    ('-21.4 %', '+1.0 %')
    """
    return percent(-loss, signed=True)


def _plain(wish: Any) -> Any:
    """Turn what JSON does not know into text."""
    if isinstance(wish, Mapping):
        return {str(group): float(share) for group, share in wish.items()}
    return wish


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
