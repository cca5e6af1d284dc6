"""Outputs appear whole or not at all, whatever happens in between."""

import errno
import os
from pathlib import Path

import pytest

from limelight._base import files as _atomic
from limelight._base.errors import DataError, LimelightWarning
from limelight._base.files import atomic_file, atomic_folder, delete_folder, delete_within


def ours(folder):
    return (folder / "ours").exists()


@pytest.fixture
def old_file(tmp_path):
    file = tmp_path / "output"
    file.write_text("old")
    return file


@pytest.fixture
def old_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "ours").write_text("old")
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_in_a_new_folder(tmp_path):
    target = tmp_path / "a" / "b" / "output"
    with atomic_file(target) as temporary:
        assert temporary.parent == target.parent
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert names(target.parent) == ["output"]


def test_a_file_has_ordinary_permissions(tmp_path):
    with atomic_file(tmp_path / "output") as temporary:
        temporary.write_text("new")
    (tmp_path / "plain").write_text("new")
    assert (tmp_path / "output").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_is_followed(tmp_path, old_file):
    link = tmp_path / "link"
    link.symlink_to(old_file)
    with atomic_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert old_file.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_any_exception_leaves_the_old_file(old_file, error):
    def write_half():
        with atomic_file(old_file) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert old_file.read_text() == "old"
    assert names(old_file.parent) == ["output"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_leaves_the_old_file(old_file):
    message = f"cannot write '{old_file}': No space left on device"
    with pytest.raises(DataError, match=message) as error, atomic_file(old_file):
        Path("/dev/full").write_bytes(b"x" * 100_000)
    assert error.value.hint.startswith("free some space")
    assert old_file.read_text() == "old"
    assert names(old_file.parent) == ["output"]


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match=r"cannot write .*: Is a directory"), atomic_file(tmp_path):
        pytest.fail("the block must not run")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="this system has no /dev/null")
def test_a_device_is_not_replaced():
    with pytest.raises(DataError, match="cannot write '/dev/null'"), atomic_file("/dev/null"):
        pytest.fail("the block must not run")


def test_a_file_is_in_the_way_of_a_folder(old_file):
    with pytest.raises(DataError, match="cannot write") as error, atomic_file(old_file / "x"):
        pytest.fail("the block must not run")
    assert error.value.hint == "a part of the path is a file, not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="Permission denied"), atomic_file(tmp_path / "output"):
        pytest.fail("the block must not run")


def test_a_new_folder(tmp_path):
    target = tmp_path / "a" / "model"
    with atomic_folder(target, replace_if=ours) as temporary:
        (temporary / "ours").write_text("new")
        assert not target.exists()
    assert names(target.parent) == ["model"]
    assert (target / "ours").read_text() == "new"


def test_our_folder_is_replaced_with_all_it_holds(old_folder):
    (old_folder / "second").touch()
    with atomic_folder(old_folder, replace_if=ours) as temporary:
        (temporary / "ours").write_text("new")
    assert names(old_folder) == ["ours"]
    assert (old_folder / "ours").read_text() == "new"
    assert names(old_folder.parent) == ["model"]


def test_an_empty_folder_is_replaced(tmp_path):
    (tmp_path / "model").mkdir()
    with atomic_folder(tmp_path / "model", replace_if=ours) as temporary:
        (temporary / "ours").touch()
    assert names(tmp_path / "model") == ["ours"]


def test_a_stranger_is_not_replaced(tmp_path, old_file):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").touch()
    for target in (tmp_path / "photos", old_file):
        with (
            pytest.raises(DataError, match="will not replace what limelight did not write"),
            atomic_folder(target, replace_if=ours),
        ):
            pytest.fail("the block must not run")
    assert names(tmp_path / "photos") == ["cat"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_any_exception_leaves_the_old_folder(old_folder, error):
    def write_half():
        with atomic_folder(old_folder, replace_if=ours) as temporary:
            (temporary / "ours").write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert (old_folder / "ours").read_text() == "old"
    assert names(old_folder.parent) == ["model"]


def test_folders_are_exchanged_at_once(old_folder, monkeypatch):
    def refuse(path, target):
        raise AssertionError

    monkeypatch.setattr(Path, "rename", refuse)
    with atomic_folder(old_folder, replace_if=ours) as temporary:
        (temporary / "ours").write_text("new")
    assert (old_folder / "ours").read_text() == "new"
    assert names(old_folder.parent) == ["model"]


def test_without_exchange_the_old_folder_steps_aside(old_folder, monkeypatch):
    monkeypatch.setattr(_atomic, "_exchange", lambda one, other: False)
    with atomic_folder(old_folder, replace_if=ours) as temporary:
        (temporary / "ours").write_text("new")
    assert (old_folder / "ours").read_text() == "new"
    assert names(old_folder.parent) == ["model"]


def test_a_system_without_exchange(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic.ctypes, "CDLL", lambda name: object())
    assert not _atomic._exchange(tmp_path / "a", tmp_path / "b")


def test_the_old_folder_comes_back_if_the_rename_fails(old_folder, monkeypatch):
    monkeypatch.setattr(_atomic, "_exchange", lambda one, other: False)
    rename = Path.rename

    def fail_for_the_new_one(path, target):
        if path.name.endswith(".tmp"):
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with (
        pytest.raises(DataError, match=r"cannot write .*: Permission denied"),
        atomic_folder(old_folder, replace_if=ours) as temporary,
    ):
        (temporary / "ours").write_text("new")
    assert (old_folder / "ours").read_text() == "old"
    assert names(old_folder.parent) == ["model"]


def test_nothing_is_deleted_through_a_link(tmp_path):
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "models").symlink_to(tmp_path / "mine")
    delete_within(tmp_path / "run", tmp_path / "run" / "models" / "model")
    assert (tmp_path / "mine" / "model").is_dir()
    delete_within(tmp_path, tmp_path / "mine" / "model")
    assert not (tmp_path / "mine" / "model").exists()


def test_a_kill_while_a_folder_is_deleted_leaves_nothing_of_it_in_sight(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "stand").touch()

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            delete_folder(folder)
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".checkpoint.")
    delete_folder(folder)
    assert list(tmp_path.iterdir()) == []


def fails(*_, **__):
    raise OSError(errno.EIO, "")


@pytest.mark.parametrize("call", ["fsync of the parent", "rmtree"])
def test_what_fails_after_the_output_is_in_place_is_a_note(old_folder, monkeypatch, call):
    sync = _atomic.sync
    parent = old_folder.parent
    monkeypatch.setattr(_atomic, "sync", lambda path: fails() if path == parent else sync(path))
    if call == "rmtree":
        monkeypatch.setattr(_atomic, "sync", sync)
        monkeypatch.setattr("shutil.rmtree", fails)
    with (
        pytest.warns(LimelightWarning, match="'.*model' is written, but what was left over"),
        atomic_folder(old_folder, replace_if=ours) as temporary,
    ):
        (temporary / "ours").write_text("new")
    assert (old_folder / "ours").read_text() == "new"
    if call != "rmtree":
        with (
            pytest.warns(LimelightWarning, match="tidied: Input/output error"),
            atomic_file(parent / "output") as temporary,
        ):
            temporary.write_text("new")
        assert (parent / "output").read_text() == "new"
