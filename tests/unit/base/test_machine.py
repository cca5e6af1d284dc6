import pytest

from limelight._base.errors import ConfigError
from limelight._base.machine import available_threads
from limelight._native import resolve_threads


def test_negative_number_of_threads():
    with pytest.raises(ConfigError, match="num_threads must not be negative: -1"):
        resolve_threads(-1)


def test_quota_of_a_control_group(tmp_path):
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert available_threads(tmp_path) == 1


def test_quota_of_an_older_control_group(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_threads(tmp_path) == 1


def test_no_quota(tmp_path):
    everything = available_threads(tmp_path / "nothing")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_threads(tmp_path) == everything >= 1
