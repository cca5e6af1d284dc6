"""Audits of lists that pure chance made: whatever looks unfair about a group in them is chance."""

from __future__ import annotations

from math import comb

import numpy as np
import pyarrow as pa

from limelight.audit.audit import Audit, audit

GROUPS, EACH, USERS, K = 2000, 2, 400, 10
SHARE = 1 / GROUPS
"""What every group gets of the exposure, in the mean over all lists that chance could make."""
REACH = 1 - comb(GROUPS * EACH - EACH, K) / comb(GROUPS * EACH, K)
"""The probability that a user sees one of its items."""
RULES = (
    f"group:* > {SHARE!r}",
    f"group:* < {SHARE!r}",
    f"reach:* > {REACH!r}",
    f"reach:* < {REACH!r}",
    "ratio:* < 1",
    "impact_ratio:* < 1",
)
"""All at the very edge of what is true, where verdicts go wrong most easily."""

_ITEMS = GROUPS * EACH
_TABLE = pa.table({"item_id": np.arange(_ITEMS), "group": np.arange(_ITEMS) % GROUPS})


def chance_audit(seed: int) -> Audit:
    """Audit lists of items that were drawn at random."""
    generator = np.random.default_rng(seed)
    lists = np.stack([generator.choice(_ITEMS, K, replace=False) for _ in range(USERS)])
    table = pa.table(
        {
            "user_id": np.repeat(np.arange(USERS), K),
            "item_id": lists.ravel(),
            "rank": np.tile(np.arange(1, K + 1), USERS),
        }
    )
    return audit(table, catalogue=np.arange(_ITEMS), groups=_TABLE)
