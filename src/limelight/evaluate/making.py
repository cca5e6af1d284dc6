"""How a result was made: by which command, with what versions, when."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from limelight._machine import processor
from limelight.store.model_folder import package_version

if TYPE_CHECKING:
    from limelight.data.split import Split

_OURS = {"limelight", "limelight.exe", "__main__.py"}


def how_made(*, seconds: float | None = None, seed: int | None = None) -> dict[str, str]:
    """Say in words how a result is being made, for whoever wants to make it again.

    Parameters
    ----------
    seconds
        How long it took.
    seed
        Of all that was drawn.

    Examples
    --------
    >>> how_made(seed=7)["Seed"]
    '7'
    """
    import numpy as np

    made = {}
    if Path(sys.argv[0]).name in _OURS:
        made["Command"] = shlex.join(["limelight", *sys.argv[1:]])
    made["limelight"] = package_version()
    made["Python"] = f"{platform.python_version()}, NumPy {np.__version__}"
    made["Machine"] = f"{platform.system()} {platform.machine()}, {processor()[0]}"
    if seed is not None:
        made["Seed"] = str(seed)
    if seconds is not None:
        made["Took"] = f"{seconds:,.1f} seconds"
    made["Time"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return made


def about_data(split: Split) -> dict[str, str]:
    """Say in words what a run learnt from and was measured with."""
    train = split.train
    filled = train.nnz / max(train.n_users * train.n_items, 1)
    return {
        "Training users": f"{train.n_users:,}",
        "Items": f"{train.n_items:,}",
        "Interactions": f"{train.nnz:,}",
        "Filled": f"{100 * filled:.3g} % of all pairs",
        "Validation users": f"{split.validation.n_users:,}",
        "Test users": f"{split.test.n_users:,}",
    }
