import os

import pytest

from limelight.store import json as json_files
from limelight.store.json import read_json


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "config.json")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ValueError, match="it is not a file"):
        read_json(tmp_path / "config.json")


def test_a_device_is_not_read_to_its_end(tmp_path):
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="it is not a file"):
        read_json(tmp_path / "config.json")


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "blob").write_text("[1]")
    (tmp_path / "config.json").symlink_to(tmp_path / "blob")
    assert read_json(tmp_path / "config.json") == [1]


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "_MOST_BYTES", 10)
    (tmp_path / "config.json").write_text('"long enough"')
    with pytest.raises(ValueError, match="it has 13 bytes, more than any"):
        read_json(tmp_path / "config.json")


def test_a_file_that_is_nested_too_deeply(tmp_path):
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="it is nested too deeply"):
        read_json(tmp_path / "config.json")
