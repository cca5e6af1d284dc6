"""Places of ids in a catalogue: every way to look them up gives the same."""

import numpy as np
import pytest

from limelight.data.ids import IdLookup

FIRST, LAST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "catalogue",
    [
        np.array([30, 10, 33]),  # close together
        np.array([30, 10**12, -7]),
        np.array([FIRST, FIRST + 1]),
        np.array([LAST, LAST - 2]),
        np.array([FIRST, LAST]),
        np.array([200, 3], dtype=np.uint8),
        np.array(["30", "x", "-7"], dtype=object),
        np.array([], dtype=np.int64),
    ],
    ids=str,
)
def test_many_ids_are_looked_up_as_one_is(catalogue):
    lookup = IdLookup(catalogue)
    numbers = [30, 33, 9, 34, -7, 0, 10**12, FIRST, FIRST + 1, LAST, LAST - 2, LAST - 1, 200]
    texts = [str(number) for number in numbers]
    for asked in (numbers, texts, [*numbers, 2**70], [*numbers, True, None, "30"], ["x"], []):
        found = lookup.positions(asked)
        assert found.dtype == np.int32
        assert found.tolist() == [lookup.position(id_) for id_ in asked]
