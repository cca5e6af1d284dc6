"""Made-up candidates: as many as asked for, the same for a seed, and as skewed as real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from limelight._base.errors import ConfigError, DataError
from limelight.data.candidates.candidates import read_candidates
from limelight.lab.bench import candidates as made_up
from limelight.metrics.exposure import exposure, gini

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *options: str) -> Path:
    sizes = ["--users", "300", "--items", "2000", "--candidates", "100"]
    made_up.main([str(folder), *sizes, *options])
    return folder


def test_every_user_has_her_best_candidates(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(made_up, "BLOCK", 128)
    folder = run(tmp_path / "candidates")
    assert [file.name for file in sorted(folder.iterdir())] == [
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
    ]
    table = pq.read_table(folder)
    assert table.column_names == ["user_id", "item_id", "score"]
    scores = table["score"].to_numpy().reshape(300, 100)
    assert (np.diff(scores, axis=1) <= 0).all()
    with read_candidates(folder, catalogue=range(2000)) as candidates:
        assert (candidates.counts == 100).all()
        assert candidates.user_ids.tolist() == list(range(300))
        items = candidates.block(0, 300).items.reshape(300, 100)
    assert 0.75 < gini(exposure(items[:, :20], 2000)) < 0.97


def test_a_seed_decides(tmp_path: Path) -> None:
    one, same = (pq.read_table(run(tmp_path / name)) for name in "ab")
    assert one == same
    assert one != pq.read_table(run(tmp_path / "c", "--seed", "1"))


def test_nothing_is_replaced(tmp_path: Path) -> None:
    folder = run(tmp_path / "candidates")
    with pytest.raises(DataError, match="will not replace"):
        run(folder)


def test_no_more_candidates_than_items(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="n_candidates must be from 1 to the 2,000 items: 2001"):
        run(tmp_path / "candidates", "--candidates", "2001")
