"""Data in: read interactions or candidates, split users, or make a marketplace of any size.

It knows files, frames and matrices, but no model.
"""

from __future__ import annotations

from limelight.data.candidates.candidates import Candidates, read_candidates
from limelight.data.groups import read_groups
from limelight.data.held_out import HeldOut, as_unseen
from limelight.data.interactions import Interactions, as_interactions
from limelight.data.read import read
from limelight.data.sources import TableSource
from limelight.data.split import Split, split_users
from limelight.data.synthetic import Marketplace, marketplace
from limelight.data.time_split import split_time

__all__ = [
    "Candidates",
    "HeldOut",
    "Interactions",
    "Marketplace",
    "Split",
    "TableSource",
    "as_interactions",
    "as_unseen",
    "marketplace",
    "read",
    "read_candidates",
    "read_groups",
    "split_time",
    "split_users",
]
