"""Two audits side by side: what changed, for whom, and whether it may be chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.arrays import blocks
from limelight.audit.tables import NO_TITLES, ItemTitles, record
from limelight.data.groups import exposure_of, owned_by
from limelight.data.ids import positions
from limelight.data.rows import sorted_keys
from limelight.metrics.intervals import Deviations, margin_of
from limelight.report.exhibit import Compared

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from limelight.audit.lists import ListTable
    from limelight.data.groups import Groups
    from limelight.metrics.accumulate import Tally
    from limelight.metrics.intervals import Moments
    from limelight.metrics.lists import FloatArray


@dataclass(frozen=True)
class ShareChange:
    """The share of all exposure of an item or a group, before and after."""

    name: int | str
    before: float
    after: float
    change: float
    title: str | None = None
    """What the catalogue calls the item."""


@dataclass(frozen=True)
class Comparison:
    """What changed from the lists compared against (before) to the lists audited (after)."""

    users: int
    """Users of the lists before."""

    lists: int
    users_in_both: int
    metrics: dict[str, float]
    """For every metric `gini@k_before`, `gini@k_change`, and where there is an interval
    `gini@k_change_low` and `gini@k_change_high`; `overlap@k` with its bounds."""

    items_entered: int
    """Items that a list shows after, and none before."""

    items_left: int
    gained: tuple[ShareChange, ...]
    """The items whose share of the exposure grew most."""

    lost: tuple[ShareChange, ...]
    groups: tuple[ShareChange, ...] = ()
    """All groups, from the one that gained most to the one that lost most."""

    def group_shares(self) -> Compared:
        """Return the shares of groups before and after, for a figure."""
        return Compared(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything under flat keys, ready for JSON.

        Examples
        --------
        >>> Comparison(3, 3, 2, {"gini@5_change": 0.1}, 1, 0, (), ()).to_dict()["gini@5_change"]
        0.1
        """
        return {
            "users_before": self.users,
            "lists_before": self.lists,
            "users_in_both": self.users_in_both,
            **self.metrics,
            "items_entered": self.items_entered,
            "items_left": self.items_left,
            "gained": [record(change) for change in self.gained],
            "lost": [record(change) for change in self.lost],
            "group_changes": [record(change) for change in self.groups],
        }


class Audited(NamedTuple):
    """Lists that were audited: their rows, what they add up to, and how sure that is."""

    rows: ListTable
    """Cut at k, with items by their number in the catalogue; of lists in parts, the first's."""

    exposure: Tally
    metrics: dict[str, float]
    spread: Deviations | Moments | None
    """How the metrics vary over users; None for fewer than two."""


def compare(
    before: Audited,
    after: Audited,
    item_ids: pa.Array,
    members: Groups | None,
    *,
    k: int,
    top: int,
    titles: ItemTitles = NO_TITLES,
) -> Comparison:
    """Compare the exposure of two files over the same catalogue and the same ranks."""
    same = positions(before.rows.user_ids, after.rows.user_ids)
    changes = _shares(after.exposure.weighted) - _shares(before.exposure.weighted)
    order = np.argsort(-changes, kind="stable")
    gained, lost = order[:top], order[::-1][:top]

    def name(chosen: NDArray[np.int64]) -> tuple[ShareChange, ...]:
        old, new = _shares(before.exposure.weighted), _shares(after.exposure.weighted)
        return tuple(
            _change(item_ids[int(i)].as_py(), old[i], new[i], titles.of(int(i))) for i in chosen
        )

    shown = before.exposure.shown > 0, after.exposure.shown > 0
    return Comparison(
        users=before.rows.n_users,
        lists=before.rows.n_lists,
        users_in_both=int(np.sum(same >= 0)),
        metrics=_differences(before, after, same) | _overlap(before, after, same, k),
        items_entered=int(np.sum(~shown[0] & shown[1])),
        items_left=int(np.sum(shown[0] & ~shown[1])),
        gained=name(gained[changes[gained] > 0]),
        lost=name(lost[changes[lost] < 0]),
        groups=_group_changes(before, after, members) if members else (),
    )


