"""Arrays come back as they were, and damaged files are told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.support.examples import examples

from limelight._base.errors import DataError
from limelight.store.arrays import load_arrays, save_arrays

DTYPES = [np.bool_, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64]


@examples(50)
@given(
    hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)),
)
def test_round_trip(tmp_path_factory, array):
    file = tmp_path_factory.mktemp("arrays") / "x.safetensors"
    save_arrays(file, {"x": array})
    loaded = load_arrays(file)["x"]
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)
    assert loaded.shape == array.shape
    assert loaded.flags.writeable


def test_layout_and_byte_order_do_not_matter(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    arrays = {
        "transposed": matrix.T,
        "strided": matrix[::2, ::3],
        "fortran": np.asfortranarray(matrix),
        "reversed": matrix[::-1],
        "big": matrix.astype(">f8"),
    }
    save_arrays(tmp_path / "x", arrays)
    for name, loaded in load_arrays(tmp_path / "x").items():
        np.testing.assert_array_equal(loaded, arrays[name])


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.zeros(2, complex)])
def test_only_numbers_can_be_stored(tmp_path, array):
    with pytest.raises(DataError, match="cannot store array 'x' of type"):
        save_arrays(tmp_path / "x", {"x": array})
    assert not list(tmp_path.iterdir())


def test_unreadable_files(tmp_path):
    file = tmp_path / "x.safetensors"
    with pytest.raises(DataError, match=r"file not found: .*x.safetensors"):
        load_arrays(file)
    save_arrays(file, {"x": np.arange(100)})
    content = file.read_bytes()
    for damaged in (b"", b"junk, and not a little of it", content[: len(content) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot read arrays from"):
            load_arrays(file)
    with pytest.raises(DataError, match="cannot read arrays from"):
        load_arrays(tmp_path)
