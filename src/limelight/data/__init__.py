"""Data in: read interactions or candidates, split users, or make a marketplace of any size.

It knows files, frames and matrices, but no model.
"""

from __future__ import annotations

from limelight.data.candidates.candidates import Candidates, read_candidates
from limelight.data.held_out import HeldOut
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.read import read
from limelight.data.split import Split, split_users
from limelight.data.synthetic import Marketplace, marketplace

__all__ = [
    "Candidates",
    "HeldOut",
    "Interactions",
    "Marketplace",
    "Split",
    "as_interactions",
    "marketplace",
    "read",
    "read_candidates",
    "split_users",
]
