"""Targets for the exposure of providers, or of any groups of items: who they are, how to help."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import as_groups, exposure_of, read_groups
from limelight.data.ids import ids_to_arrow
from limelight.rerank.methods import offered
from limelight.rerank.methods.market_config import GROUPS, AccountsConfig, GroupAccountsReranker
from limelight.rerank.welfare import Power

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source

    Kind = TypeVar("Kind", bound=GroupAccountsReranker)

ProvidersOf: TypeAlias = "Callable[[Ids], Providers]"
"""Tells which of some items are whose."""
EXPONENTS = (3.0, 2.0, 1.0)
"""Of the welfare of groups, the usual one first: the larger, the more the least exposed count."""
ITEMS = 0.7
"""How strongly items are helped beside their groups. Without it, groups that are helped would show
a few of their items only; with so much, items share what their group has no less evenly than they
did before, also where the Gini index of groups is halved. More would even out items at the expense
of relevance, which nobody asked for."""

_SMOOTH = 1.0  # the offset of welfare, where prices stay while exposure moves


@dataclass(frozen=True, eq=False)
class Providers:
    """Groups of items among whom a target wants exposure to be shared."""

    members: Groups
    exponent: float = GROUPS.exponent
    """Of the groups' welfare."""

    @property
    def _settings(self) -> dict[str, Any]:
        return {"group_welfare": Power(exponent=self.exponent), "items": ITEMS}

    def held(self, exposure: Float64) -> Float64:
        """Add up the exposure of each group, from that of items."""
        return exposure_of(self.members, exposure)

    def fingerprint(self) -> str:
        """Digest which items are whose."""
        found = hashlib.blake2b(digest_size=8)
        for numbers in self.members[:3]:
            found.update(np.ascontiguousarray(numbers).data)
        found.update("\n".join(map(str, self.members.group_ids)).encode())
        return found.hexdigest()

    def accounts(self, n_items: int) -> dict[str, Any]:
        """Return the settings of a market in which they are helped."""
        config = AccountsConfig(**self._settings, per_user=False)
        return config.accounts(self.members, n_items)

    def helped_by(self, method: Kind) -> Kind:
        """Let a re-ranker share exposure among them."""
        method.config = replace(method.config, **self._settings)
        if isinstance(method.config, AccountsConfig):
            # A search counts the relevance that all users give up together, so those who lose least
            # should move, and strength is the same for all.
            method.config = replace(method.config, per_user=False)
        else:
            # Steep prices fit only the users that they were found for.
            smooth = Power(exponent=self.exponent, offset=_SMOOTH)
            method.config = replace(method.config, group_welfare=smooth)
        return method.of(self.members)


def read_providers(source: Source, item_ids: Ids) -> Groups:
    """Read ``item_id, group[, weight]`` for a target, which needs two groups at least.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"item_id": ["a", "b"], "group": ["x", "y"]})
    >>> read_providers(table, ["a", "b", "c"]).group_ids
    ['x', 'y']
    """
    members = as_groups(read_groups(source, ids_to_arrow(item_ids)), len(item_ids))
    if len(members.group_ids) < 2:
        message = f"exposure is shared among groups, and there is one: {members.group_ids[0]!r}"
        raise DataError(message, hint="name the provider of every item in the column group")
    return members


def check_providers(of: Source | None, min_mmf: float | None, method: str = "auto") -> None:
    """Refuse an MMF without groups, and groups where a method knows items alone.

    Examples
    --------
    >>> check_providers("sellers.csv", 0.3, "online")
    """
    if of is None and min_mmf is not None:
        message = "an MMF needs groups of items, and none were given"
        raise ConfigError(message, hint="name a table item_id,group: of=..., --of FILE")
    able = [name for name, kind in offered().items() if issubclass(kind, GroupAccountsReranker)]
    if of is not None and method not in ("auto", *able):
        message = f"{method} shares exposure among items, not among groups"
        raise ConfigError(message, hint=f"choose from: auto, {', '.join(able)}")


def as_providers(of: Source | None, min_mmf: float | None) -> ProvidersOf | None:
    """Take the groups of a target for whatever items there are; None if there are none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sellers = pa.table({"item_id": ["a", "b"], "group": ["x", "y"]})
    >>> as_providers(sellers, min_mmf=0.3)(["b", "a"]).members.items
    array([1, 0])
    """
    check_providers(of, min_mmf)
    return None if of is None else lambda ids: Providers(read_providers(of, ids))
