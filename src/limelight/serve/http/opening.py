"""Models and ledgers from folders, as the settings of a service say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limelight.serve.http.arms import Arm, Loaded
    from limelight.serve.http.settings import ServeSettings


def load_arm(settings: ServeSettings, name: str) -> Loaded:
    """Read the folder of a model, and warm its engine up."""
    raise NotImplementedError


def open_arms(settings: ServeSettings) -> dict[str, Arm]:
    """Open all models."""
    raise NotImplementedError
