"""The doctor's report."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from limelight._native import kernels

if TYPE_CHECKING:
    import pytest
    from tests.support.commands import Run


def test_doctor(limelight: Run) -> None:
    ended = limelight("doctor")
    assert ended.code == 0
    for word in ("processor", "kernel", "threads", "memory available", "blas", "extra plot"):
        assert f"\n{word} " in ended.out


def test_doctor_as_json(limelight: Run) -> None:
    record = json.loads(limelight("doctor", "--json").out)
    assert record["kernel"] == kernels.variant()
    assert record["kernels_available"] == kernels.variants()
    assert record["threads"] >= 1
    assert record["numpy"] == np.__version__
    assert record["memory_available"] <= record["memory_total"]


def test_doctor_on_an_unknown_machine(limelight: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> int:
        raise ValueError

    monkeypatch.setattr("limelight._base.machine._CPU_INFO", Path("/no/such/file"))
    monkeypatch.setattr("limelight.cli.doctor._EXTRAS", {"plot": "no_such_package"})
    monkeypatch.setattr("limelight._base.memory.room", lambda: None)
    monkeypatch.setattr(os, "sysconf", unknown)
    record = json.loads(limelight("doctor", "--json").out)
    assert record["processor"] in (platform.processor(), platform.machine())
    assert record["memory_total"] is None
    text = limelight("doctor").out
    assert "missing: pip install 'limelight[plot]'" in text
    assert "memory total       unknown" in text
