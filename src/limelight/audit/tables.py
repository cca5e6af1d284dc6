"""Every item and every group of an audit as a row: of a table, or of JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import ConfigError
from limelight.audit.targets import missed_by
from limelight.data.groups import exposure_of, owned_by
from limelight.data.ids import ids_to_arrow
from limelight.report.titles import read_titles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.audit.result import Audit
    from limelight.data.groups import Groups
    from limelight.metrics.accumulate import Tally
    from limelight.metrics.lists import FloatArray

MOST_OVER_TIME = 200
"""Groups whose shares are kept for each period."""
_GETS = ("impact_ratio", "selection_rate", "selection_ratio", "reach", "reach_low", "reach_high")
"""What a group gets, but its share of the exposure."""
_WHERE_KNOWN = {"title", "floor", "cap", "share_low", "share_high", *_GETS}


def record(one: Any) -> dict[str, Any]:
    """Return an item or a group for JSON, without the title and the bounds that it has not."""
    return {
        name: value
        for name, value in asdict(one).items()
        if value is not None or name not in _WHERE_KNOWN
    }


class ItemTitles(NamedTuple):
    """What the catalogue calls items, by their number."""

    titles: pa.Array | None = None

    def of(self, item: int) -> str | None:
        """Return the title of an item, if it has one.

        Examples
        --------
        >>> ItemTitles(pa.array(["Seven", ""])).of(0), ItemTitles().of(0)
        ('Seven', None)
        """
        return None if self.titles is None else self.titles[item].as_py() or None


NO_TITLES = ItemTitles()


def titles_of(catalogue: Any, item_ids: pa.Array) -> ItemTitles:
    """Read the titles of items from a catalogue; a plain sequence of ids has none.

    Examples
    --------
    >>> titles_of(pa.table({"item_id": [5], "title": ["Five"]}), pa.array([5])).of(0)
    'Five'
    >>> titles_of([5], pa.array([5])).of(0)
    """
    is_path = isinstance(catalogue, str | os.PathLike)
    if catalogue is None or (isinstance(catalogue, Sequence) and not is_path):
        return NO_TITLES
    if len(getattr(catalogue, "shape", ())) == 1:
        return NO_TITLES
    found = read_titles(catalogue, item_ids)
    return NO_TITLES if found is None else ItemTitles(pa.array(found, pa.large_string()))


@dataclass(frozen=True)
class ItemExposure:
    """One item: its log-weighted exposure, its share of all exposure, the lists that show it."""

    item_id: int | str
    exposure: float
    share: float
    lists: int
    title: str | None = None
    """What the catalogue calls it."""


def name_items(
    chosen: NDArray[np.int64], item_ids: pa.Array, exposure: Tally, titles: ItemTitles
) -> tuple[ItemExposure, ...]:
    """Name some items, with their exposure, their share of all, and the lists that show them."""
    weighted, total = exposure.weighted, exposure.weighted.sum()
    return tuple(
        ItemExposure(
            item_id=item_ids[int(item)].as_py(),
            exposure=float(weighted[item]),
            share=float(weighted[item] / total),
            lists=int(exposure.shown[item]),
            title=titles.of(int(item)),
        )
        for item in chosen
    )


class ShareLookup:
    """Gives some groups' shares of the exposure of items, by the names of the groups."""

    def __init__(self, members: Groups, names: Sequence[int | str]) -> None:
        number = {name: index for index, name in enumerate(members.group_ids)}
        self._members = members
        self._numbers = {name: number[name] for name in names[:MOST_OVER_TIME]}

    def __call__(self, exposure: FloatArray) -> dict[int | str, float]:
        """Return the share of each group, 0 where nothing is shown."""
        held, whole = exposure_of(self._members, exposure), float(exposure.sum())
        return {name: float(held[at] / whole) for name, at in self._numbers.items()}


def items_table(audit: Audit) -> pa.Table:
    """Tabulate every item, the most exposed first."""
    order = np.argsort(-audit.exposure, kind="stable")
    share = audit.exposure / audit.exposure.sum()
    columns: dict[str, Any] = {"item_id": ids_to_arrow(audit.item_ids)}
    if audit.titles is not None:
        columns["title"] = audit.titles
    columns |= {"exposure": audit.exposure, "share": share, "lists": audit.shown}
    if audit.merits is not None:
        columns |= {"merit": audit.merits, "merit_share": audit.merits / audit.merits.sum()}
    if audit.exposure_before is not None:
        before = audit.exposure_before / audit.exposure_before.sum()
        columns |= {"share_before": before, "change": share - before}
    return pa.table(columns).take(pa.array(order))


def groups_table(audit: Audit) -> pa.Table:
    """Tabulate every group, in the order of ``audit.groups``; items without a group come last."""
    members = audit.members
    if members is None:
        message = "there are no groups to tabulate: groups=None"
        raise ConfigError(message, hint="audit with groups='...'")
    owned = dict(zip(members.group_ids, owned_by(members).tolist(), strict=True))
    rows = list(audit.groups)
    names: list[Any] = [one.group for one in rows]
    items = [owned[name] for name in names]
    if audit.ungrouped is not None and audit.ungrouped.catalogue_share:
        rows.append(audit.ungrouped)
        names.append(None)
        items.append(float(audit.items - len(np.unique(members.items))))
    share = np.array([one.exposure_share for one in rows])
    columns: dict[str, Any] = {
        "group": pa.array(names),
        "items": items,
        "exposure_share": share,
        "share_low": pa.array([one.share_low for one in rows], pa.float64()),
        "share_high": pa.array([one.share_high for one in rows], pa.float64()),
        "catalogue_share": [one.catalogue_share for one in rows],
        "ratio": [one.ratio for one in rows],
        **{name: pa.array([getattr(one, name) for one in rows], pa.float64()) for name in _GETS},
    }
    bounds = {"floor": [one.floor for one in rows], "cap": [one.cap for one in rows]}
    for name, values in bounds.items():
        if any(value is not None for value in values):
            columns[name] = pa.array(values, pa.float64())
    if "floor" in columns or "cap" in columns:
        columns["missed_by"] = [missed_by(one) for one in rows]
    if audit.exposure_before is not None:
        before = _shares_before(audit.exposure_before, members, names)
        columns |= {"share_before": before, "change": share - before}
    return pa.table(columns)


def _shares_before(exposure: FloatArray, members: Groups, names: list[Any]) -> FloatArray:
    held = exposure_of(members, exposure)
    by_name: dict[Any, float] = dict(zip(members.group_ids, held.tolist(), strict=True))
    by_name[None] = float(np.delete(exposure, np.unique(members.items)).sum())
    return np.asarray([by_name[name] / exposure.sum() for name in names], np.float64)
