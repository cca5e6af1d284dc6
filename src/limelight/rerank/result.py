"""Re-ranked lists, with what they cost and who gained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight._base.documents import Document, Table
from limelight._base.text import moves, percent, price
from limelight.data.groups import exposure_of as group_exposure
from limelight.data.groups import owned_by, read_groups
from limelight.data.ids import ids_to_arrow
from limelight.metrics.exposure import count_moves
from limelight.metrics.groups import group_rows
from limelight.metrics.lists import Lengths, ListCount, Lists
from limelight.report.exhibit import (
    Compared,
    ExampleUsers,
    ExhibitPoint,
    ShownLists,
    build_exhibit,
    with_front,
)
from limelight.report.page import write_page
from limelight.report.titles import with_titles_and_groups
from limelight.rerank.targets.words import shares_words
from limelight.rerank.terms import check_form, paragraph, reranked_rules
from limelight.store.lists import ListWriter

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.sources import Source
    from limelight.report.exhibit import Exhibit
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.terms import Form


_BATCH = 8192
_TITLES = ("gained most", "lost most")
_SHOWN, _GROUPS = 5, 12
"""How many items of each kind, and how many groups, a notebook shows."""


class ExposureChange(NamedTuple):
    """The share of all exposure that an item or a group has, before and after."""

    id: Any
    before: float
    after: float


class RerankPoint(NamedTuple):
    """A strength that the search tried, its figures, and what a page shows of its lists."""

    strength: float
    figures: dict[str, float]
    shown: ShownLists


@dataclass(frozen=True, eq=False, repr=False)
class RerankResult:
    """Lists that meet a goal. ``str(result)`` is a summary, ``to_dict`` is ready for JSON."""

    lists: Lists
    """Of all users. Where they were made in pieces, which wrote them, of the examples alone."""
    user_ids: Any
    """Of the same users."""
    item_ids: Any
    method: str
    strength: float
    """How much exposure counted against relevance. With shares of groups, the largest price, in
    units of the mean relevance of everybody's own list."""
    goal: dict[str, Any]
    """The target, by its name."""
    metrics: dict[str, float]
    """Exposure metrics of the lists, and under ``<name>_before`` of everybody's own list."""
    relevance_loss: float
    """Share of the relevance of everybody's own list that was given up."""
    user_losses: Float32
    """The same for each user; not a number for users without candidates."""
    overlap: float
    """Share of a list that stands in its user's own list, too, on average."""
    exposure: Float64
    exposure_before: Float64
    examples: Int64
    """Rows of some users of all kinds."""
    own_examples: Int32
    """The lists of these users before."""
    lengths: Lengths
    seconds: float
    groups: tuple[GroupShare, ...] = ()
    """The shares of groups, where these were the target; those that gained most first."""
    n_groups: int = 0
    """Among how many groups of items exposure was to be shared. Their figures are in ``metrics``:
    ``group_gini``, ``group_coverage``, ``group_mmf`` and ``gini_within_groups``."""
    notes: tuple[str, ...] = ()
    """What the reader should know about these lists."""
    front: tuple[RerankPoint, ...] = ()
    """Every strength that the search tried, from no control up."""
    catalogue_given: bool = True
    """Whether all items that could be shown are known, or only those of the candidates."""

    @property
    def k(self) -> int:
        """Length of the lists."""
        return int(self.lists.ids.shape[1])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write ``user_id, item_id, rank, score`` to a file or a folder of parts.

        Parameters
        ----------
        path
            A name that ends in .parquet, .csv or .tsv; without an ending, a folder.
        """
        with ListWriter(path) as writer:
            for rows in batches(len(self.lists.ids), _BATCH):
                writer.write(
                    self.user_ids[rows],
                    self.item_ids,
                    self.lists.ids[rows],
                    self.lists.scores[rows],
                )

    def to_table(self) -> pa.Table:
        """Return ``user_id, item_id, rank, score`` as an Arrow table."""
        import pyarrow as pa

        rows, columns = np.nonzero(self.lists.ids >= 0)
        return pa.table(
            {
                "user_id": np.asarray(self.user_ids)[rows],
                "item_id": np.asarray(self.item_ids)[self.lists.ids[rows, columns]],
                "rank": (columns + 1).astype(np.int32),
                "score": self.lists.scores[rows, columns],
            }
        )

    def changes(self, top: int = 10) -> tuple[list[ExposureChange], list[ExposureChange]]:
        """Return the items that gained most and those that lost most, as shares of exposure.

        Parameters
        ----------
        top
            How many of each.
        """
        before, after = (e / (e.sum() or 1.0) for e in (self.exposure_before, self.exposure))
        order = np.argsort(after - before, kind="stable")
        gained, lost = order[::-1][:top], order[:top]
        gained, lost = gained[after[gained] > before[gained]], lost[after[lost] < before[lost]]
        return self._named(gained, before, after), self._named(lost, before, after)

    def group_changes(self, groups: Source) -> list[ExposureChange]:
        """Return what groups of these items gained, those that gained most first.

        Parameters
        ----------
        groups
            ``item_id, group[, weight]``, as for ``ll.audit``.
        """
        members = read_groups(groups, ids_to_arrow(self.item_ids))
        before, after = (group_exposure(members, e) / e.sum() for e in self.exposures().values())
        changes = map(ExposureChange, members.group_ids, before.tolist(), after.tolist())
        # A table of all providers also names those that have none of these items.
        present = compress(changes, owned_by(members) > 0)
        return sorted(present, key=lambda change: change.before - change.after)

    def _named(self, items: Int64, before: Float64, after: Float64) -> list[ExposureChange]:
        ids = np.asarray(self.item_ids)[items].tolist()
        shares = zip(before[items].tolist(), after[items].tolist(), strict=True)
        return [ExposureChange(item_id, *pair) for item_id, pair in zip(ids, shares, strict=True)]

    def counted(self) -> ListCount:
        """Return of how many lists, and over how many items, its figures are."""
        return ListCount(self.lengths.users, len(self.item_ids))

    def exposures(self) -> dict[str, Float64]:
        """Return the exposure of every item, before and after, for figures."""
        return {"before": self.exposure_before, "after": self.exposure}

    def group_shares(self) -> Compared:
        """Return the shares of groups before and after, and what was wished, for a figure."""
        return Compared(self.groups)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        groups: Source | None = None,
        catalogue: Source | None = None,
    ) -> None:
        """Write one HTML page to look at: who gains, who loses, what users get.

        Parameters
        ----------
        path
            Where to write the page.
        groups
            ``item_id, group[, weight]``, to show what groups gain and lose.
        catalogue
            A table with ``item_id`` and ``title``, to call items by their titles.
        """
        write_page(with_titles_and_groups(self.exhibit(), groups, catalogue), path)

    def exhibit(self) -> Exhibit:
        """Put together what a page shows: everybody's own lists, and every strength tried."""
        k, points = self.k, self.points()
        chosen = next(n for n, p in enumerate(points) if n and p.strength == self.strength)
        shown = [
            ExhibitPoint(
                self.method,
                self.method if number == chosen else f"{self.method}, strength {strength:.3g}",
                figures | {"users": self.lengths.users},
                strength=strength,
                settings={"method": self.method, "strength": strength, **self.goal},
                shown=lists,
            )
            for number, (strength, figures, lists) in enumerate(points)
        ]
        shown[0] = replace(shown[0], method="Own lists", label="everybody's own lists", settings={})
        return build_exhibit(
            "rerank",
            f"Lists of {k}, re-ranked",
            k,
            with_front(shown, "relevance", k),
            item_ids=self.item_ids,
            chosen=chosen,
            examples=ExampleUsers(np.asarray(self.user_ids)[self.examples]),
            data={
                "Users": f"{self.lengths.users:,}",
                "Items": f"{len(self.item_ids):,}",
                "Places": f"{self.lengths.places:,}",
            },
            seconds=self.seconds,
            notes=tuple(self._notes()),
        )

    def points(self) -> list[RerankPoint]:
        """Return everybody's own lists, all strengths that were tried, and these lists."""
        now, kept = self.metrics, f"relevance@{self.k}"
        own = {n.removesuffix("_before"): now[n] for n in now if n.endswith("_before")}
        found = {n: now[n] for n in now if not n.endswith("_before")}
        plain = ShownLists(self.exposure_before, self.own_examples)
        lists = ShownLists(self.exposure, self.lists.ids[self.examples])
        here = RerankPoint(self.strength, found | {kept: 1 - self.relevance_loss}, lists)
        others = [p for p in self.front if p.strength not in (0, self.strength)]
        rising = sorted([*others, here], key=lambda point: point.strength)
        return [RerankPoint(0.0, own | {kept: 1.0}, plain), *rising]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the lists, ready for JSON."""
        losses = self.user_losses[np.isfinite(self.user_losses)]
        quantiles = np.quantile(losses, [0.5, 0.9]) if len(losses) else [0.0, 0.0]
        gained, lost = self.changes()
        moved = count_moves(self.exposure_before, self.exposure)
        return {
            "users": self.lengths.users,
            "items": len(self.item_ids),
            "catalogue_given": self.catalogue_given,
            "k": self.k,
            "method": self.method,
            "strength": self.strength,
            "target": self.goal,
            **self.metrics,
            "relevance_loss": self.relevance_loss,
            "relevance_loss_median_user": float(quantiles[0]),
            "relevance_loss_worst_tenth": float(quantiles[1]),
            "overlap": self.overlap,
            "users_without_list": self.lengths.empty,
            "users_with_short_list": self.lengths.short,
            "items_gained": moved.gained,
            "items_lost": moved.lost,
            "gained": [change._asdict() for change in gained],
            "lost": [change._asdict() for change in lost],
            "groups": [share._asdict() for share in self.groups],
            "points": [{"strength": p.strength, **p.figures} for p in self.points()],
            "notes": self._notes(),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        rows = [
            *self.sentences(),
            *(f"{label:<22}{before} -> {after}" for label, before, after in self._figures()),
            f"{'relevance given up':<22}{self._loss()}",
            *self._notes(),
        ]
        return "\n".join(rows)

    def __repr__(self) -> str:
        """Show what was made, and what that changed."""
        changes = [f"{label} {before} -> {after}" for label, before, after in self._figures()]
        return f"{self._title()}\n{', '.join(changes)}, relevance given up {self._loss()}"

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        rows = [*self._figures(), ("relevance given up", "", self._loss())]
        tables = [
            Table(("", "before", "after"), rows),
            *map(_share_table, _TITLES, self.changes(_SHOWN)),
            _share_table("group", sorted(self.groups, key=lambda s: -s.before)[:_GROUPS]),
        ]
        return Document(self._title(), tables, self._notes())

    def _repr_html_(self) -> str:
        return self.document().html()

    def sentences(self) -> list[str]:
        """Say in plain words what was done, what was gained, and what it cost."""
        k, now = self.k, self.metrics
        name = "group_gini" if self.n_groups else "gini"
        whose = f"the exposure of {self.n_groups:,} groups" if self.n_groups else "exposure"
        gini = moves(now[f"{name}@{k}_before"], now[f"{name}@{k}"])
        shown = moves(now[f"coverage@{k}_before"], now[f"coverage@{k}"], percent)
        items = f"the Gini@{k} of {whose} {gini}, and the share of the items shown {shown}"
        found = shares_words(self.groups) if self.groups else items
        return [
            f"Lists of {k} were re-ranked by {self.method} at strength {self.strength:.4g}: over "
            f"{self.counted()}, {found}.",
            f"{price(self.relevance_loss, 'the relevance', digits=2)} of users' own lists.",
        ]

    def _title(self) -> str:
        return (
            f"{self.method} at strength {self.strength:.4g}: "
            f"lists of {self.k}, exposure over {self.counted()}"
        )

    def _figures(self) -> list[tuple[str, str, str]]:
        """Write Gini and coverage before and after, of groups as well where these share."""
        k, now = self.k, self.metrics
        label = "Gini of items" if self.n_groups else "Gini of exposure"
        return group_rows(now, self.n_groups, k) + [
            (label, write(now[f"{name}@{k}_before"]), write(now[f"{name}@{k}"]))
            for label, name, write in (
                (label, "gini", "{:.3f}".format),
                ("items shown", "coverage", percent),
            )
        ]

    def _loss(self) -> str:
        return percent(self.relevance_loss, 2)

    def _notes(self) -> list[str]:
        notes = list(self.notes)
        if not self.catalogue_given:
            notes.append(
                f"No catalogue was given: exposure is over the {len(self.item_ids):,} items that "
                "are candidates of some user. To count the others: catalogue=... or --catalogue"
            )
        if n_short := self.lengths.empty + self.lengths.short:
            note = f"Users with fewer than {self.k} candidates and a shorter list: {n_short:,}."
            notes.append(note)
        return notes

    def explain(self, top: int = 10, *, form: Form = "details") -> str:
        """Say which items gained and lost, and what users lost; or how lists are made.

        Parameters
        ----------
        top
            How many items of each kind to name.
        form
            "terms" is a paragraph in plain words for terms and conditions: what decides, and why.
        """
        check_form(form)
        if form == "terms":
            return paragraph(reranked_rules(self))
        record = self.to_dict()
        moved = "{items_gained:,} items gained exposure, {items_lost:,} lost some."
        lines = [str(self), "", moved.format_map(record)]
        for title, changes in zip(_TITLES, self.changes(top), strict=True):
            lines += ["", f"{title:<24}{'share before':>14}{'after':>11}"]
            lines += [
                f"{str(c.id)[:22]:<24}{percent(c.before, 3):>14}{percent(c.after, 3):>11}"
                for c in changes
            ]
        lines += [
            "",
            f"On average {percent(self.overlap)} of a user's own list stays.",
            f"Half of the users give up at most {percent(record['relevance_loss_median_user'], 2)} "
            f"of the relevance, nine in ten at most "
            f"{percent(record['relevance_loss_worst_tenth'], 2)}.",
        ]
        return "\n".join(lines)


def _share_table(title: str, changes: Sequence[ExposureChange | GroupShare]) -> Table:
    rows = [(str(c.id), percent(c.before, 3), percent(c.after, 3)) for c in changes]
    return Table((title, "share before", "after"), rows)
