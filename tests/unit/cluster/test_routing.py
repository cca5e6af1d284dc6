from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limelight.cluster.ingest.routing import balanced_bounds


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 9))
def test_runs_are_of_about_equal_work(work, n_runs):
    work = np.array(work, np.int64)
    bounds = balanced_bounds(work, n_runs)
    assert bounds.dtype == np.int64
    assert (bounds[0], bounds[-1], len(bounds)) == (0, len(work), n_runs + 1)
    assert (np.diff(bounds) >= 0).all()
    loads = [work[start:end].sum() for start, end in pairwise(bounds)]
    assert max(loads) <= work.sum() / n_runs + work.max(initial=0) + 1e-9
