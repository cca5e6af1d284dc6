"""What a search for a target found, and how it does for users who had no part in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.documents import Document, Table
from limelight._base.errors import DataError
from limelight._base.text import moves, percent, price
from limelight.control.target_lists import MAIN, TriedPoint
from limelight.metrics.groups import group_rows
from limelight.report.exhibit import Compared, ExhibitPoint, build_exhibit, with_front
from limelight.report.page import write_page
from limelight.rerank.targets.words import asked_words, shares_words
from limelight.rerank.terms import check_form, paragraph, promised_rules

if TYPE_CHECKING:
    import os

    from limelight.control.target_lists import ShownTarget
    from limelight.models.base import Model
    from limelight.report.exhibit import Exhibit
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.reranker import Reranked
    from limelight.rerank.terms import Form


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
    others: tuple[TriedPoint, ...] = ()
    """Every other strength of every method that the search tried."""

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
        wish = asked_words(self.goal)
        points = self.points()
        chosen = next(
            n for n, p in enumerate(points) if n and p[:2] == (self.method, self.strength)
        )
        shown = [
            ExhibitPoint(
                _NAMES.get(method, method[:1].upper() + method[1:]),
                f"{method}, strength {strength:.3g}" if number else "no control",
                figures,
                strength,
                {"method": method, "strength": strength, "target": wish} if number else {},
                shown=lists_shown,
            )
            for number, (method, strength, figures, lists_shown) in enumerate(points)
        ]
        shown[chosen] = replace(shown[chosen], label=self.method)
        return build_exhibit(
            "fit",
            f"A model for a target: {wish}"[:200],
            self.at,
            with_front(shown, "ndcg", self.at),
            split=split,
            seconds=self.seconds,
            seed=self.plain.get_params().get("random_state"),
            chosen=chosen,
            groups=groups,
            examples=lists.examples(),
            notes=self.notes,
        )

    def points(self) -> list[TriedPoint]:
        """Return no control, every strength that was tried, and what serves, for test users."""
        if self.shown is None:
            return list(self.others)
        (own, before), (now, found) = self.shown.lists.shown(self.plain.trace_)
        here = TriedPoint(self.method, self.strength, found, now)
        others = [one for one in self.others if one[:2] != here[:2]]
        # Methods stand together, that which serves first, and each from its least strength up.
        rising = sorted(
            [*others, here], key=lambda one: (one.method != self.method, one.method, one.strength)
        )
        return [TriedPoint("No control", 0.0, before, own), *rising]

    def explain(self, *, form: Form = "details") -> str:
        """Say what was reached and what it costs; or how lists are made.

        Parameters
        ----------
        form
            "terms" is a paragraph in plain words for terms and conditions: the main parameters that
            decide what users are shown, and why.
        """
        check_form(form)
        if form == "terms":
            return paragraph(promised_rules(self.promise(), type(self.plain).__name__))
        return str(self)

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
            "points": [
                {"method": p.method, "strength": p.strength, **p.figures} for p in self.points()
            ],
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
        # A target of groups is about their Gini index; that of items stands in the table.
        n_groups = int(now.get("groups", 0))
        whom, prefix = ("groups", "group_") if n_groups else ("items", "")
        gini, shown = (
            moves(now[f"{prefix}{name}@{k}_before"], now[f"{prefix}{name}@{k}"], write)
            for name, write in (("gini", "{:.3f}".format), ("coverage", percent))
        )
        over = f"{int(now['users']):,} {whose} and {n_groups or int(now['items']):,} {whom}"
        found = f"the Gini@{k} of exposure {gini}, and the share of the {whom} shown {shown}"
        bounds = [name for name in self.goal if name.startswith("group_")]
        if bounds and self.groups:
            among = shares_words(self.groups)
            found = among if len(bounds) == len(self.goal) else f"{found}; {among}"
        lines = [
            f"The target is {'met' if self.met else 'not met'}: over {over}, {found}.",
            self._price(),
        ]
        if n_groups:
            changes = (" ".join((w, b, "->", n)) for w, b, n in group_rows(now, n_groups, k))
            lines.append(", ".join(changes))
        if self.weaker:
            of = " of groups" if "of" in self.goal else ""
            words = (f"nDCG {_change(o.ndcg_loss)} at Gini{of} {o.gini:.3f}" for o in self.weaker)
            lines.append(f"With a little less control: {', '.join(words)}")
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
        return f"target: {asked_words(self.goal)}, lists of {self.at}, over {self.population}"

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
            write = "{:.4f}".format if name in ("gini", "ndcg") else percent
            before = write(self.test[f"{key}_before"]) if f"{key}_before" in self.test else ""
            bounds = [self.test[f"{key}_{side}"] for side in _SIDES if f"{key}_{side}" in self.test]
            between = " to ".join(map(write, bounds))
            now, decided = write(self.test[key]), write(self.validation[key])
            rows.append((name, before, now, between, decided))
        return Table(("", "plain", "test users", "95 %", "validation users"), rows)

    def _others(self) -> Table:
        of = " of groups" if "of" in self.goal else ""
        exposed = f"gini{of}", f"coverage{of}"
        head = ("tried, for validation users", "strength", *exposed, "ndcg loss", "")
        rows = [
            (method, f"{strength:.4g}", f"{gini:.4f}", percent(shown), percent(loss), reached)
            for method, strength, gini, shown, loss, is_met in self.tried
            for reached in ["" if is_met else "out of reach"]
        ]
        return Table(head, rows)

    def _shares(self) -> Table:
        largest = sorted(self.groups, key=lambda share: -share.before)[:_SHOWN]
        rows = [
            (str(share.id), percent(share.before, 2), percent(share.after, 2)) for share in largest
        ]
        # Without a wish of their own, groups are shown as the search measured them.
        is_wished = any(name.startswith("group_") for name in self.goal)
        users = f"{int((self.served if is_wished else self.test)['users']):,}"
        return Table((f"group, over {users} users' lists", "plain", "now"), rows)


_SIDES = ("low", "high")
_NAMES = {"exadmm": "exADMM", "ease": "EASE"}
"""What pages call methods that are not written with a capital alone."""
_SHOWN_FIRST = (*MAIN, "ndcg_loss")


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
