"""Operation counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.lab.bench.task import Shape, cg_epoch, direct_solve, row_solves, short_solve
from limelight.lab.bench.task import exadmm_epoch_work as exadmm_epoch
from limelight.lab.bench.task import ials_epoch_work as ials_epoch
from limelight.solve.steps import CG_STEPS

if TYPE_CHECKING:
    from limelight.lab.bench.task import DataSet


def test_a_long_row() -> None:
    assert direct_solve(np.array([1000]), 256) == 1000 * (256**2 + 512) + 256**3 / 3 + 2 * 256**2


def test_short_rows_take_the_small_system() -> None:
    short, long = np.array([3, 9]), np.array([64, 200])
    assert row_solves(np.concatenate([short, long]), 64) == short_solve(short, 64) + direct_solve(
        long, 64
    )
    assert short_solve(short, 64) < direct_solve(short, 64)


def test_epochs(tiny: DataSet) -> None:
    data, d = tiny.interactions, 8
    shape = Shape.of(data, d)
    assert shape.users.sum() == shape.items.sum() == data.nnz
    rows = data.n_users + data.n_items
    solves = row_solves(shape.users, d) + row_solves(shape.items, d)
    assert ials_epoch(shape) == solves + 5 * d**2 * rows
    assert cg_epoch(shape) == 8 * (1 + CG_STEPS) * data.nnz * d + 7 * d**2 * rows
    gradient = 4 * data.nnz * d + 2 * data.n_users * d**2
    assert exadmm_epoch(shape) == row_solves(shape.items, d) + gradient + 3 * d**2 * rows
