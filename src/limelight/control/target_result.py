"""What a search for a target found, and how it does for users whom nothing was decided by.

What a model that was fitted to a target has to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.documents import Document, Table
from limelight._base.errors import DataError
from limelight._base.text import short
from limelight.audit.audit import audit
from limelight.metrics.accuracy import ndcg
from limelight.metrics.evaluate import evaluate
from limelight.report.exhibit import (
    Compared,
    ExampleUsers,
    Exhibit,
    ExhibitPoint,
    about_data,
    held_out_rows,
    how_made,
    measure_lists,
)
from limelight.report.page import write_page

if TYPE_CHECKING:
    import os

    from limelight._base.arrays import Float64, Int32
    from limelight.data.groups import Groups
    from limelight.data.held_out import HeldOut
    from limelight.data.split import Split
    from limelight.models.base import Model
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.reranker import Reranked


_RESAMPLES = 1000
_SHOWN = 12
"""How many groups a summary shows, those with the most exposure."""


class Tried(NamedTuple):
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
    intervals, ``ndcg_loss`` is against the plain model, ``_before`` are its own figures."""
    seconds: float
    tried: tuple[Tried, ...] = ()
    """What each method gave on validation users."""
    groups: tuple[GroupShare, ...] = ()
    """The shares of groups in the lists of test users, where they are the target."""
    notes: tuple[str, ...] = ()
    exhibit: Exhibit | None = None
    """Who was shown what, for a report."""

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML page to look at: who gains, who loses, what users get.

        Parameters
        ----------
        path
            Where to write the page.
        """
        if self.exhibit is None:
            message = "this result has no lists to show"
            raise DataError(message, hint="pass what `ll.fit_to` returned")
        write_page(self.exhibit, path)

    def group_shares(self) -> Compared:
        """Return the shares of groups before and after, and what was wished, for a figure."""
        return Compared(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        return {
            "target": {**{name: _plain(wish) for name, wish in self.goal.items()}, "at": self.at},
            "method": self.method,
            "strength": self.strength,
            "met": self.met,
            "validation": self.validation,
            "test": self.test,
            "tried": [one._asdict() for one in self.tried],
            "groups": [share._asdict() for share in self.groups],
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        lines = [line for one in self._tables() for line in one.lines("  ")]
        return "\n".join([self._target(), self._how(), *lines, *self.notes])

    def __repr__(self) -> str:
        """Show the target, what met it, and what test users got."""
        figures = ", ".join(f"{name} {self.test[f'{name}@{self.at}']:.4f}" for name in _SHOWN_FIRST)
        return f"{self._target()}\n{self._how()}\ntest users: {figures}"

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        return Document(self._target(), self._tables(), [self._how(), *self.notes])

    def _repr_html_(self) -> str:
        return self.document().html()

    def _target(self) -> str:
        wishes = (
            f"{name} {short(value) if isinstance(value, Mapping) else value}"
            for name, value in self.goal.items()
        )
        return f"target: {', '.join(wishes)}, lists of {self.at}"

    def _how(self) -> str:
        how = "met by" if self.met else "nearest by"
        return f"{how}: {self.method}, strength {self.strength:.4g}"

    def _tables(self) -> list[Table]:
        found = [self._figures(), self._others(), self._shares()]
        return [one for one in found if one.rows]

    def _figures(self) -> Table:
        def cell(part: dict[str, float], name: str) -> str:
            return f"{part[f'{name}@{self.at}']:.4f}"

        def bounds(name: str) -> str:
            low, high = (self.test.get(f"{name}@{self.at}_{side}") for side in ("low", "high"))
            return "" if low is None or high is None else f"{low:.4f} to {high:.4f}"

        def before(name: str) -> str:
            value = self.test.get(f"{name}@{self.at}_before")
            return "" if value is None else f"{value:.4f}"

        rows = [
            (name, before(name), cell(self.test, name), bounds(name), cell(self.validation, name))
            for name in _SHOWN_FIRST
        ]
        return Table(("", "plain", "test users", "95 %", "validation users"), rows)

    def _others(self) -> Table:
        rows = [
            (
                one.method,
                f"{one.strength:.4g}",
                f"{one.gini:.4f}",
                f"{one.coverage:.4f}",
                f"{one.ndcg_loss:.4f}",
                "" if one.met else "out of reach",
            )
            for one in self.tried
        ]
        head = ("tried, on validation users", "strength", "gini", "coverage", "ndcg loss", "")
        return Table(head, rows)

    def _shares(self) -> Table:
        largest = sorted(self.groups, key=lambda share: -share.before)[:_SHOWN]
        rows = [
            (str(share.id), f"{100 * share.before:.2f} %", f"{100 * share.after:.2f} %")
            for share in largest
        ]
        return Table(("group, of test users", "plain", "now"), rows)


_MAIN = ("gini", "coverage", "ndcg")
_SHOWN_FIRST = (*_MAIN, "ndcg_loss")


def compared(served: Model | Reranked, plain: Model, part: HeldOut, k: int) -> dict[str, float]:
    """Measure a controlled model beside the plain one, for the same held-out users.

    Parameters
    ----------
    served
        The controlled model.
    plain
        The same without control.
    part
        Users with histories and targets.
    k
        Length of the lists.
    """
    # Whoever is served here must not be there when the model is deployed.
    lists = lists_of(fresh(served), part, k)
    own = plain.recommend(part.history, k).ids
    found = dict(evaluate(_Fixed(lists), part, k))
    before = evaluate(_Fixed(own), part, k)
    gains, base = (ndcg(ids, part.targets, k, per_user=True) for ids in (lists, own))
    scored = ~np.isnan(base)
    pairs = np.column_stack([gains, base])[scored]
    low, high = _loss_bounds(pairs)
    exposure = _exposure_bounds(lists[scored], part.targets.shape[1], k)
    return {
        **found,
        **exposure,
        f"ndcg_loss@{k}": _loss(pairs.mean(axis=0)),
        f"ndcg_loss@{k}_low": low,
        f"ndcg_loss@{k}_high": high,
        **{f"{name}@{k}_before": before[f"{name}@{k}"] for name in _MAIN},
    }


def lists_of(served: Model | Reranked, part: HeldOut, k: int) -> Int32:
    """Return the lists of held-out users."""
    return served.recommend(part.history, k, user_ids=part.user_ids).ids


def fresh(served: Model | Reranked) -> Model | Reranked:
    """Return the same without a common memory of who was served."""
    return served.fresh()


def _plain(wish: Any) -> Any:
    """Turn what JSON does not know into text."""
    if isinstance(wish, Mapping):
        return {str(group): float(share) for group, share in wish.items()}
    return wish


class _Fixed:
    """Lists that are there already, as a recommender."""

    def __init__(self, ids: Int32) -> None:
        self._ids = ids

    def recommend(self, histories: Any, k: int) -> tuple[Int32, Int32]:
        del histories
        return self._ids[:, :k], self._ids[:, :k]


def _loss(means: Float64) -> float:
    return float(1 - means[0] / means[1]) if means[1] else 0.0


def _loss_bounds(pairs: Float64) -> tuple[float, float]:
    """Draw users with both of their figures, so that what they share cancels."""
    generator = np.random.default_rng(0)
    losses = [
        _loss(pairs[generator.integers(0, len(pairs), len(pairs))].mean(axis=0))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(losses, [0.025, 0.975])
    return float(low), float(high)


def _exposure_bounds(ids: Int32, n_items: int, k: int) -> dict[str, float]:
    """Give the intervals of the audit of these lists."""
    rows, columns = np.nonzero(ids >= 0)
    lists = pa.table({"user_id": rows, "item_id": ids[rows, columns], "rank": columns + 1})
    longest = int(columns.max()) + 1
    found = audit(lists, k=longest, catalogue=range(n_items)).to_dict()
    return {
        f"{name}@{k}_{side}": found[f"{name}@{longest}_{side}"]
        for name in ("gini", "coverage")
        for side in ("low", "high")
        if f"{name}@{longest}_{side}" in found
    }


def exhibit_of(
    found: Mapping[str, Any],
    plain: Model,
    split: Split,
    k: int,
    *,
    groups: Groups | None,
    seconds: float,
) -> Exhibit:
    """Put together what a page shows: the plain model, and what serves instead.

    Parameters
    ----------
    found
        What a search for a target has found.
    plain
        The same without control.
    split
        Whose test users are looked at.
    k
        Length of the lists.
    groups
        Groups of items, where the target speaks of them.
    seconds
        How long the search took.
    """
    part = split.test
    own, own_figures = measure_lists(plain.recommend(part.history, k).ids, part, k, plain.trace_)
    sight, figures = measure_lists(lists_of(fresh(found["model"]), part, k), part, k)
    label = str(found["method"])
    wish = ", ".join(f"{name} {value}" for name, value in found["goal"].items())
    return Exhibit(
        kind="fit",
        title=f"A model for a target: {wish}"[:200],
        k=k,
        points=(
            ExhibitPoint("No control", "no control", own_figures, strength=0.0, shown=own),
            ExhibitPoint(
                label,
                label,
                figures,
                strength=found["strength"],
                settings={"method": label, "strength": found["strength"], "target": wish},
                shown=sight,
            ),
        ),
        item_ids=split.train.item_ids,
        chosen=1,
        interactions=np.asarray(split.train.matrix.sum(axis=0), dtype=np.int64).ravel(),
        groups=groups,
        examples=ExampleUsers.of(held_out_rows(part), part),
        data=about_data(split),
        made=how_made(seconds=seconds, seed=plain.get_params().get("random_state")),
        notes=tuple(found["notes"]),
    )
