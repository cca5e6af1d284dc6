"""Id files come back as they were written, and say what is wrong with them."""

import numpy as np
import pytest

from limelight._errors import DataError
from limelight.store.id_files import read_ids, write_ids


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
