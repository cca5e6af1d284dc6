"""Where real data and stored answers are looked for; tests that need them are skipped without."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# A test never asserts a time: under sanitizers, or on a busy machine, an example may take any.
settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("LIMELIGHT_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def golden():
    """A 70 x 45 problem and every solver's answer, by an independent implementation."""
    path = SHARED / "golden" / "small.npz"
    if not path.exists():
        pytest.skip(f"the stored answers are not at {path}")
    with np.load(path) as stored:
        return dict(stored)


@pytest.fixture(scope="session")
def epinions():
    """The paper's Epinions split."""
    path = SHARED / "data" / "epinions_raw.parquet"
    if not path.exists():
        pytest.skip(f"Epinions is not at {path}")
    import limelight as ll

    data = ll.read(path, rating="rating", min_rating=4, min_user=20, min_item=20)
    return ll.split_users(data, validation=500, test=500, seed=98765)
