"""Ids to codes, against a dictionary."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight._native import kernels

# Few letters and lengths on both sides of eight bytes, so that ids repeat and share beginnings.
ids = st.lists(st.lists(st.sampled_from([0, 1, 255]), max_size=20).map(bytes), max_size=60)


def encode(table, values):
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    codes = np.empty(len(values), dtype=np.int32)
    table.encode(offsets, np.frombuffer(b"".join(values), dtype=np.uint8), codes)
    return codes.tolist()


def distinct(table):
    offsets, content = table.ids()
    return [content[start:stop].tobytes() for start, stop in pairwise(offsets)]


@given(st.lists(ids, max_size=3))
def test_codes_are_those_of_a_dictionary(batches):
    table, expected = kernels.IdTable(), {}
    for batch in batches:
        codes = [expected.setdefault(value, len(expected)) for value in batch]
        assert encode(table, batch) == codes
    assert distinct(table) == list(expected)
    assert [list(expected)[code] for code in table.ascending()] == sorted(expected)


@pytest.mark.parametrize("prefix", [b"", b"a longer id "])
def test_the_table_grows(prefix):
    values = [prefix + str(i * 7919 % 5003).encode() for i in range(20_000)]
    table, expected = kernels.IdTable(), {}
    codes = [expected.setdefault(value, len(expected)) for value in values]
    assert encode(table, values) == codes
    assert distinct(table) == list(expected)


@pytest.mark.parametrize("offsets", [[0, 3], [-1, 1], [2, 1]])
def test_offsets_outside_the_bytes_are_refused(offsets):
    content, codes = np.zeros(2, dtype=np.uint8), np.empty(1, dtype=np.int32)
    with pytest.raises(ValueError, match="offsets must ascend in the bytes"):
        kernels.IdTable().encode(np.array(offsets), content, codes)


def test_one_code_a_string():
    content, codes = np.zeros(2, dtype=np.uint8), np.empty(2, dtype=np.int32)
    with pytest.raises(ValueError, match="one entry more than codes"):
        kernels.IdTable().encode(np.array([0, 2]), content, codes)
