"""Where things are: the checkout, and what may stand beside it."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LIMELIGHT_SHARED", ROOT.parent / "shared"))
"""Real data and stored answers, which are never shipped with the project."""
