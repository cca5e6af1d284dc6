"""An experiment small enough to reproduce in a test."""

from __future__ import annotations

from dataclasses import replace

import pytest

from limelight.lab import growth
from limelight.lab.paper import experiments
from limelight.lab.paper.experiments import EXPERIMENTS, DataSize

SIZE = DataSize(400, 80, 6000)


@pytest.fixture
def tiny_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment of a few hundred users; the growth is measured on as few."""
    small = replace(
        EXPERIMENTS["epinions"],
        title="Tiny",
        size=SIZE,
        held_out=50,
        factors=8,
        cutoffs=(3, 5, 10),
        timed=(5, 10),
        weights=(1e-5, 1e-4, 1e-3),
    )
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"tiny": small})
    monkeypatch.setattr(growth.growth, "__defaults__", (DataSize(200, 60, 3000),))
    monkeypatch.setattr(growth, "_ROUNDS", 1)
