"""What a fitted model knows: its arrays, the ids of users and items, and their histories."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids
    from limelight.solve.loop import Status

Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class Learned:
    """The arrays of a fitted model, and where they came from."""

    arrays: Mapping[str, NDArray[Any]]
    """What the model keeps, by name."""
    user_ids: Ids
    item_ids: Ids
    fingerprint: str
    """Of the training data."""
    seen: Csr | None
    """The training histories, which ``recommend`` leaves out; None if they were not saved."""
    trace: list[Any] = field(default_factory=list)
    """One record for each measured epoch."""
    status: Status | None = None
    weighted: bool = False
    """Whether the training data had weights; only then may histories of unseen users have them."""
    item_counts: NDArray[Any] | None = None
    """How many training users have each item, where the histories do not say it."""
    has_ids: bool = True
    """Whether items have ids of their own; those of a matrix are the numbers of its columns."""
    features: dict[str, Any] | None = None
    """How features of items are read, as JSON, if the fit was given some."""
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What was worked out of the rest, for the next call; neither copied nor saved."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was worked out."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return own | {"kept": {}}

    def keep(self, name: str, make: Callable[[], Kept]) -> Kept:
        """Return what is kept by a name, made the first time."""
        if name not in self.kept:
            self.kept[name] = make()
        found: Kept = self.kept[name]
        return found

    def counts(self) -> NDArray[Any] | None:
        """Return how many training users have each item; None if nobody knows."""
        if self.item_counts is None and self.seen is not None:
            return np.bincount(self.seen.indices, minlength=len(self.item_ids))
        return self.item_counts

    @cached_property
    def known_items(self) -> NDArray[np.bool_]:
        """Which items the model has learnt something of: they have a vector, or users."""
        if "item_factors" in self.arrays:
            return np.asarray(self.arrays["item_factors"].any(axis=1))
        counts = self.counts()
        return np.ones(len(self.item_ids), dtype=np.bool_) if counts is None else counts > 0

    def item_shares(self) -> Float32 | None:
        """Return the share of the training users who have each item; None if nobody knows."""
        counts = self.counts()
        return None if counts is None else (counts / len(self.user_ids)).astype(np.float32)
