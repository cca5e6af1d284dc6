"""Operation counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limelight.lab.bench.task import (
    Shape,
    cg_epoch_flops,
    exadmm_epoch_flops,
    ials_epoch_flops,
)
from limelight.solve.cost import direct, row_solve, short
from limelight.solve.steps import CG_STEPS

if TYPE_CHECKING:
    from limelight.lab.bench.task import DataSet


def test_a_long_row() -> None:
    assert direct(np.float64(1000), 256) == 1000 * (256**2 + 512) + 256**3 / 3 + 2 * 256**2


def test_short_rows_take_the_small_system() -> None:
    few, many = np.array([3.0, 9.0]), np.array([64.0, 200.0])
    expected = [*short(few, 64), *direct(many, 64)]
    assert row_solve(np.concatenate([few, many]), 64).tolist() == expected
    assert (short(few, 64) < direct(few, 64)).all()


def test_epochs(tiny: DataSet) -> None:
    data, d = tiny.interactions, 8
    shape = Shape.of(data, d)
    assert shape.users.sum() == shape.items.sum() == data.nnz
    rows = data.n_users + data.n_items
    solves = shape.solve_flops(shape.users) + shape.solve_flops(shape.items)
    assert ials_epoch_flops(shape) == solves + 5 * d**2 * rows
    assert cg_epoch_flops(shape) == 8 * (1 + CG_STEPS) * data.nnz * d + 7 * d**2 * rows
    gradient = 4 * data.nnz * d + 2 * data.n_users * d**2
    expected = shape.solve_flops(shape.items) + gradient + 3 * d**2 * rows
    assert exadmm_epoch_flops(shape) == expected
