"""Where real data is looked for: tests that need it are skipped where it is not."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, which are never shipped with the project."""
    folder = Path(os.environ.get("LIMELIGHT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "epinions_raw.parquet").is_file():
        pytest.skip(f"real data is not at {folder}; set LIMELIGHT_DATA to where it is")
    return folder
