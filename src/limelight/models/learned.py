"""What a fit leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids
    from limelight.solve.loop import Status
    from limelight.solve.measure import TraceRecord


@dataclass(frozen=True, eq=False)
class Learned:
    """The arrays of a fitted factor model, and where they came from."""

    user_factors: Float32
    item_factors: Float32
    user_ids: Ids
    item_ids: Ids
    fingerprint: str
    """Of the training data."""
    seen: Csr | None
    """The training histories, which ``recommend`` leaves out; None if they were not saved."""
    vectors: dict[str, Float64] = field(default_factory=dict)
    """What a model keeps besides factors, by name."""
    trace: list[TraceRecord] = field(default_factory=list)
    status: Status | None = None
