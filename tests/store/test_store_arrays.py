"""Arrays come back as they were, and damaged files are told apart."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import limelight
from limelight._errors import DataError
from limelight.store.arrays import load_arrays, save_arrays

DTYPES = [np.bool_, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64]
SOURCE = str(Path(limelight.__file__).parents[1])


@settings(deadline=None, max_examples=50)
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


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path):
    pytest.importorskip("resource", reason="file sizes cannot be limited here")
    file = tmp_path / "x.safetensors"
    save_arrays(file, {"x": np.arange(3)})
    script = f"""
import resource
import numpy as np
from limelight._errors import DataError
from limelight.store.arrays import save_arrays
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_arrays({str(file)!r}, {{"x": np.zeros(100_000)}})
except DataError as error:
    print(error.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"cannot write {str(file)!r}: File too large"
    assert load_arrays(file)["x"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
