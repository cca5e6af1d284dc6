"""Benchmarks that take no time, because they measure next to nothing."""

from __future__ import annotations

import pytest

from limelight.data import marketplace
from limelight.lab.bench.task import DataSet


@pytest.fixture
def small_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a large matrix product, or for long rows."""
    monkeypatch.setattr("limelight.lab.bench.timing.SGEMM_SIZE", 64)
    monkeypatch.setattr("limelight.lab.bench.timing._LEAST_SECONDS", 1e-4)
    monkeypatch.setattr("limelight.lab.bench.epochs.LONG_ROWS", 2)


@pytest.fixture(scope="session")
def tiny() -> DataSet:
    return DataSet("tiny", marketplace(300, 120, 4000).interactions)
