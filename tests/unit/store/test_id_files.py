"""Id files come back as they were written, and say what is wrong with them."""

import base64

import numpy as np
import pyarrow as pa
import pytest

from limelight._base.errors import DataError
from limelight.store.arrays import read_ids, write_ids


@pytest.mark.parametrize(
    "ids",
    [
        np.array([3, -1, 2**62]),
        np.array(["b", "a", "007"], dtype=object),
        np.array([], dtype=np.int64),
        np.array([], dtype=object),
    ],
)
def test_ids_come_back(tmp_path, ids):
    write_ids(tmp_path / "x.parquet", "item_id", ids)
    loaded = read_ids(tmp_path / "x.parquet", "item_id")
    assert loaded.dtype == ids.dtype
    assert loaded.tolist() == ids.tolist()
    assert loaded.flags.writeable


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "x.parquet"
    with pytest.raises(DataError, match=r"no such file or folder: .*x.parquet"):
        read_ids(file, "item_id")
    write_ids(file, "user_id", np.array([1]))
    with pytest.raises(DataError, match=r"column not found in .*x.parquet: 'item_id'"):
        read_ids(file, "item_id")
    file.write_text("junk")
    with pytest.raises(DataError, match=r"cannot read .*x.parquet"):
        read_ids(file, "item_id")


# Four ids in a file that fuzzing has damaged: it promises 20 billion rows.
MANY_ROWS = (
    "UEFSMRUEFSgVLEwVCBUAEgAAFEwBAAAAYQEAAAABAAAAYgEAAABjAQAAAGQVABUUFRgsFQgVEBUGFQYcNgAoAWQYAW"
    "EREQAAAAokAgAAAAgBAgPkABUEGSw1ABgGc2NoZW1hFQIAFQwlAhgHaXRlbV9pZCUATBwAAAAWCBkcGRwmABwVDBk1"
    "AAYQGRgHaXRlbV9pZBUCFggWkgEWmgEmUCYIHDYAKAFkGAFhEREAGSwVBBUAFQIAFQAVEBUCADwWCBkGGSYACAAAAB"
    "aSARb42ffpmgEAGRwYDEFSUk9XOnFjaGVtYRigAS8vLy8vM0FBQUFBUUFBQUFBQUFLQUF3QUJnQUZBQWdBQ2dBQUFB"
    "QUJCQUFNQUFBQUNBQUlBQUFBQkFBSUFBQUFCQUFBQUFFQUFBQVVBQUFBRUFBVUFBZ0FCZ0FIQUF3QUFBQVFBQkFBQU"
    "FBQUFBRVVFQUFBQUJ3QUFBQUVBQUFBQUFBQUFBY0FBQUJwZEdWdFgybGtBQVFBQkFBRUFBQUEAGCBwYXJxdWV0LWNw"
    "cC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRkcHAAAAFwBAABQQVIx"
)


def test_a_file_is_not_believed_how_many_rows_it_has(tmp_path):
    path = tmp_path / "items.parquet"
    path.write_bytes(base64.b64decode(MANY_ROWS))
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(DataError, match="cannot read"):
            read_ids(path, "item_id")
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 1 << 24
