"""What a fit leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids
    from limelight.solve.loop import Status


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
