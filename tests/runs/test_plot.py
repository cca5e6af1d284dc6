"""``limelight plot``: the figures that a run has, in the format that was asked for."""

import errno
from pathlib import Path

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def test_every_figure_in_every_format(limelight, demo_run, tmp_path):
    flags = [part for kind in STARTS for part in ("--as", kind)]
    ended = limelight("plot", demo_run, "-o", tmp_path / "figures", *flags)
    assert ended.code == 0
    names = {"front", "lorenz", "exposure", "groups", "convergence"}
    written = list((tmp_path / "figures").iterdir())
    assert {file.name for file in written} == {f"{n}.{kind}" for n in names for kind in STARTS}
    for file in written:
        assert file.read_bytes().startswith(STARTS[file.suffix[1:]])


def test_a_picture_that_cannot_be_finished_leaves_the_old_one(
    limelight, demo_run, tmp_path, monkeypatch
):
    flags = ("plot", demo_run, "-o", tmp_path, "--only", "lorenz")
    limelight(*flags)
    before = (tmp_path / "lorenz.png").read_bytes()

    def fail(one, other):
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(Path, "replace", fail)
    ended = limelight(*flags)
    assert ended.code == 1
    assert "Input/output error" in ended.err
    assert (tmp_path / "lorenz.png").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["lorenz.png"]


def test_one_figure_beside_the_run(limelight, demo_run):
    assert limelight("plot", demo_run, "--only", "lorenz").code == 0
    assert [file.name for file in (demo_run / "figures").iterdir()] == ["lorenz.png"]


def test_a_front_without_groups(limelight, demo_run, tmp_path):
    flags = ("--points", 3, "--factors", 4, "--epochs", 3, "--method", "best-response")
    limelight("frontier", demo_run / "split", "-o", tmp_path / "front", *flags)
    ended = limelight("plot", tmp_path / "front", "--only", "groups")
    assert ended.code == 2
    assert "it has front, lorenz, exposure, convergence" in ended.err
    more = ("--only", "groups", "--groups", demo_run / "providers.parquet", "-o", tmp_path / "more")
    assert limelight("plot", tmp_path / "front", *more).code == 0


def test_wrong_use(limelight, demo_run, files, tmp_path):
    assert "nothing to show" in limelight("plot", files / "model").err
    (tmp_path / "file").touch()
    assert "not a folder" in limelight("plot", demo_run, "-o", tmp_path / "file").err
    assert limelight("plot", demo_run, "--as", "gif").code == 2