def _shares(exposure: FloatArray) -> FloatArray:
    return np.asarray(exposure / exposure.sum())


def _change(name: int | str, before: float, after: float, title: str | None = None) -> ShareChange:
    return ShareChange(name, float(before), float(after), float(after - before), title)


def _group_changes(before: Audited, after: Audited, members: Groups) -> tuple[ShareChange, ...]:
    old, new = (
        exposure_of(members, side.exposure.weighted) / side.exposure.weighted.sum()
        for side in (before, after)
    )
    changes = [
        _change(members.group_ids[g], old[g], new[g]) for g in np.flatnonzero(owned_by(members))
    ]
    return tuple(sorted(changes, key=lambda change: -change.change))


def _differences(before: Audited, after: Audited, same: NDArray[np.int64]) -> dict[str, float]:
    """Give every metric before, its change, and the bounds of the change.

    A user of both files is left out of both at once, so that what her lists have in common does
    not count as chance. A user of one file is left out of that one.
    """
    found = {}
    margins = _margins(before.spread, after.spread, same)
    for key, new in after.metrics.items():
        old = before.metrics[key]
        found[f"{key}_before"] = old
        found[f"{key}_change"] = new - old
        if key in margins:
            found[f"{key}_change_low"] = new - old - margins[key]
            found[f"{key}_change_high"] = new - old + margins[key]
    return found


def _margins(before: Any, after: Any, same: NDArray[np.int64]) -> dict[str, float]:
    if not (isinstance(before, Deviations) and isinstance(after, Deviations)):
        return {}
    in_both = same >= 0
    margins = {}
    for key, new in after.by_figure.items():
        old = before.by_figure[key]
        together = new.copy()
        together[same[in_both]] -= old[in_both]
        deviations = np.concatenate([together, old[~in_both]])
        margins[key] = margin_of(deviations, len(deviations))
    return margins


def _overlap(before: Audited, after: Audited, same: NDArray[np.int64], k: int) -> dict[str, float]:
    """Give the mean share of items in common over users of both files, with its bounds.

    For one user: the items that she is shown in both files, over those of the file that shows
    her more.
    """
    span, n_users = len(after.exposure.shown), after.rows.n_users
    users = same.astype(np.int32)[before.rows.users]
    known = users >= 0
    new = _keys(after.rows.users, after.rows, span)
    old = _keys(users, before.rows, span, known)
    n_old, n_new = _per_user(old, span, n_users), _per_user(new, span, n_users)
    n_common = np.zeros(n_users, dtype=np.int64)
    for block in blocks(len(old)):
        places = np.minimum(np.searchsorted(new, old[block]), len(new) - 1)
        n_common += _per_user(old[block][new[places] == old[block]], span, n_users)
    in_both = (n_old > 0) & (n_new > 0)
    if not in_both.any():
        return {}
    share = n_common[in_both] / np.maximum(n_old, n_new)[in_both]
    key, mean = f"overlap@{k}", float(share.mean())
    if len(share) < 2:
        return {key: mean}
    margin = margin_of((share - mean) / (len(share) - 1), len(share))
    bounds = {f"{key}_low": max(0.0, mean - margin), f"{key}_high": min(1.0, mean + margin)}
    return {key: mean, **bounds}


def _keys(
    users: NDArray[np.int32], rows: ListTable, span: int, keep: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Give each pair of a user and an item that she is shown one key, sorted."""
    items = rows.items
    if keep is not None and not keep.all():
        users, items = users[keep], items[keep]
    keys = sorted_keys(users, items, span)
    if rows.times is None:
        return keys
    # Several lists of a user may show the same item, which is to count once.
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = keys[1:] != keys[:-1]
    return keys[fresh]


def _per_user(keys: NDArray[np.int64], span: int, n_users: int) -> NDArray[np.int64]:
    """Count the keys of each user; the keys are sorted, so a user's stand side by side."""
    return np.diff(np.searchsorted(keys, np.arange(n_users + 1) * span))
