"""Ids in arrays, and in the numbering of others."""

import numpy as np
import pyarrow as pa
import pytest

from limelight._base.errors import DataError
from limelight.data.columns import Chunk
from limelight.data.ids import IdColumn, ids_to_arrow, positions


def test_arrays_of_ids():
    assert ids_to_arrow(np.array(["a", "b"])).to_pylist() == ["a", "b"]
    assert ids_to_arrow(np.array([1, 2], dtype=object)).type == pa.int64()
    assert ids_to_arrow(np.array([1, 2], dtype=np.uint8)).type == pa.int64()
    assert ids_to_arrow(np.array([], dtype=object)).type == pa.large_string()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array(["a", 1], dtype=object), "ids must be all integers or all strings"),
        (np.array(["a", None], dtype=object), "the ids, row 2: an id is .*, got: null"),
        (np.array([0.5]), "the ids, row 1: an id that is a number must be whole, got: 0.5"),
        (np.array([2**64, 1], dtype=object), "ids must be all integers or all strings"),
        (np.array([2**63], dtype=np.uint64), "integer ids must fit 64 bits, got type: uint64"),
    ],
)
def test_arrays_that_are_no_ids(ids, message):
    with pytest.raises(DataError, match=message):
        ids_to_arrow(ids)


@pytest.mark.parametrize(
    "chunks",
    [
        [["b", "a"], ["c", "a", "b"]],
        [[7, -1], [2**62, -1, 7]],
        [["a", "a much longer id", "a much longer ID"], ["a much longer id"]],
    ],
)
def test_codes_go_on_over_chunks_and_slices(chunks):
    column, codes = IdColumn("x"), []
    for values in chunks:
        # A slice of an Arrow array shares the memory of the whole.
        inside = pa.array([values[0], *values, values[0]])[1:-1]
        codes += column.convert(Chunk(inside, "the frame")).tolist()
    rows = [value for values in chunks for value in values]
    distinct = list(dict.fromkeys(rows))
    assert column.ids().to_pylist() == distinct
    assert codes == [distinct.index(value) for value in rows]
    numbers, ids = column.ascending()
    assert ids.tolist() == sorted(distinct)
    assert ids[numbers[codes]].tolist() == rows


@pytest.mark.parametrize(
    ("ids", "catalogue", "expected"),
    [
        (["b", "z", "a"], ["a", "b"], [1, -1, 0]),
        ([3, 4], [4], [-1, 0]),
        ([3, 4], ["4", "x"], [-1, 0]),
        (["03", "3"], [3], [-1, 0]),
        ([], ["a"], []),
    ],
)
def test_positions(ids, catalogue, expected):
    ids = ids_to_arrow(np.array(ids, dtype=object))
    assert positions(ids, ids_to_arrow(np.array(catalogue))).tolist() == expected
